import { compileSources } from './native-sources.js';

/**
 * Vitest global setup: makes the generated sources (WebAssembly as base64) and the compiled ones exist before
 * any test, and chooses the seed that the tests draw by where TEST_SEED gives none.
 */
export async function setup(): Promise<void> {
  process.env['TEST_SEED'] ??= String(Math.floor(Math.random() * 2 ** 31));
  console.log(`TEST_SEED=${process.env['TEST_SEED']}`);
  const { buildWebAssembly } = await import('../../scripts/build-webassembly.mjs');
  await buildWebAssembly();
  await compileSources();
}
