import { createHash } from 'node:crypto';
import { encode, formats, type NumberFormat } from '../formats/index.js';
import { blockCount, inputsPerBlock } from './silicon-hash.js';

const positiveBlocks = blockCount / 2;
const blocksPerBinade = 8;

/**
 * The block that holds 2^exponent as an fp32 number: block 0 for exponents too small, infinity's for those too large.
 */
function blockAt(exponent: number): number {
  return Math.floor(encode(formats.fp32, 2 ** exponent) / inputsPerBlock);
}

/**
 * The blocks, ascending, of both signs: all of the binades from 2^exponent for each exponent of
 * `whole`; for each of `edges` the first block of the binade from 2^exponent and the one before; the
 * first block of all, the last finite one, infinity's and the last of the NaNs.
 */
export function binadeBlocks(whole: readonly number[], edges: readonly number[]): number[] {
  const infinity = blockAt(formats.fp32.maxExponent + 1);
  const positive = [
    ...[0, infinity - 1, infinity, positiveBlocks - 1],
    ...whole.flatMap((exponent) =>
      Array.from({ length: blocksPerBinade }, (_, i) => blockAt(exponent) + i),
    ),
    ...edges.flatMap((exponent) => [Math.max(blockAt(exponent) - 1, 0), blockAt(exponent)]),
  ];
  const bothSigns = positive.flatMap((block) => [block, block + positiveBlocks]);
  return [...new Set(bothSigns)].sort((a, b) => a - b);
}

/**
 * The blocks, ascending, that touch an edge of a conversion from fp32 to the format, of both signs:
 * zero and the first subnormals; each power of two from a quarter of the smallest subnormal, where
 * everything rounds to zero, to the smallest normal number, as one more bit survives in each of these
 * binades; 1; the whole last binade, in which overflow begins, and the start of the next; fp32's own
 * last finite numbers, infinity, and NaNs at both ends of their range.
 */
export function conversionEdgeBlocks(format: NumberFormat): number[] {
  const smallest = format.minExponent - format.precision + 1;
  const edges = [0, format.maxExponent, format.maxExponent + 1];
  for (let e = smallest - 2; e <= format.minExponent + 1; e++) edges.push(e);
  return binadeBlocks([format.maxExponent], edges);
}

/**
 * `count` different blocks, ascending, drawn uniformly from those not in `taken` by SHA-256 of the
 * seed: the same for a seed on every machine. When no more than `count` are left, all of them.
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

/** Random blocks per function beside those chosen. */
const randomCount = 12;

/** The blocks that a check of a function samples: those chosen for it, and random ones from the seed. */
export function sampleBlocks(name: string, chosen: readonly number[], seed: string): number[] {
  const random = randomBlocks(`${seed}/${name}`, randomCount, chosen);
  return [...chosen, ...random].sort((a, b) => a - b);
}
