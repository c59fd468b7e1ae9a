/** The exact gradients are the slopes of the exact forward: differences of O in double-double, which knows nothing of gradients. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  addDoubleDouble,
  doubleDouble,
  multiplyDoubleDoubleByFloat64,
  subtractDoubleDouble,
  type DoubleDouble,
} from '../../../src/arith/index.js';
import { exactAttentionRow, type RowPlace } from '../../../src/meaning/contracts/index.js';
import {
  compareGradients,
  gradientNames,
  type GradientName,
} from '../../../src/meaning/gradients/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../../src/problem/index.js';
import { boxMullerNumbers, filledProblem, tensor, uniformNumbers } from '../../setup/problems.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { everyPlace } from '../contracts/real-values.js';
import { numbersIn } from './backward-values.js';

const inputOf = { dq: 'q', dk: 'k', dv: 'v' } as const;

/** Σ dO·O of a problem. */
function weighedOutput(problem: Problem, dout: Tensor): DoubleDouble {
  const { heads, queries, vDim } = problemShape(problem);
  const weights = decodeTensor(dout);
  return everyPlace(problem)
    .flatMap((place) =>
      exactAttentionRow(problem, place).out.map((o, c) =>
        multiplyDoubleDoubleByFloat64(
          o,
          weights[((place.batch * heads + place.head) * queries + place.row) * vDim + c],
        ),
      ),
    )
    .reduce(addDoubleDouble, doubleDouble(0));
}

/** A problem with an element of an input moved. */
function moved(problem: Problem, input: 'q' | 'k' | 'v', element: number, by: number): Problem {
  const data = decodeTensor(problem[input]);
  data[element] += by;
  return { ...problem, [input]: { ...problem[input], data } };
}

/** The slope of Σ dO·O in an element, by central differences of which the terms h², h⁴ and h⁶ are taken away. */
function slopeOf(problem: Problem, dout: Tensor, input: 'q' | 'k' | 'v', element: number) {
  const differences = [10, 11, 12, 13].map((exponent) => {
    const h = 2 ** -exponent;
    const [above, below] = [h, -h].map((by) =>
      weighedOutput(moved(problem, input, element, by), dout),
    );
    return multiplyDoubleDoubleByFloat64(subtractDoubleDouble(above, below), 1 / (2 * h));
  });
  let level = differences;
  for (const factor of [4, 16, 64])
    level = level.slice(1).map((finer, i) => {
      const change = subtractDoubleDouble(finer, level[i]);
      return addDoubleDouble(finer, multiplyDoubleDoubleByFloat64(change, 1 / (factor - 1)));
    });
  return level[0];
}

const numbers = boxMullerNumbers(uniformNumbers(testSeed));
const frame = { heads: 2, kvHeads: 1, queries: 3, keys: 4, dim: 3, format: 'fp64' } as const;
const changes: Readonly<Record<string, Partial<Problem>>> = {
  plain: {},
  causal: { causal: true },
  'a softcap': { softcap: 2 },
  'a softcap and a bias': { softcap: 2, bias: tensor('fp32', [3, 4], numbers) },
  'a sink': { sink: { logits: tensor('fp32', [2], numbers), inLse: true } },
  dropout: {
    dropout: {
      kept: { shape: [3, 4], data: Uint8Array.from([1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 1]) },
      probability: 0.25,
    },
  },
};

it.each(Object.entries(changes))('with %s', (_, change) => {
  const problem = filledProblem(frame, numbers, { scale: 0.7, ...change });
  const dout = tensor('fp64', [1, 2, 3, 3], numbers);
  const inputs = { dout: numbersIn(problem, dout), out: null, lse: null, delta: null };
  const sizes = { dq: [2, 3, 3], dk: [1, 4, 3], dv: [1, 4, 3] } as const;
  const drawn = fc.tuple(fc.constantFrom(...gradientNames), fc.nat({ max: 11 }));
  fc.assert(
    fc.property(drawn, ([name, at]) => {
      const [, rows, columns] = sizes[name];
      const place: RowPlace = { batch: 0, head: 0, row: Math.floor(at / columns) % rows };
      const element = place.row * columns + (at % columns);
      const slope = slopeOf(problem, dout, inputOf[name], element);
      const none: Readonly<Record<GradientName, readonly RowPlace[]>> = { dq: [], dk: [], dv: [] };
      const [{ worstIdeal, compared }] = compareGradients(
        problem,
        inputs,
        { ...none, [name]: [place] },
        { decisive: (__, ___, column) => (column === at % columns ? slope : null), others: null },
      );
      expect(compared).toBe(1);
      expect(worstIdeal?.distance).toBeLessThan(1e-16);
    }),
    { seed: testSeed, numRuns: scaled(6) },
  );
});
