import { describe, expect, it } from 'vitest';
import { anyGradientPremises } from '../../../src/audit/index.js';
import { explains, isAsPredicted } from '../../../src/audit/gradients/diagnosis/prediction.js';
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
