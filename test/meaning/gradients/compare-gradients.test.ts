import { describe, expect, it } from 'vitest';
import { doubleDouble } from '../../../src/arith/index.js';
import {
  compareGradients,
  gradientNames,
  namedScales,
  type GradientName,
  type GradientRealOf,
} from '../../../src/meaning/gradients/index.js';
import { namedFactors } from '../../../src/meaning/contracts/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { attentionGradients } from '../../../oracles/index.js';
import { featureProblems, seededRandom } from '../../kernels/features/index.js';
import { drawDout } from '../../kernels/gradients/index.js';
import { boxMullerNumbers, filledProblem, tensor, uniformNumbers } from '../../setup/problems.js';
import { sampled, testSeed } from '../../setup/effort.js';
import { backwardWith, everyGradientPlace, numbersIn } from './backward-values.js';

const columns = { dq: 'qkDim', dk: 'qkDim', dv: 'vDim' } as const;

/** The gradients of the oracle as real values. */
function oracleReals(problem: Problem, dout: Problem['q']): GradientRealOf {
  const accuracy = { outputFormat: 'fp32', ulpFraction: 0, magnitudeFraction: 2 ** -46 } as const;
  const exact = attentionGradients(problem, dout, { accuracy });
  const shape = problemShape(problem);
  return (name, { batch, head, row }, column) => {
    const [heads, rows] =
      name === 'dq' ? [shape.heads, shape.queries] : [shape.kvHeads, shape.keys];
    const at = ((batch * heads + head) * rows + row) * shape[columns[name]] + column;
    return doubleDouble(exact[name]?.values[at] ?? NaN);
  };
}

const names = Object.keys(featureProblems);

describe('the exact gradients', () => {
  it.each(sampled(names, 3))('are those of the oracle: %s', (name) => {
    const problem = featureProblems[name](seededRandom(testSeed));
    // A selection of rows has no gradients of keys.
    if (problem.rows !== undefined) return;
    const dout = drawDout(seededRandom(testSeed + 1), problem);
    const places = everyGradientPlace(problem);
    const inputs = { dout: numbersIn(problem, dout), out: null, lse: null, delta: null };
    const reals = { decisive: oracleReals(problem, dout), others: null };
    const found = compareGradients(problem, inputs, places, reals);
    expect(found.map(({ gradient }) => gradient)).toEqual(gradientNames);
    for (const { gradient, worstIdeal, compared, withoutMeaning } of found) {
      expect(worstIdeal?.distance, gradient).toBeLessThan(2 ** -45);
      expect([compared > 0, withoutMeaning]).toEqual([true, 0]);
    }
  });
});

const numbers = boxMullerNumbers(uniformNumbers(testSeed));
/** No power of 2, and no fp32 number: its named factors differ from one another. */
const problem = filledProblem({ heads: 2, kvHeads: 1, queries: 5, keys: 7, dim: 4 }, numbers, {
  scale: 0.3,
});
const dout = tensor('bf16', [1, 2, 5, 4], numbers);
const places = everyGradientPlace(problem);
const log2e = Math.fround(Math.LOG2E);

const factors = ['scale·log2 e', 'scale·fp32(log2 e)', 'fp32(scale·log2 e)'].map((name) =>
  namedFactors(0.3).find((one) => one.name === name)!,
);
const scales = ['scale', 'fp32(scale)', 'scale·fp32(log2 e)·fp32(ln 2)'].map((name) =>
  namedScales(0.3).find((one) => one.name === name)!,
);

describe('the form of a backward kernel', () => {
  const lseUnits = { 'lse·log2 e': null, 'lse·fp32(log2 e)': log2e, 'lse of base 2': 1 };
  it.each(Object.entries(lseUnits))('is found with its constants: %s', (unitName, unit) => {
    factors.forEach((factor, i) => {
      const scale = scales[i];
      const kernel = { factor: factor.value, unit, scale: scale.value, delta: 'given' } as const;
      const { inputs, real } = backwardWith(problem, dout, kernel);
      const found = compareGradients(problem, inputs, places, { decisive: real, others: null });
      for (const { gradient, weights, delta, factor: behind, worst, worstIdeal } of found) {
        expect(weights).toBe(`2^(${factor.name}·q·k − ${unitName})`);
        expect(delta).toBe(gradient === 'dv' ? null : 'delta as given');
        if (gradient !== 'dv') expect(behind.name).toBe(scale.name);
        expect(worst?.distance, gradient).toBeLessThan(1e-28);
        // The LSE and δ that are given are rounded to fp32.
        expect(worstIdeal?.distance, gradient).toBeGreaterThan(1e-11);
        expect(worstIdeal?.distance, gradient).toBeLessThan(1e-6);
      }
    });
  });

  it.each([
    ['own', 'Σ P·dP'],
    ['of O', 'Σ dO·O of the given O'],
  ] as const)('tells where δ comes from: %s', (delta, name) => {
    const kernel = { factor: factors[1].value, unit: null, scale: scales[0].value, delta };
    const { inputs, real } = backwardWith(problem, dout, kernel);
    const found = compareGradients(problem, inputs, places, { decisive: real, others: null });
    expect(found.map((one) => one.delta)).toEqual([name, name, null]);
    for (const { worst } of found) expect(worst?.distance).toBeLessThan(1e-28);
  });

  it('is the softmax of its own sums where no LSE is given, and then exact', () => {
    const { inputs, real } = backwardWith(problem, dout, {
      factor: factors[0].value,
      unit: 'own',
      scale: scales[0].value,
      delta: 'own',
    });
    const none = { ...inputs, lse: null, delta: null, out: null };
    const found = compareGradients(problem, none, places, { decisive: real, others: null });
    for (const { weights, worst, worstIdeal } of found) {
      expect(weights).toBe('2^(scale·log2 e·q·k) ÷ its sum');
      expect(worst?.distance).toBeLessThan(1e-28);
      expect(worstIdeal?.distance).toBeLessThan(1e-28);
    }
  });

  it('has no name for another factor, and none is near', () => {
    const [{ value }] = factors;
    const scale = doubleDouble(0.3 * (1 + 2 ** -30));
    const { inputs, real } = backwardWith(problem, dout, {
      factor: value,
      unit: null,
      delta: 'given',
      scale,
    });
    const found = compareGradients(problem, inputs, places, { decisive: real, others: null });
    expect(found.map(({ factor }) => factor.name)).toEqual([null, null, 'scale']);
    expect(found[0].factor.fromExact).toBeCloseTo(2 ** -30, 14);
  });
});

describe('the comparison of gradients', () => {
  const kernel = {
    factor: factors[1].value,
    unit: 1,
    delta: 'given',
    scale: scales[0].value,
  } as const;
  const { inputs, real } = backwardWith(problem, dout, kernel);

  it.each(gradientNames)(
    'says where a value of %s is wrong, and how many have no meaning',
    (name) => {
      const wrong: GradientRealOf = (gradient, place, column) => {
        const value = real(gradient, place, column);
        if (gradient !== name || value === null) return value;
        if (place.row === 1 && column === 2) return null;
        const isWrong = place.row === 4 && column === 3;
        return isWrong ? doubleDouble(value.high * (1 + 2 ** -30)) : value;
      };
      const found = compareGradients(problem, inputs, places, { decisive: wrong, others: real });
      for (const { gradient, worst, worstOfOthers, compared, withoutMeaning } of found) {
        const isIt = gradient === name;
        const heads = gradient === 'dq' ? 2 : 1;
        expect(withoutMeaning).toBe(isIt ? heads : 0);
        expect(compared + withoutMeaning).toBe(4 * places[gradient as GradientName].length);
        expect((worst?.distance ?? 0) > 2 ** -50).toBe(isIt);
        if (isIt) expect(worst).toMatchObject({ place: { row: 4 }, column: 3 });
        expect(worstOfOthers?.distance).toBeLessThan(1e-28);
      }
    },
  );

  it('sees a key that is left out, in all gradients', () => {
    const mask = { shape: [7], data: Uint8Array.from([1, 1, 1, 0, 1, 1, 1]) };
    const lacking = backwardWith({ ...problem, mask }, dout, kernel).real;
    const found = compareGradients(problem, inputs, places, { decisive: lacking, others: null });
    for (const { worst } of found) expect(worst?.distance).toBeGreaterThan(1e-6);
  });
});
