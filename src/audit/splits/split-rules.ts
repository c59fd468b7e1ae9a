import type { KeyRange } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';

/** The keys of each part: by split, then by sequence. */
export type SplitRanges = readonly (readonly KeyRange[])[];

/** A way to divide keys into parts. */
export interface SplitRule {
  /** Words for the rule, such as "blocks of 64 keys, as FlashAttention divides them". */
  readonly words: string;
  readonly ranges: SplitRanges;
}

/** A request for the parts of a problem. */
export interface SplitRequest {
  readonly splits: number;
  /** Number of keys of each sequence, or batch entry. */
  readonly keys: readonly number[];
  /** Positions where parts begin and the last one ends, the same in every sequence; a shorter sequence ends earlier. */
  readonly boundaries?: readonly number[] | undefined;
  /** Number of keys of a block; each part has the same number of blocks. */
  readonly block?: number | undefined;
}

/** One range for each part of keys that are divided at some positions. */
function divided(
  keys: readonly number[],
  splits: number,
  position: (split: number, keys: number) => number,
): SplitRanges {
  return Array.from({ length: splits }, (_, split) =>
    keys.map((count) => {
      const begin = Math.min(position(split, count), count);
      return { begin, end: Math.max(begin, Math.min(position(split + 1, count), count)) };
    }),
  );
}

/**
 * FlashAttention's rule (`num_splits` of its flash_fwd_kernel.h): the keys are ⌈keys / block⌉ blocks, and each part has
 * ⌈blocks / splits⌉ of them, so that the last parts of a short sequence have none.
 */
function byBlocks(keys: readonly number[], splits: number, block: number): SplitRanges {
  return divided(
    keys,
    splits,
    (split, count) => split * Math.ceil(Math.ceil(count / block) / splits) * block,
  );
}

/** Parts of the same number of keys each, except for the last. */
function equalParts(keys: readonly number[], splits: number): SplitRanges {
  return divided(keys, splits, (split, count) => split * Math.ceil(count / splits));
}

/** Whole blocks, divided as evenly as possible, the first parts having one more: FlashInfer's and Triton's usual division. */
function evenParts(keys: readonly number[], splits: number): SplitRanges {
  return divided(keys, splits, (split, count) => Math.floor((split * count) / splits));
}

/** Sizes of blocks of keys that kernels have. */
const usualBlocks = [64, 128, 256, 32, 16] as const;

function byBlocksRule({ keys, splits }: SplitRequest, block: number): SplitRule {
  return {
    words: `blocks of ${block} keys, as FlashAttention divides them`,
    ranges: byBlocks(keys, splits, block),
  };
}

/**
 * The requested division of the keys, else equal parts.
 * @throws RequestError for boundaries that do not divide the keys into that many parts
 */
export function requestedRule(request: SplitRequest): SplitRule {
  const { splits, keys, boundaries, block } = request;
  if (boundaries === undefined)
    return block === undefined
      ? { words: 'equal parts', ranges: equalParts(keys, splits) }
      : byBlocksRule(request, block);
  const longest = keys.reduce((a, b) => Math.max(a, b), 0);
  const isAscending = boundaries.every((at, i) => i === 0 || at >= boundaries[i - 1]);
  if (boundaries.length !== splits + 1 || !isAscending || boundaries[0] !== 0)
    throw new RequestError(
      `split_boundaries are ${boundaries.join(', ')} for ${splits} parts; give ${splits + 1} ascending positions of keys from 0`,
    );
  if (boundaries[splits] < longest)
    throw new RequestError(
      `split_boundaries end at ${boundaries[splits]}, but there are ${longest} keys; end behind the last key`,
    );
  return {
    words: `parts at the keys ${boundaries.join(', ')}`,
    ranges: divided(keys, splits, (split) => boundaries[split]),
  };
}

/** Other ways in which kernels divide keys, each with other ranges than those before it. */
export function otherRules(request: SplitRequest, known: SplitRule): readonly SplitRule[] {
  const { keys, splits } = request;
  const seen = new Set([JSON.stringify(known.ranges)]);
  return [
    ...usualBlocks.map((block) => byBlocksRule(request, block)),
    { words: 'equal parts', ranges: equalParts(keys, splits) },
    { words: 'parts as even as they go', ranges: evenParts(keys, splits) },
  ].filter(({ ranges }) => {
    const name = JSON.stringify(ranges);
    return !seen.has(name) && seen.add(name);
  });
}
