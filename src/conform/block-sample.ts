import { createHash } from 'node:crypto';
import { blockCount, encode, formats, type NumberFormat } from '../formats/index.js';

const positiveBlocks = blockCount / 2;
const inputsPerBlock = 2 ** 20;
const blocksPerBinade = 8;

/** The block that holds 2^exponent as an fp32 number: block 0 for too small, infinity's for too large. */
function blockAt(exponent: number): number {
  return Math.floor(encode(formats.fp32, 2 ** exponent) / inputsPerBlock);
}

/**
 * The blocks, ascending, that touch an edge of a conversion from fp32 to the format, of both signs:
 * zero and the first subnormals; each power of two from a quarter of the smallest subnormal, where
 * everything rounds to zero, to the smallest normal number, as one more bit survives in each of these
 * binades; 1; the whole last binade, in which overflow begins, and the start of the next; fp32's own
 * last finite numbers, infinity, and NaNs at both ends of their range.
 */
export function edgeBlocks(format: NumberFormat): number[] {
  const smallest = format.minExponent - format.precision + 1;
  const exponents = [0, format.maxExponent, format.maxExponent + 1];
  for (let e = smallest - 2; e <= format.minExponent + 1; e++) exponents.push(e);
  const lastBinade = Array.from(
    { length: blocksPerBinade },
    (_, i) => blockAt(format.maxExponent) + i,
  );
  const infinity = blockAt(formats.fp32.maxExponent + 1);
  const positive = [0, infinity - 1, infinity, positiveBlocks - 1, ...lastBinade].concat(
    exponents.flatMap((exponent) => [Math.max(blockAt(exponent) - 1, 0), blockAt(exponent)]),
  );
  const bothSigns = positive.flatMap((block) => [block, block + positiveBlocks]);
  return [...new Set(bothSigns)].sort((a, b) => a - b);
}

/**
 * `count` different blocks, ascending, drawn uniformly from those not in `taken` by SHA-256 of the
 * seed: the same for a seed on every machine. All that are left, when there are no more than `count`.
 */
export function randomBlocks(seed: string, count: number, taken: readonly number[]): number[] {
  const excluded = new Set(taken);
  const drawn = new Set<number>();
  const wanted = Math.min(count, blockCount - excluded.size);
  for (let draw = 0; drawn.size < wanted; draw++) {
    const digest = createHash('sha256').update(`${seed}/${draw}`).digest();
    for (let at = 0; at < digest.length && drawn.size < wanted; at += 2) {
      const block = digest.readUInt16LE(at) % blockCount; // 4096 divides 2^16: uniform
      if (!excluded.has(block)) drawn.add(block);
    }
  }
  return [...drawn].sort((a, b) => a - b);
}

/** Random blocks per instruction beside the edges: with the edges some 2 s of work on two cores. */
const randomCount = 64;

/** The blocks that a check of the format samples: all edges, and random ones by the seed. */
export function sampleBlocks(format: NumberFormat, seed: string): number[] {
  const edges = edgeBlocks(format);
  const random = randomBlocks(`${seed}/${format.name}`, randomCount, edges);
  return [...edges, ...random].sort((a, b) => a - b);
}
