import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { gradientUnits } from '../../../src/audit/gradients/row-units.js';
import {
  alarmDeviations,
  anyGradientPremises,
  measureGradients,
  usualFalseAlarmRate,
} from '../../../src/audit/index.js';
import { decodeTensor, formats, round } from '../../../src/formats/index.js';
import { problemShape } from '../../../src/problem/index.js';
import { reachGradientVerdict } from './definitions/made-judgements.js';
import { gradientsJudged, gradientCases } from '../sharp-faults/gradient-cases.js';
import { filledProblem, tensor } from '../../setup/problems.js';
import { bellShaped } from './gradient-case.js';

/** Σ x². */
const squared = (numbers: readonly number[]) => numbers.reduce((sum, x) => sum + x * x, 0);
const summed = (numbers: readonly number[]) => numbers.reduce((sum, x) => sum + x, 0);

describe('the limits of sums over a gradient', () => {
  // As many deviations as one false alarm of all would take if every element were a test of its own.
  const { measured, together } = gradientCases.plain();
  const { gradients } = measured;
  const elements = gradients.dq.exact.values.length;
  const deviations = alarmDeviations(elements, usualFalseAlarmRate / 2);

  it.each(['dq', 'dv'] as const)('are what independent rows of %s add up to', (name) => {
    const { exact, bound, shape } = gradients[name];
    const columns = name === 'dq' ? shape.qkDim : shape.vDim;
    const rowsOfHead = name === 'dq' ? shape.queries : shape.keys;
    const judged = gradientsJudged('plain', {
      [name]: exact.values.map((x) => x * (1 + 2 ** -30)),
    });
    for (const { test, head, column, firstRow, rows, threshold } of judged[0].structure) {
      const place = Array.from({ length: rows }, (_, i) => head * rowsOfHead + firstRow + i);
      const common = name === 'dv' ? together.dv : null;
      // Of a row what it adds to the sum, and what of that is random or not.
      const of = (row: number) => {
        const at = Array.from({ length: columns }, (_, c) => row * columns + c);
        const ofSum = column === null ? at : [row * columns + column];
        const weight = (i: number) => (column === null ? Math.abs(exact.values[i]) : 1);
        return {
          systematic: summed(ofSum.map((i) => weight(i) * bound.systematic[i])),
          random: summed(ofSum.map((i) => weight(i) * bound.deviation[i])),
          length: Math.sqrt(squared(at.map((i) => exact.values[i]))),
        };
      };
      const parts = place.map(of);
      const ofAll =
        common === null
          ? 0
          : column === null
            ? common.norm[head] * Math.max(...parts.map(({ length }) => length))
            : common.columns[head * columns + column];
      const random = Math.sqrt(squared([...parts.map((part) => part.random), ofAll]));
      const limit = summed(parts.map(({ systematic }) => systematic)) + deviations * random;
      const size = test === 'scale' ? squared(parts.map(({ length }) => length)) : 1;
      expect(threshold * size, test).toBeLessThanOrEqual(limit);
      expect(threshold * size, test).toBeGreaterThan(0.75 * limit);
    }
  });
});

describe('rows of a gradient', () => {
  it('err alike where they agree to twelve bits, and else apart', () => {
    const exact = (...second: readonly number[]) => Float64Array.of(1.1, -0.7, ...second);
    const isShared = (values: Float64Array) => [...gradientUnits(values, 2).isShared];
    expect(isShared(exact(1.1, -0.7))).toEqual([1, 1]);
    expect(isShared(exact(1.1 * (1 + 2 ** -16), -0.7))).toEqual([1, 1]);
    expect(isShared(exact(1.1, -0.7 * (1 + 2 ** -9)))).toEqual([0, 0]);
    expect(isShared(exact(1.1 * (1 - 2 ** -9), -0.7))).toEqual([0, 0]);
  });
});

describe('the deviation that is expected', () => {
  it('is that of a stored O, rounded to nearest, where nothing else errs as much', () => {
    const [queries, keys, dim] = [96, 64, 16] as const;
    const random = bellShaped(3);
    // Values that hardly differ from 100, of which bf16 holds every half: D errs by far more than dP − D is.
    const problem = filledProblem(
      { queries, keys, dim },
      { q: random, k: random, v: () => 100 + random() },
    );
    const dout = tensor('bf16', [1, 1, queries, dim], random);
    const { gradients } = measureGradients(problem, dout, {
      premises: { ...anyGradientPremises(problem, 'fp64'), o: 'bf16', delta: 'stored-output' },
      given: { out: null, lse: null },
    });
    const { deviation } = gradients.dq.bound;
    const exactOut = attentionOracle(problem).quantities.out.values;
    const meanKey = attentionOracle({ ...problem, v: problem.k }).quantities.out.values;
    const weights = decodeTensor(dout);
    const errors = Array.from({ length: queries }, (_, row) => {
      const at = Array.from({ length: dim }, (_, c) => row * dim + c);
      return summed(at.map((i) => weights[i] * (round(formats.bf16, exactOut[i]) - exactOut[i])));
    });
    const moved = deviation.map((_, i) => problem.scale * errors[Math.floor(i / dim)] * meanKey[i]);
    const ratio = Math.sqrt(squared([...deviation]) / squared([...moved]));
    expect(ratio).toBeGreaterThan(0.85);
    expect(ratio).toBeLessThan(1.3);
  });

  it('of a sink is of as many terms as it has rows', () => {
    const { problem, measured } = gradientCases.shared();
    const { batch, heads, queries } = problemShape(problem);
    const { techniques, mean, reference } = measured;
    const premises = anyGradientPremises(problem, 'fp64');
    const logits = decodeTensor(problem.sink!.logits);
    const terms = new Float64Array(heads);
    mean.values.forEach((x, row) => {
      const head = Math.floor(row / queries) % heads;
      terms[head] += Math.abs(Math.exp(logits[head] - reference.denominator[row]) * x);
    });
    const { worst } = techniques.dsink!.techniques.find(
      ({ technique }) => technique === 'dsink-accumulate',
    )!;
    const ofTerms = (batch * queries * premises.accumulation * summed([...terms])) / heads;
    expect(worst / ofTerms).toBeLessThan(1.05);
    expect(worst / ofTerms).toBeGreaterThan(0.95);
  });
});

describe('the verdict on gradients', () => {
  const judged = gradientsJudged('plain', {
    dq: gradientCases.plain().measured.gradients.dq.exact.values,
    dv: gradientCases.plain().measured.gradients.dv.exact.values,
  });

  it('is no pass where one of them has no bound', () => {
    const unbounded = judged.map((one) =>
      one.quantity.name === 'dv'
        ? { ...one, elements: { ...one.elements, unbounded: one.elements.elements } }
        : one,
    );
    expect(reachGradientVerdict(judged, [], [], null)).toMatchObject({ pass: true, judged: true });
    expect(reachGradientVerdict(unbounded, [], [], null)).toMatchObject({
      pass: false,
      judged: false,
      sentence: 'NOT JUDGED: no element of dV has a bound.',
    });
  });
});
