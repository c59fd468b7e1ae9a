import { RequestError } from '../request-error.js';

/**
 * The fingerprint by which a function of one fp32 number is compared with silicon over all 2^32
 * inputs. The inputs, as bit patterns in ascending order, are cut into 4096 blocks of 2^20; a block
 * is summed up in two 32-bit words over its inputs x and result bits y:
 *
 *   z = fmix32(fmix32(x xor 0x9e3779b9) xor y)
 *   sum = Σ z mod 2^32
 *   xor = the exclusive or of all fmix32(z + 0x7f4a7c15 mod 2^32)
 *
 * where fmix32 is the finaliser of MurmurHash3. An fp32 NaN result counts as 0x7fffffff. 8- and
 * 16-bit results are zero-extended, their NaNs included: those stay what the format has, 0x7fff or
 * 0x7f on NVIDIA.
 */
export interface BlockHash {
  readonly sum: number;
  readonly xor: number;
}

export const blockCount = 4096;
const inputsPerBlock = 2 ** 20;
const bytesPerBlock = 8;

/** Maps fp32 bit patterns to result bit patterns: `results[i]` from `inputs[i]`, all of them. */
export type BitFunction = (inputs: Uint32Array, results: Uint32Array) => void;

/** What to compare: the captured fingerprint, and which of its blocks (default all). */
export interface HashComparison {
  /** Per block the sum, then the xor, little-endian: 32768 bytes. */
  readonly expected: Uint8Array;
  /** Indices from 0 to 4095; a share of them lets several workers divide the blocks. */
  readonly blocks?: readonly number[];
}

/** Called after each block with how many are done and how many there are. */
export type BlockProgress = (done: number, total: number) => void;

/**
 * The indices of the blocks, in the order asked for, on which the function's fingerprint differs
 * from the captured one. Throws a RequestError when `expected` has the wrong length or a block is
 * out of range.
 */
export function mismatchingBlocks(
  evaluate: BitFunction,
  comparison: HashComparison,
  onProgress?: BlockProgress,
): number[] {
  const { expected, blocks = Array.from({ length: blockCount }, (_, block) => block) } = comparison;
  if (expected.length !== blockCount * bytesPerBlock) {
    throw new RequestError(
      `the captured fingerprint has ${expected.length} bytes; it must have ${blockCount * bytesPerBlock}, two 32-bit words for each of ${blockCount} blocks`,
    );
  }
  const outside = blocks.find(
    (block) => !(Number.isInteger(block) && 0 <= block && block < blockCount),
  );
  if (outside !== undefined) {
    throw new RequestError(`no block ${outside}; name blocks from 0 to ${blockCount - 1}`);
  }
  const captured = new DataView(expected.buffer, expected.byteOffset, expected.length);
  const mismatching: number[] = [];
  for (const [index, block] of blocks.entries()) {
    const { sum, xor } = hashBlock(evaluate, block);
    const at = block * bytesPerBlock;
    if (sum !== captured.getUint32(at, true) || xor !== captured.getUint32(at + 4, true)) {
      mismatching.push(block);
    }
    onProgress?.(index + 1, blocks.length);
  }
  return mismatching;
}

/** Inputs per call of the function: few enough for inputs and results to stay in the first-level cache. */
const chunk = 2048;

/** The fingerprint of the function on the inputs `block`·2^20 to (`block` + 1)·2^20 − 1. */
export function hashBlock(evaluate: BitFunction, block: number): BlockHash {
  const inputs = new Uint32Array(chunk);
  const results = new Uint32Array(chunk);
  let sum = 0;
  let xor = 0;
  for (let first = 0; first < inputsPerBlock; first += chunk) {
    for (let i = 0; i < chunk; i++) inputs[i] = block * inputsPerBlock + first + i;
    evaluate(inputs, results);
    for (let i = 0; i < chunk; i++) {
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
