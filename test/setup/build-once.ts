/** Vitest global setup: makes the generated sources (WebAssembly as base64) exist before any test. */
export async function setup(): Promise<void> {
  const { buildWebAssembly } = await import('../../scripts/build-webassembly.mjs');
  await buildWebAssembly();
}
