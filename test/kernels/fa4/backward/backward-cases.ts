import { runKernelModel } from '../../../../kernels/index.js';
import {
  fa4BackwardConfiguration,
  backwardFormat,
  type Fa4BackwardConfiguration,
} from '../../../../kernels/fa4/backward/configuration.js';
import { fa4BackwardRecipe } from '../../../../kernels/fa4/backward/model.js';
import {
  createBackward,
  type Backward,
  type BackwardOptions,
} from '../../../../kernels/online-softmax/backward/backward.js';
import type { BackwardTensors } from '../../../../kernels/online-softmax/backward/head-pass.js';
import type { BackwardRecipe } from '../../../../kernels/online-softmax/backward/recipe.js';
import { problemShape, type Problem } from '../../../../src/problem/index.js';
import {
  filledProblem,
  pseudorandom,
  sequencesOf,
  tensor,
  type Fills,
  type ProblemFrame,
} from '../../../setup/problems.js';
import { bellShaped } from '../../../audit/gradients/gradient-case.js';

/** A problem by name. */
export interface BackwardCase extends ProblemFrame {
  readonly name: string;
  readonly changes?: Partial<Problem>;
  readonly configuration?: Partial<Fa4BackwardConfiguration>;
  /** Default about normal numbers. */
  readonly fills?: Fills;
}

const seen = pseudorandom(5);

/** Numbers that lie about one. */
function about(middle: number, seed: number): () => number {
  const normal = bellShaped(seed);
  return () => middle + normal() / 8;
}

/** Small problems of every feature that the backward takes. */
export const backwardCases: readonly BackwardCase[] = [
  { name: 'ragged', queries: 21, keys: 37, dim: 32 },
  { name: 'fp16', format: 'fp16', queries: 18, keys: 33, dim: 32 },
  { name: 'causal, more keys', queries: 20, keys: 45, dim: 32, changes: { causal: true } },
  { name: 'causal, more queries', queries: 45, keys: 20, dim: 32, changes: { causal: true } },
  {
    name: 'window',
    queries: 40,
    keys: 40,
    dim: 32,
    changes: { window: { left: 9, right: 3 } },
  },
  { name: 'softcap', queries: 20, keys: 35, dim: 32, changes: { softcap: 1.5 } },
  { name: 'grouped', heads: 4, kvHeads: 2, queries: 20, keys: 19, dim: 32 },
  { name: 'batches', batch: 2, heads: 2, queries: 10, keys: 19, dim: 32 },
  { name: 'other dims', queries: 20, keys: 19, dim: 64, vDim: 96 },
  { name: 'two CTAs', queries: 20, keys: 50, dim: 128, vDim: 32 },
  { name: 'dims 192 and 128', queries: 17, keys: 20, dim: 192, vDim: 128 },
  { name: 'dim 256', queries: 20, keys: 37, dim: 256 },
  {
    name: 'dim 256, causal, grouped',
    heads: 2,
    kvHeads: 1,
    queries: 21,
    keys: 40,
    dim: 256,
    changes: { causal: true },
  },
  {
    name: 'a mask',
    queries: 20,
    keys: 40,
    dim: 32,
    changes: {
      mask: {
        shape: [20, 40],
        data: Uint8Array.from({ length: 800 }, () => (seen() < 0.6 ? 1 : 0)),
      },
    },
  },
  {
    name: 'packed sequences',
    queries: 40,
    keys: 50,
    dim: 32,
    heads: 2,
    kvHeads: 1,
    changes: {
      causal: true,
      sequences: sequencesOf([
        [17, 20],
        [0, 9],
        [23, 21],
      ]),
    },
  },
  {
    // Exponents of which a unit in the last place shows in P.
    name: 'large scores',
    queries: 20,
    keys: 40,
    dim: 32,
    fills: { q: about(8, 51), k: about(64, 53), v: bellShaped(57) },
  },
  {
    name: 'a sink',
    queries: 20,
    keys: 20,
    dim: 32,
    changes: { sink: { logits: tensor('fp32', [1], () => 0.7), inLse: true } },
  },
];

/** A case made ready: its problem, and what the backward reads beside it. */
export interface PreparedCase {
  readonly problem: Problem;
  readonly tensors: BackwardTensors;
  readonly recipe: BackwardRecipe;
  /** @param options as of `createBackward` */
  readonly backward: (options?: BackwardOptions) => Backward;
}

/** Blocks of 16, so that small problems have several. */
export const smallBlocks = { blockQueries: 16, blockKeys: 16 } as const;

/** A case with the forward of fa4, in small blocks unless it says otherwise. */
export function prepareCase(
  chosen: BackwardCase,
  configuration: Partial<Fa4BackwardConfiguration> = {},
): PreparedCase {
  const problem = filledProblem(chosen, chosen.fills ?? bellShaped(17), chosen.changes);
  const shape = problemShape(problem);
  const { batch, heads, queries, vDim } = shape;
  const dout = tensor(problem.q.format, [batch, heads, queries, vDim], bellShaped(23));
  const { out, lse } = runKernelModel('fa4', problem);
  const tensors = { dout, out, lse };
  const recipe = fa4BackwardRecipe(
    problem,
    backwardFormat(problem, shape, dout),
    fa4BackwardConfiguration(shape, { ...smallBlocks, ...chosen.configuration, ...configuration }),
  );
  return {
    problem,
    tensors,
    recipe,
    backward: (options) => createBackward(problem, shape, recipe, tensors, options),
  };
}

/** The gradients of all key/value heads. */
export function runAll(backward: Backward) {
  const { batch, kvHeads } = backward.shape;
  return Array.from({ length: batch * kvHeads }, (_, kvHead) => backward.run(kvHead));
}
