import type { FailedGradients } from '../../../../src/audit/gradients/diagnosis/failed-gradients.js';
import { gradientQuantities } from '../../../../src/audit/gradients/gradient-quantities.js';
import { problemShape, quantityShape, type Problem } from '../../../../src/problem/index.js';
import { filledProblem, sequencesOf } from '../../../setup/problems.js';
import { drawFrom, type Draw } from './random-pairs.js';

/** The gradients of Q, K and V. */
export type Named = 'dq' | 'dk' | 'dv';

/** Elements of a gradient. */
export interface BareGradient {
  readonly values: Float64Array;
  readonly exact: Float64Array;
  readonly shift: Float64Array;
  readonly systematic: Float64Array;
  readonly deviation: Float64Array;
  readonly total: Float64Array;
}

/** Gradients that failed, with no more than causes read that compute no gradients: these are what they are drawn. */
export function bareFailure(
  problem: Problem,
  gradients: Readonly<Partial<Record<Named, BareGradient>>>,
  failing: readonly Named[],
  lse: readonly number[] = [],
): FailedGradients {
  const shape = problemShape(problem);
  const measured = Object.entries(gradients).map(([name, { exact, ...bound }]) => [
    name,
    { exact: { values: exact }, bound },
  ]);
  return {
    problem,
    measured: {
      shape,
      gradients: Object.fromEntries(measured),
      reference: {
        denominator: Float64Array.from(lse),
        quantities: { lse: { values: Float64Array.from(lse) } },
      },
    },
    given: gradientQuantities.flatMap((quantity) => {
      const one = gradients[quantity.name];
      return one === undefined ? [] : [{ quantity, format: 'fp64', values: one.values }];
    }),
    findings: failing.map((quantity) => ({ quantity, test: `${quantity}-bound` })),
  } as unknown as FailedGradients;
}

/** A gradient that is exact, with bounds, some elements of which are zero. */
export function drawGradient(
  problem: Problem,
  name: Named,
  { between, flips }: Draw,
): BareGradient {
  const quantity = gradientQuantities.find((one) => one.name === name)!;
  const length = quantityShape(quantity, problemShape(problem)).reduce((a, b) => a * b, 1);
  const numbers = (make: () => number) => Float64Array.from({ length }, make);
  const exact = numbers(() => (flips() ? 1 : -1) * between(0.5, 2));
  const shift = numbers(() => between(-0.1, 0.1));
  return {
    values: exact.map((x, i) => x + shift[i]),
    exact,
    shift,
    systematic: numbers(() => between(0.001, 0.01)),
    deviation: numbers(() => between(0.001, 0.01)),
    total: numbers(() => between(0.1, 0.2)),
  };
}

/** Problems of several heads: of a batch, or packed with a sequence that has no queries. */
export function drawProblem(seed: number, isPacked: boolean, groupSize: number): Problem {
  const { between } = drawFrom(seed);
  const kvHeads = 2;
  const frame = { heads: kvHeads * groupSize, kvHeads, dim: 3, vDim: 2 };
  if (!isPacked)
    return filledProblem({ ...frame, batch: 2, queries: 37, keys: 9 }, () => between(-1, 1));
  const sequences = sequencesOf([
    [20, 4],
    [0, 3],
    [34, 2],
  ]);
  return filledProblem({ ...frame, queries: 54, keys: 9 }, () => between(-1, 1), { sequences });
}
