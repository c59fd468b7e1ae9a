import { posedRows, storedOf, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { kernelMask } from './features.js';

/** Queries of a tile, one of two that a CTA works on. */
export const tileQueries = 128;

/** The widest head whose groups are always packed; beyond it only groups whose size divides a tile are. */
const widestPackedHead = 240;
/** Head dimensions whose long unmasked problems run on pairs, beside 256. */
const pairedHeadDims: readonly number[] = [128, 192];
/** Multiprocessors of a B200, which decide whether few rows of 256 dimensions are worth a pair. */
const multiprocessors = 148;
/** Keys of a page that TMA of a pair reads. */
const pairedPageKeys = 128;

/**
 * Whether query heads of a group share tiles, as they do unless block sparsity has lists of each head. With 256
 * dimensions groups that do not divide a tile are taken as not packed; where the source packs them all the same, it changes no bit.
 * Source: `pack_gqa` in interface.py of flash-attn-4 4.0.0b36.
 */
export function packsGroups(problem: Problem, { groupSize, heads, qkDim }: ProblemShape): boolean {
  const { blockMask } = problem;
  const listHeads = blockMask === undefined ? 1 : ([1, 1, ...blockMask.counts.shape].at(-2) ?? 1);
  const fits = qkDim <= widestPackedHead || tileQueries % groupSize === 0;
  return groupSize > 1 && fits && (listHeads === 1 || heads === 1);
}

/**
 * Form in which the kernel receives the lengths of queries: none, as all sequences have equally many, those of packed sequences
 * (`cu_seqlens_q`), or the number that counts of each (`seqused_q`); with the number of sequences, and the most queries of one.
 */
export function queryLengths(
  problem: Problem,
  { batch, queries }: ProblemShape,
): {
  readonly kind: 'equal' | 'packed' | 'used';
  readonly batch: number;
  readonly most: number;
} {
  const { sequences, rows } = problem;
  if (sequences === undefined) return { kind: 'equal', batch, most: rows?.of ?? queries };
  const posed = posedRows(problem)?.queries;
  const count = sequences.length;
  if (posed?.form !== 'padded')
    return { kind: 'packed', batch: count, most: Math.max(...sequences.map((one) => one.queries)) };
  const most = posed.slotsPerGroup;
  const isTold = 'seqused_q' in (storedOf(problem)?.tensors ?? {});
  const areFull = sequences.every((one) => one.queries === most);
  return { kind: areFull && !isTold ? 'equal' : 'used', batch: count, most };
}

/** Whether TMA of a pair reads the keys: they are in no pages, or in pages of a block. */
function readsInPairs(problem: Problem): boolean {
  const keys = posedRows(problem)?.keys;
  return keys?.form !== 'paged' || keys.slotsPerGroup === pairedPageKeys;
}

/**
 * Thread blocks that share one MMA: a pair for long unmasked problems of some head dimensions whose queries are not packed; for
 * 256 dimensions, with a mask or without, unless one tile has all rows and there are many heads. Source: `use_2cta_instrs` in
 * flash_attn/cute/interface.py of flash-attn-4 4.0.0b36, whose compiled kernels give the bits of these choices.
 */
export function ctasOf(
  problem: Problem,
  shape: ProblemShape,
  { splits, packGqa }: { readonly splits: number; readonly packGqa: boolean },
): 1 | 2 {
  const { heads, kvHeads, qkDim, vDim, groupSize } = shape;
  const [padded, paddedV] = [qkDim, vDim].map((dim) => 16 * Math.ceil(dim / 16));
  const { causal, local } = kernelMask(problem);
  const { kind, batch, most } = queryLengths(problem, shape);
  const tileRows = most * (packGqa ? groupSize : 1);
  const mayPair =
    splits === 1 &&
    problem.blockMask === undefined &&
    kind !== 'used' &&
    readsInPairs(problem) &&
    (!packGqa || tileQueries % groupSize === 0);
  if (padded > 192) {
    const isOneWave = 2 * batch * (packGqa ? kvHeads : heads) <= multiprocessors;
    return mayPair && (tileRows > tileQueries || isOneWave) ? 2 : 1;
  }
  const isPaired =
    mayPair &&
    kind === 'equal' &&
    pairedHeadDims.includes(padded) &&
    paddedV === 128 &&
    !causal &&
    !local &&
    tileRows > 2 * tileQueries;
  return isPaired ? 2 : 1;
}
