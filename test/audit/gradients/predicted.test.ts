import { describe, expect, it } from 'vitest';
import { anyGradientPremises } from '../../../src/audit/index.js';
import {
  explains,
  isAsPredicted,
  isWithinBounds,
} from '../../../src/audit/gradients/diagnosis/prediction.js';
import {
  gradientQuantities,
  type GradientQuantityName,
} from '../../../src/audit/gradients/gradient-quantities.js';
import { gradientCases, judgeSpoiled, spoiledGradient } from '../sharp-faults/gradient-cases.js';
import { gradientFaults, type GradientFault } from '../sharp-faults/gradient-faults.js';
import { faultAt } from '../sharp-faults/fault-at.js';

const of = 'plain';
const judgement = gradientCases[of]();
const { problem, measured } = judgement;

/** A gradient that a kernel gave, its exact values and errors. */
function given(name: GradientQuantityName, errors: Float64Array | null = null) {
  const quantity = gradientQuantities.find((one) => one.name === name)!;
  const { values } = measured.gradients[name].exact;
  const data = errors === null ? values : values.map((x, i) => x + errors[i]);
  return { quantity, format: 'fp64', values: data } as const;
}

/** Errors of dV that one statistic sees, at some share of its limit. */
const errorsAt = (statistic: keyof typeof gradientFaults.dv, share: number) => {
  const fault: GradientFault = gradientFaults.dv[statistic];
  const uses = (errors: Float64Array) => judgeSpoiled(of, 'dv', errors).uses.get(statistic)!;
  return faultAt(fault.errors(spoiledGradient(of, 'dv')), uses)(share);
};

describe('a gradient that a cause predicts', () => {
  const prediction = { predicted: measured.gradients.dv.exact.values, sizes: null };
  const isPredicted = (errors: Float64Array | null) =>
    isAsPredicted(given('dv', errors), prediction, judgement);

  it('is as predicted with no errors beside it', () => {
    expect(isPredicted(null)).toBe(true);
  });

  const statistics = Object.keys(gradientFaults.dv) as (keyof typeof gradientFaults.dv)[];
  it.each(statistics)('is not where errors beside it are seen: %s', (statistic) => {
    // Beyond its limit wherever one gradient's share of the false alarms is all of them.
    expect(isPredicted(errorsAt(statistic, 1.1))).toBe(false);
    expect(isPredicted(errorsAt(statistic, 0.9))).toBe(true);
  });
});

describe('rows of a gradient are within the worst case of predicted ones', () => {
  const { dv } = measured.gradients;
  const { exact, bound } = dv;
  const shift = bound.total.map((x, i) => (i % 2 === 0 ? 3 : -2) * x);
  const shifted = {
    measured: {
      ...measured,
      gradients: { ...measured.gradients, dv: { ...dv, bound: { ...bound, shift } } },
    },
  };
  const isWithin = (errors: Float64Array, range: readonly [number, number], isShifted?: boolean) =>
    isWithinBounds(
      shifted,
      given('dv', errors),
      { predicted: exact.values, sizes: null, ...(isShifted !== undefined && { isShifted }) },
      range,
    );
  const rows = [8, 24] as const;
  const all = [0, exact.values.length] as const;

  it.each([1, -1])('beside the shift by the stored forward, %d times their bounds', (sign) => {
    const errors = (share: number) => shift.map((x, i) => x + sign * share * bound.total[i]);
    expect(isWithin(errors(0.99), all)).toBe(true);
    expect(isWithin(errors(1.01), all)).toBe(false);
    // A prediction that has the shift already is not shifted again.
    const own = (share: number) => bound.total.map((x) => sign * share * x);
    expect(isWithin(own(0.99), all, true)).toBe(true);
    expect(isWithin(own(1.01), all, true)).toBe(false);
    expect(isWithin(own(0.99), all, false)).toBe(false);
  });

  it('whatever the others are, and with each of their elements', () => {
    const [first, end] = rows;
    const within = shift.slice();
    const off = (at: number) => within.map((x, i) => (i === at ? x + 1.01 * bound.total[i] : x));
    expect([first - 1, end].map((at) => isWithin(off(at), rows))).toEqual([true, true]);
    expect([first, end - 1].map((at) => isWithin(off(at), rows))).toEqual([false, false]);
    expect(
      isWithin(
        within.map((x, i) => (i === first ? NaN : x)),
        rows,
      ),
    ).toBe(false);
  });
});

describe('a cause', () => {
  const [ofQueries, ofValues] = [given('dq'), given('dv')];
  const finding = (name: GradientQuantityName) =>
    ({ quantity: name, test: `${name}-bound`, isWorstCase: true, statement: '' }) as const;
  const explained = (failing: readonly GradientQuantityName[]) =>
    explains(
      {
        ...judgement,
        dout: problem.q,
        given: [ofQueries, ofValues],
        findings: failing.map(finding),
        forward: { out: null, lse: null },
        premises: anyGradientPremises(problem, 'fp64'),
      },
      { predicted: { dq: ofQueries.values } },
    );

  it('explains what it predicts, and nothing that fails beside it', () => {
    expect(explained(['dq'])).toBe(true);
    expect(explained(['dq', 'dv'])).toBe(false);
    expect(explained(['dv'])).toBe(false);
  });
});
