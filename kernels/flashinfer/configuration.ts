import type { Problem, ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';

/** The GPUs whose instructions are modelled. */
export const flashInferArchitectures = ['sm_80', 'sm_90', 'sm_120'] as const;
type FlashInferArchitecture = (typeof flashInferArchitectures)[number];

/** FlashInfer's choices, and others that change its bits. */
export interface FlashInferConfiguration {
  readonly architecture: FlashInferArchitecture;
  /** Multiprocessors of the GPU, which decide the splits where these are not chosen. */
  readonly multiprocessors: number;
  /** Parts of the keys whose results are merged; 1: not split. */
  readonly splits: number;
}

/** Choices that differ from the default; `auto`: as many splits as FlashInfer takes on these multiprocessors. */
export interface FlashInferOverrides extends Partial<Omit<FlashInferConfiguration, 'splits'>> {
  readonly splits?: number | 'auto';
}

/** Multiprocessors by architecture: an A100, an H100 or H200, an RTX 5090. */
const usualMultiprocessors: Readonly<Record<FlashInferArchitecture, number>> = {
  sm_80: 108,
  sm_90: 132,
  sm_120: 170,
};

/** Rows of a CTA, which are queries times the heads of a group. Fewer rows than 65 have other tiles. */
export const tileRows = 128;
const leastRows = 65;
/** Keys of a block for a tile of 128 rows, whatever the dimension. */
export const blockKeys = 64;
/** CTAs of a multiprocessor: by 255 registers of each of 128 threads. */
const ctasOfMultiprocessor = 2;
const leastPartKeys = 256;
const mostSplits = 2 ** 16;

/** @throws RequestError for formats and sizes that the model does not take */
function checkProblem(problem: Problem, shape: ProblemShape): void {
  const { q, k, v } = problem;
  const { qkDim, vDim, queries, keys, groupSize } = shape;
  for (const [name, { format }] of Object.entries({ q, k, v }))
    if (!((format === 'bf16' || format === 'fp16') && format === q.format))
      throw new RequestError(
        `${name} is ${format}; the flashinfer model takes bf16 or fp16, all the same`,
      );
  if (qkDim !== vDim || !(qkDim === 64 || qkDim === 128))
    throw new RequestError(
      `head dimensions ${qkDim} and ${vDim}; the flashinfer model takes 64 or 128 for both`,
    );
  if (tileRows % groupSize !== 0)
    throw new RequestError(
      `groups of ${groupSize} heads; the flashinfer model takes those that divide ${tileRows}`,
    );
  if (queries * groupSize < leastRows)
    throw new RequestError(
      `${queries} queries times ${groupSize} heads of a group; below ${leastRows} FlashInfer has other tiles, which are not modelled`,
    );
  if (problem.causal && queries > keys)
    throw new RequestError(
      `${queries} queries and ${keys} keys; FlashInfer's causal mask takes as many keys as queries, or more`,
    );
  if (problem.softcap !== null)
    throw new RequestError('the flashinfer model has no softcap; leave it out');
  if (problem.window !== null)
    throw new RequestError('the flashinfer model has no sliding window; leave it out');
}

/**
 * Number of parts that FlashInfer's single prefill splits the keys into: parts of 256 keys at least, and no more CTAs than there are
 * places. Source: SinglePrefillWithKVCacheDispatched of include/flashinfer/attention/prefill.cuh.
 */
function chosenSplits(shape: ProblemShape, multiprocessors: number): number {
  const { batch, kvHeads, queries, keys, groupSize } = shape;
  if (batch !== 1) return 1;
  const tiles = Math.ceil((queries * groupSize) / tileRows);
  const most = Math.floor((ctasOfMultiprocessor * multiprocessors) / (kvHeads * tiles));
  if (most === 0) return 1;
  return Math.max(1, Math.ceil(keys / Math.max(Math.ceil(keys / most), leastPartKeys)));
}

/**
 * The configuration that FlashInfer would run the problem in, with the choices of `overrides`, and keys in one part unless these say
 * otherwise.
 * @throws RequestError for a problem that the model does not take, and for a configuration out of range
 */
export function flashInferConfiguration(
  problem: Problem,
  shape: ProblemShape,
  overrides: FlashInferOverrides = {},
): FlashInferConfiguration {
  checkProblem(problem, shape);
  const architecture = overrides.architecture ?? 'sm_90';
  const multiprocessors = overrides.multiprocessors ?? usualMultiprocessors[architecture];
  const { splits: parts = 1 } = overrides;
  const splits = parts === 'auto' ? chosenSplits(shape, multiprocessors) : parts;
  for (const [name, value, most] of [
    ['multiprocessors', multiprocessors, 2 ** 16],
    ['splits', splits, mostSplits],
  ] as const)
    if (!(Number.isInteger(value) && value >= 1 && value <= most))
      throw new RequestError(`${name} is ${value}; give a whole number from 1 to ${most}`);
  if (splits > 1 && splits >= shape.queries)
    throw new RequestError(
      `splits is ${splits} of ${shape.queries} queries; the flashinfer model merges fewer parts than queries`,
    );
  return { architecture, multiprocessors, splits };
}
