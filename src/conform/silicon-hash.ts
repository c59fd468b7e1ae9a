import { RequestError } from '../request-error.js';
import { createScalarEngine, chunkElements, type ArrayFunction } from '../simd/index.js';

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
export const inputsPerBlock = 2 ** 20;
const bytesPerBlock = 8;
/** Bytes of a fingerprint: per block the sum, then the xor, little-endian. */
export const fingerprintBytes = blockCount * bytesPerBlock;

/** A captured fingerprint to compare with, and the blocks of it to compare (default all). */
export interface HashComparison {
  readonly expected: Uint8Array;
  /** Indices from 0 to 4095; a share of them lets several workers divide the blocks. */
  readonly blocks?: readonly number[];
}

/** Called with the number of finished blocks and the number of all. */
export type BlockProgress = (done: number, total: number) => void;

/** The fingerprint of the function on the inputs `block`·2^20 to (`block` + 1)·2^20 − 1. */
export type BlockHasher = (evaluate: ArrayFunction, block: number) => BlockHash;

const lanes = 4;

/** A hasher in WebAssembly, with memory of its own: one per thread. */
export function createBlockHasher(): BlockHasher {
  const engine = createScalarEngine(2 * lanes * 4);
  const { kernels, inputs, results } = engine;
  const state = engine.place(new Uint32Array(2 * lanes));
  const { buffer } = kernels.memory;
  const inputWords = new Uint32Array(buffer, inputs, chunkElements);
  const resultWords = new Uint32Array(buffer, results, chunkElements);
  const sums = new Uint32Array(buffer, state, lanes);
  const mixed = new Uint32Array(buffer, state + lanes * 4, lanes);
  return (evaluate, block) => {
    sums.fill(0);
    mixed.fill(0);
    for (let first = 0; first < inputsPerBlock; first += chunkElements) {
      kernels.fillConsecutive(inputs, chunkElements, block * inputsPerBlock + first);
      evaluate(inputWords, resultWords);
      kernels.hash(inputs, results, chunkElements, state);
    }
    return {
      sum: sums.reduce((total, sum) => (total + sum) >>> 0, 0),
      xor: mixed.reduce((total, word) => (total ^ word) >>> 0, 0),
    };
  };
}

/**
 * The indices of the blocks, in the requested order, on which the function's fingerprint differs
 * from the captured one.
 * @param hash default a new {@link createBlockHasher}
 * @throws RequestError when `expected` has the wrong length or a block is out of range
 */
export function mismatchingBlocks(
  evaluate: ArrayFunction,
  comparison: HashComparison,
  hash: BlockHasher = createBlockHasher(),
): number[] {
  const { expected, blocks = Array.from({ length: blockCount }, (_, block) => block) } = comparison;
  if (expected.length !== fingerprintBytes) {
    throw new RequestError(
      `the captured fingerprint has ${expected.length} bytes; it must have ${fingerprintBytes}, two 32-bit words for each of ${blockCount} blocks`,
    );
  }
  const outside = blocks.find(
    (block) => !(Number.isInteger(block) && 0 <= block && block < blockCount),
  );
  if (outside !== undefined) {
    throw new RequestError(`no block ${outside}; name blocks from 0 to ${blockCount - 1}`);
  }
  const captured = new DataView(expected.buffer, expected.byteOffset, expected.length);
  return blocks.filter((block) => {
    const { sum, xor } = hash(evaluate, block);
    const at = block * bytesPerBlock;
    return sum !== captured.getUint32(at, true) || xor !== captured.getUint32(at + 4, true);
  });
}
