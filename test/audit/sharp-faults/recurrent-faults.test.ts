import { describe, expect, it } from 'vitest';
import { findingsOf, outputWords } from '../../../src/audit/findings.js';
import type { DrawnErrors } from '../../../src/audit/recurrent/draw-errors.js';
import { project, rangeOf } from '../../../src/audit/recurrent/draw-errors.js';
import { recurrentRows } from '../../../src/audit/recurrent/given-quantities.js';
import { judgeRecurrence } from '../../../src/audit/recurrent/judge-recurrence.js';
import { groupsOf, projectionsOf } from '../../../src/audit/recurrent/row-groups.js';
import { isBeyond } from '../../../src/audit/structure/error-statistic.js';
import { recurrentShape, type RecurrentProblem } from '../../../src/problem/index.js';
import { pseudorandom } from '../../setup/problems.js';
import { faultAt } from './fault-at.js';
import { recurrentFaults, sizes, type RecurrentStatisticName } from './recurrent-faults.js';

const { heads, tokens, columns } = sizes;
const length = heads * tokens * columns;
const count = 256;
const deviation = 2 ** -9;

const zeros = (shape: readonly number[]) => ({
  format: 'fp32' as const,
  shape,
  data: new Float32Array(shape.reduce((a, b) => a * b, 1)),
});
const problem: RecurrentProblem = {
  family: 'linear',
  q: zeros([1, tokens, heads, 4]),
  k: zeros([1, tokens, heads, 4]),
  v: zeros([1, tokens, heads, columns]),
};
const rows = recurrentRows('out', problem, recurrentShape(problem))!;
const groups = groupsOf(rows);

/** Sums of four numbers from −1 to 1, of variance 1. */
function bellShaped(seed: number): Float64Array {
  const random = pseudorandom(seed);
  return Float64Array.from({ length }, () => {
    const sum = random() + random() + random() + random();
    return (sum * Math.sqrt(3)) / 2;
  });
}

const exact = bellShaped(1);
const fromBefore = bellShaped(2);
const projections = projectionsOf('out', groups, exact, fromBefore);
const runs = Array.from({ length: count }, (_, i) => bellShaped(10 + i).map((x) => x * deviation));
const drawn: DrawnErrors = {
  squares: new Float64Array(length).fill(deviation ** 2),
  energies: groups.map((group) =>
    Float64Array.from(runs, (errors) => {
      const [first, end] = rangeOf(group, rows);
      return errors.subarray(first, end).reduce((sum, x) => sum + x * x, 0);
    }),
  ),
  projections: projections.map((one) =>
    Float64Array.from(runs, (errors) => project(errors, one, rows)),
  ),
  alike: {
    elements: new Float64Array(length),
    groups: new Float64Array(groups.length),
    projections: new Float64Array(projections.length),
  },
};

function judge(errors: Float64Array, worst: number) {
  const values = exact.map((x, i) => x + errors[i]);
  return judgeRecurrence(
    { quantity: rows.quantity, format: 'fp64', values },
    {
      drawnOf: { rows, format: 'fp64', exact, groups, projections },
      radius: new Float64Array(length),
      total: new Float64Array(length).fill(worst * deviation),
      draws: [{ count, errors: drawn }],
      falseAlarmRate: 1e-9,
    },
  );
}

/** The statistics that see errors. */
function seenBy(errors: Float64Array, worst: number): RecurrentStatisticName[] {
  const { elements, spread, structure } = judge(errors, worst);
  return [
    ...(elements.nonFinite > 0 ? ['non-finite' as const] : []),
    ...(elements.outside > 0 ? ['element-bound' as const] : []),
    ...(spread.outside > elements.outside ? ['element-spread' as const] : []),
    ...spread.results.flatMap(({ scope, measured, limit }) =>
      measured > limit ? [`rms ${scope}` as const] : [],
    ),
    ...structure.flatMap((one) =>
      isBeyond(one) ? [`${one.test} ${one.scope}` as RecurrentStatisticName] : [],
    ),
  ];
}

/** The share of its limit that a statistic uses. */
function usedBy(name: RecurrentStatisticName, errors: Float64Array, worst: number): number {
  const { elements, spread, structure } = judge(errors, worst);
  const [test, scope] = name.split(' ');
  if (name === 'element-bound') return elements.worstRatio;
  if (name === 'element-spread') return spread.worstRatio;
  if (test === 'rms') {
    const one = spread.results.find((result) => result.scope === scope)!;
    return one.measured / one.limit;
  }
  const one = structure.find((result) => result.test === test && result.scope === scope)!;
  return Math.abs(one.statistic) / one.threshold;
}

describe('a fault of a recurrence', () => {
  const names = Object.keys(recurrentFaults) as RecurrentStatisticName[];
  it.each(names)('is seen by %s alone', (name) => {
    const { worst, errors } = recurrentFaults[name];
    const of = errors({ exact, fromBefore, deviation });
    if (name === 'non-finite') {
      expect(seenBy(of, worst)).toEqual([name]);
      return;
    }
    const unit = of.map((x) => x * deviation);
    const at = faultAt(unit, (scaled) => usedBy(name, scaled, worst));
    expect(seenBy(at(1.02), worst)).toEqual([name]);
    expect(seenBy(at(0.98), worst)).toEqual([]);
  });

  it('is not seen where errors are as drawn', () => {
    for (const errors of runs.slice(0, 8)) expect(seenBy(errors, 1000)).toEqual([]);
  });

  it('is told in words', () => {
    const { errors } = recurrentFaults['chunk tile'];
    const of = errors({ exact, fromBefore, deviation }).map((x) => -x);
    const words = { ...outputWords, prefixesTests: true, arithmetic: 'any correct kernel' };
    const [first] = findingsOf([judge(of, 1e6)], words).filter(({ test }) => test === 'out-chunk');
    expect(first.statement).toMatch(
      /^the output on head 1, tokens 64 to 127 has .* of what the state before it adds/,
    );
  });
});
