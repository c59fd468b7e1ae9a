import { runKernelModel } from '../../../../kernels/index.js';
import type { FormatName } from '../../../../src/formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../../../src/problem/index.js';
import {
  filledProblem,
  uniformNumbers,
  sumNormalNumbers,
  tensor,
  type ProblemFrame,
} from '../../../setup/problems.js';

/** A problem whose gradients a GPU computed in FlashAttention-4's order of operations. */
export interface SiliconCase extends ProblemFrame {
  readonly name: string;
  readonly format: FormatName;
  readonly ctas: 1 | 2;
  /** In which order the shares of key blocks are added to dQ. */
  readonly order: 'ascending' | 'descending';
  /** What normal numbers are multiplied by in Q; default 1. */
  readonly spread?: number;
  readonly changes?: Partial<Problem>;
}

const plain = { format: 'bf16', ctas: 1, order: 'ascending' } as const;

/** What `fixtures/capture/backward` captured, in the order of the seeds. */
export const siliconCases: readonly SiliconCase[] = [
  { ...plain, name: 'dim-64', queries: 256, keys: 384, dim: 64 },
  { ...plain, name: 'dim-128', queries: 256, keys: 512, dim: 128 },
  { ...plain, name: 'dim-128-pairs', queries: 256, keys: 512, dim: 128, ctas: 2 },
  { ...plain, name: 'ragged-pairs', queries: 130, keys: 333, dim: 128, ctas: 2 },
  {
    ...plain,
    name: 'causal',
    queries: 300,
    keys: 300,
    dim: 64,
    order: 'descending',
    changes: { causal: true },
  },
  {
    ...plain,
    name: 'causal-pairs',
    queries: 384,
    keys: 384,
    dim: 128,
    ctas: 2,
    order: 'descending',
    changes: { causal: true },
  },
  {
    ...plain,
    name: 'more-queries-causal',
    queries: 260,
    keys: 140,
    dim: 64,
    order: 'descending',
    changes: { causal: true },
  },
  {
    ...plain,
    name: 'window',
    queries: 300,
    keys: 300,
    dim: 64,
    order: 'descending',
    changes: { window: { left: 70, right: 5 } },
  },
  { ...plain, name: 'grouped', heads: 6, kvHeads: 2, queries: 192, keys: 200, dim: 64 },
  { ...plain, name: 'dim-192-128', queries: 256, keys: 300, dim: 192, vDim: 128, ctas: 2 },
  { ...plain, name: 'dim-96', queries: 140, keys: 256, dim: 96 },
  { ...plain, name: 'fp16', format: 'fp16', queries: 256, keys: 256, dim: 64 },
  {
    ...plain,
    name: 'fp16-causal-pairs',
    format: 'fp16',
    queries: 256,
    keys: 256,
    dim: 128,
    ctas: 2,
    order: 'descending',
    changes: { causal: true },
  },
  {
    ...plain,
    name: 'softcap',
    queries: 200,
    keys: 256,
    dim: 64,
    spread: 6,
    changes: { softcap: 5 },
  },
  { ...plain, name: 'sharp', queries: 256, keys: 256, dim: 64, spread: 12 },
];

/** A case's problem, dO, and what a forward stored of it. */
export interface SiliconProblem {
  readonly problem: Problem;
  readonly dout: Tensor;
  readonly out: Tensor;
  readonly lse: Tensor;
}

/** The problem of a case: normal numbers from a seed of its own. */
export function siliconProblem(chosen: SiliconCase): SiliconProblem {
  const { changes = {}, spread = 1, format } = chosen;
  const normal = sumNormalNumbers(uniformNumbers(4000 + siliconCases.indexOf(chosen)));
  const fills = { q: () => spread * normal(), k: normal, v: normal };
  const problem = filledProblem({ batch: null, ...chosen }, fills, changes);
  const { heads, queries, vDim } = problemShape(problem);
  const dout = tensor(format, [heads, queries, vDim], normal);
  const { out, lse } = runKernelModel('fa4', problem, new Map([['lse.fused', 'false']]));
  return { problem, dout, out, lse };
}
