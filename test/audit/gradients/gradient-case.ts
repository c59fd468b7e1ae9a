import { attentionGradients } from '../../../oracles/index.js';
import type { GradientTensors } from '../../../src/audit/index.js';
import type { FormatName } from '../../../src/formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../../src/problem/index.js';
import { encode } from '../damage.js';
import { filledProblem, pseudorandom, tensor, type ProblemFrame } from '../../setup/problems.js';

/** The gradients that an audit judges. */
export type Judged = 'dq' | 'dk' | 'dv';

/** Numbers of the gradients, [batch, heads or kv heads, queries or keys, dim]. */
export type GradientValues = Readonly<Record<Judged, Float64Array>>;

/** A problem, dO, and exact gradients. */
export interface GradientCase {
  readonly problem: Problem;
  readonly dout: Tensor;
  readonly exact: GradientValues;
  readonly shapes: Readonly<Record<Judged, readonly number[]>>;
}

/** Numbers that are about normal: sums of uniform ones. */
export function bellShaped(seed: number): () => number {
  const uniform = pseudorandom(seed);
  return () => {
    let sum = 0;
    for (let i = 0; i < 6; i++) sum += uniform();
    return sum / Math.SQRT2;
  };
}

/** Exact gradients of some dO, by default of about normal numbers. */
export function gradientCase(problem: Problem, dout?: Tensor): GradientCase {
  const { batch, heads, kvHeads, queries, keys, qkDim, vDim } = problemShape(problem);
  const shape = [batch, heads, queries, vDim];
  const given = dout ?? tensor(problem.q.format, shape, bellShaped(99));
  const { dq, dk, dv } = attentionGradients(problem, given);
  return {
    problem,
    dout: given,
    exact: { dq: dq!.values, dk: dk!.values, dv: dv!.values },
    shapes: {
      dq: [batch, heads, queries, qkDim],
      dk: [batch, kvHeads, keys, qkDim],
      dv: [batch, kvHeads, keys, vDim],
    },
  };
}

/** A case of about normal numbers. */
export function normalCase(
  frame: ProblemFrame,
  seed: number,
  changes: Partial<Problem> = {},
): GradientCase {
  return gradientCase(filledProblem(frame, bellShaped(seed), changes));
}

/** Gradients as a kernel gives them: rounded to a format, by default that of the problem. */
export function roundedGradients(
  { problem, dout, shapes }: GradientCase,
  values: Partial<GradientValues>,
  format: FormatName = problem.q.format,
): GradientTensors {
  const given = Object.entries(values).map(([name, of]) => [
    name,
    encode(of, format, shapes[name as Judged]),
  ]);
  return { dout, ...(Object.fromEntries(given) as Partial<Record<Judged, Tensor>>) };
}
