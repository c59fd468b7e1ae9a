/** Makes every `*.generated.ts` that is missing or older than its AssemblyScript source. */
export function buildWebAssembly(): Promise<void>;
