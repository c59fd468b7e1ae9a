import { mismatchingBlocks } from '../../src/conform/index.js';
import type { ArrayFunction } from '../../src/simd/index.js';
import { sampled, testSeed } from '../setup/effort.js';

const inputsPerBlock = 2 ** 20;
/** Inputs of a block at which a definition is held against its WebAssembly: one in each 2^11. */
const probesPerBlock = 2 ** 9;

export function hex(bits: number): string {
  return `0x${bits.toString(16).padStart(8, '0')}`;
}

/** A function of fp32 patterns in two forms, the definition and WebAssembly, and what silicon has. */
export interface BlockComparison {
  readonly definition: ArrayFunction;
  readonly webAssembly: ArrayFunction;
  readonly expected: Uint8Array;
  /** Blocks of 2^20 inputs, by the leading 12 bits of their inputs. */
  readonly blocks: readonly number[];
}

/** One input, drawn by TEST_SEED, of each of the equal parts of a block. */
function probes(block: number): Uint32Array {
  const part = inputsPerBlock / probesPerBlock;
  return new Uint32Array(probesPerBlock).map((_, i) => {
    const drawn = Math.imul((testSeed + block) ^ Math.imul(i + 1, 0x9e3779b1), 0x85ebca6b) >>> 0;
    return block * inputsPerBlock + i * part + Math.floor((drawn / 2 ** 32) * part);
  });
}

/** The blocks on which the WebAssembly has another fingerprint than silicon. */
export function blocksUnlikeSilicon({ webAssembly, expected, blocks }: BlockComparison): string[] {
  return mismatchingBlocks(webAssembly, { expected, blocks }).map(hex);
}

/**
 * The inputs at which the definition differs from the WebAssembly, of `probesPerBlock` in every block,
 * and the blocks, of `count` that TEST_SEED draws, on which its fingerprint differs from silicon's.
 */
export function definitionUnlikeSilicon(comparison: BlockComparison, count: number): string[] {
  const { definition, webAssembly, expected, blocks } = comparison;
  const inputs = Uint32Array.from(blocks.flatMap((block) => [...probes(block)]));
  const [defined, results] = [new Uint32Array(inputs.length), new Uint32Array(inputs.length)];
  definition(inputs, defined);
  webAssembly(inputs, results);
  const differing = [...inputs].filter((_, i) => defined[i] !== results[i]);
  const drawn = { expected, blocks: sampled(blocks, count) };
  return [...differing, ...mismatchingBlocks(definition, drawn)].map(hex);
}
