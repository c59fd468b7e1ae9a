import type { Problem, ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { fa3Mask, type Fa3Mask } from './mask.js';
import { fa3ChosenSplits, fa3MostSplits } from './split-keys.js';

/** Every choice of FlashAttention-3's forward that changes its bits. */
export interface Fa3Configuration {
  /** Multiprocessors of the GPU, which decide the splits where these are not chosen. */
  readonly multiprocessors: number;
  /** Parts that the keys are split into and whose results are combined; 1: not split. */
  readonly splits: number;
}

/** Choices that differ from the default; `auto`: as many splits as FlashAttention-3 takes on these multiprocessors. */
export interface Fa3Overrides extends Partial<Omit<Fa3Configuration, 'splits'>> {
  readonly splits?: number | 'auto';
}

/** Multiprocessors of an H100 or H200. */
const usualMultiprocessors = 132;

/**
 * Queries of a tile and keys of a block of 16-bit inputs, by head dimensions, up to 64, 96, 128, 192 or 256 of both, or
 * up to 192 of Q and K and up to 128 of V. Source: tile_size_fwd_sm90 in hopper/tile_size.h of
 * Dao-AILab/flash-attention (commit 0251105a, August 2026).
 */
export function fa3Tile(
  { qkDim, vDim }: Pick<ProblemShape, 'qkDim' | 'vDim'>,
  mask: Fa3Mask['kind'],
): { readonly queries: number; readonly keys: number } {
  const isLocal = mask === 'local';
  const isPlain = mask === 'none';
  if (qkDim <= 64) return { queries: 192, keys: isPlain ? 192 : 128 };
  if (qkDim <= 96) return { queries: 192, keys: isLocal ? 128 : 144 };
  if (qkDim <= 128) return { queries: 128, keys: isPlain ? 176 : 128 };
  if (qkDim <= 192) return { queries: 128, keys: isLocal ? 96 : vDim <= 128 ? 128 : 112 };
  return { queries: 128, keys: isLocal ? 64 : 80 };
}

/** @throws RequestError for formats and sizes that the model has no path for */
function checkProblem(problem: Problem, { qkDim, vDim }: ProblemShape): void {
  const { q, k, v } = problem;
  for (const [name, { format }] of Object.entries({ q, k, v }))
    if (!((format === 'bf16' || format === 'fp16') && format === q.format))
      throw new RequestError(
        `${name} is ${format}; the fa3 model takes bf16 or fp16, all the same`,
      );
  const isWide = qkDim > 128 && qkDim <= 192 && vDim <= 128;
  if (qkDim !== vDim && !isWide)
    throw new RequestError(
      `q and v have head dimensions ${qkDim} and ${vDim}; the fa3 model takes one for both, or 192 and 128`,
    );
  if (!(qkDim >= 8 && qkDim <= 256 && qkDim % 8 === 0 && vDim % 8 === 0))
    throw new RequestError(
      `head dimensions ${qkDim} and ${vDim}; the fa3 model takes multiples of 8 up to 256`,
    );
  if (problem.softcap !== null)
    throw new RequestError('the fa3 model has no softcap; leave it out');
}

/**
 * The configuration that FlashAttention-3 would run the problem in, with the choices of `overrides`, and keys in one
 * part unless these say otherwise.
 * @throws RequestError for a problem that the model does not take: formats other than bf16 and fp16, head dimensions
 *   beyond 256 or unequal ones, a softcap; and for a configuration out of range
 */
export function fa3Configuration(
  problem: Problem,
  shape: ProblemShape,
  { multiprocessors = usualMultiprocessors, splits: parts = 1 }: Fa3Overrides = {},
): Fa3Configuration {
  checkProblem(problem, shape);
  const mask = fa3Mask(problem, shape);
  const splits =
    parts === 'auto'
      ? fa3ChosenSplits(shape, mask, fa3Tile(shape, mask.kind), multiprocessors)
      : parts;
  for (const [name, value, most] of [
    ['multiprocessors', multiprocessors, 2 ** 16],
    ['splits', splits, fa3MostSplits],
  ] as const)
    if (!(Number.isInteger(value) && value >= 1 && value <= most))
      throw new RequestError(`${name} is ${value}; give a whole number from 1 to ${most}`);
  return { multiprocessors, splits };
}
