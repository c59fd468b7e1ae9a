import type { Problem, ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { chosenSplits, mostSplits, splitBlockKeys, splitTileQueries } from './split-keys.js';

/** The GPUs whose instructions are modelled. */
export const fa2Architectures = ['sm_80', 'sm_89', 'sm_90', 'sm_120'] as const;
/** A GPU whose instructions the model has. */
export type Fa2Architecture = (typeof fa2Architectures)[number];

/** Origin of the compiled kernel: PyTorch, or the flash-attn package with use_fast_math. */
export type Fa2Build = 'pytorch' | 'flash-attn';

/** Every choice of FlashAttention-2's forward that changes its bits. */
export interface Fa2Configuration {
  readonly architecture: Fa2Architecture;
  readonly build: Fa2Build;
  /** Multiprocessors of the GPU, which decide the splits where these are not chosen. */
  readonly multiprocessors: number;
  /** Parts that the keys are split into and whose results are combined; 1: not split. */
  readonly splits: number;
}

/** Choices that differ from the default; `auto`: as many splits as FlashAttention-2 takes on these multiprocessors. */
export interface Fa2Overrides extends Partial<Omit<Fa2Configuration, 'splits'>> {
  readonly splits?: number | 'auto';
}

/** Multiprocessors by architecture: an A100, an L40S, an H100 or H200, an RTX 5090. */
const usualMultiprocessors: Readonly<Record<Fa2Architecture, number>> = {
  sm_80: 108,
  sm_89: 142,
  sm_90: 132,
  sm_120: 170,
};

const kernelHeadDims = [32, 64, 96, 128, 192, 256];

/** The head dimension of the kernel that takes a problem's head dimension. */
export function kernelHeadDim(qkDim: number): number {
  return kernelHeadDims.find((dim) => dim >= qkDim) ?? 256;
}

/**
 * Queries of a tile and keys of a block by head dimension. Source: run_mha_fwd_hdim… in
 * csrc/flash_attn/src/flash_fwd_launch_template.h of Dao-AILab/flash-attention, the same in PyTorch: smaller for compute capability
 * 8.6 and 8.9, not for 12.0, although that has no more shared memory.
 */
export function fa2Tile(
  headDim: number,
  architecture: Fa2Architecture,
  causal: boolean,
): { readonly queries: number; readonly keys: number } {
  const isSmall = architecture === 'sm_89';
  switch (kernelHeadDim(headDim)) {
    case 32:
    case 64:
      return { queries: 128, keys: 128 };
    case 96:
      return isSmall && causal ? { queries: 64, keys: 64 } : { queries: 128, keys: 64 };
    case 128:
      if (!isSmall) return { queries: 128, keys: 64 };
      return causal ? { queries: 64, keys: 64 } : { queries: 128, keys: 32 };
    case 192:
      return { queries: 128, keys: 64 };
    default:
      // By shared memory: an A100 has room for 128 queries, an H100 for two CTAs of 64.
      return architecture === 'sm_80' ? { queries: 128, keys: 64 } : { queries: 64, keys: 64 };
  }
}

/** @throws RequestError for formats and sizes that the kernel has no path for */
function checkProblem(problem: Problem, { qkDim, vDim }: ProblemShape): void {
  const { q, k, v } = problem;
  for (const [name, { format }] of Object.entries({ q, k, v }))
    if (!((format === 'bf16' || format === 'fp16') && format === q.format))
      throw new RequestError(
        `${name} is ${format}; the fa2 model takes bf16 or fp16, all the same`,
      );
  if (qkDim !== vDim)
    throw new RequestError(
      `q and v have head dimensions ${qkDim} and ${vDim}; the fa2 model takes one for both`,
    );
  if (!(qkDim >= 1 && qkDim <= 256))
    throw new RequestError(`head dimension ${qkDim}; the fa2 model takes 1 to 256`);
  if (problem.softcap !== null)
    throw new RequestError('the fa2 model has no softcap; leave it out');
}

/**
 * The configuration that FlashAttention-2 would run the problem in, with the choices of `overrides`, and
 * keys in one part unless these say otherwise.
 * @throws RequestError for a problem that the kernel does not take: formats other than bf16 and fp16,
 *   unequal head dimensions or such beyond 256, a softcap; and for a configuration out of range
 */
export function fa2Configuration(
  problem: Problem,
  shape: ProblemShape,
  overrides: Fa2Overrides = {},
): Fa2Configuration {
  checkProblem(problem, shape);
  const architecture = overrides.architecture ?? 'sm_90';
  const multiprocessors = overrides.multiprocessors ?? usualMultiprocessors[architecture];
  const { batch, heads, queries, keys, qkDim } = shape;
  const tiles = batch * heads * Math.ceil(queries / splitTileQueries);
  const blocks = Math.ceil(keys / splitBlockKeys(qkDim));
  const { splits: parts = 1 } = overrides;
  // Packed sequences are not split.
  const chosen =
    problem.sequences === undefined ? chosenSplits(tiles, 2 * multiprocessors, blocks) : 1;
  const splits = parts === 'auto' ? chosen : parts;
  for (const [name, value, most] of [
    ['multiprocessors', multiprocessors, 2 ** 16],
    ['splits', splits, mostSplits],
  ] as const)
    if (!(Number.isInteger(value) && value >= 1 && value <= most))
      throw new RequestError(`${name} is ${value}; give a whole number from 1 to ${most}`);
  return { architecture, build: overrides.build ?? 'pytorch', multiprocessors, splits };
}
