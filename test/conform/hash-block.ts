import { type BlockHash, inputsPerBlock } from '../../src/conform/silicon-hash.js';
import { chunkElements, type ArrayFunction } from '../../src/simd/index.js';

/**
 * The hasher by its definition. `createBlockHasher` makes a faster one with the same results.
 */
export function hashBlock(evaluate: ArrayFunction, block: number): BlockHash {
  const inputs = new Uint32Array(chunkElements);
  const results = new Uint32Array(chunkElements);
  let sum = 0;
  let xor = 0;
  for (let first = 0; first < inputsPerBlock; first += chunkElements) {
    for (let i = 0; i < chunkElements; i++) inputs[i] = block * inputsPerBlock + first + i;
    evaluate(inputs, results);
    for (let i = 0; i < chunkElements; i++) {
      const result = results[i];
      const bits = (result & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : result;
      const z = fmix32(fmix32(inputs[i] ^ 0x9e3779b9) ^ bits);
      sum = (sum + z) | 0;
      xor ^= fmix32(z + 0x7f4a7c15);
    }
  }
  return { sum: sum >>> 0, xor: xor >>> 0 };
}

/** MurmurHash3's 32-bit finaliser; the result as a signed integer. */
function fmix32(x: number): number {
  let h = x ^ (x >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ (h >>> 16);
}
