/** Compiles every AssemblyScript module to WebAssembly, embedded as base64 in a TypeScript file. */
export async function buildWebAssembly() {}
