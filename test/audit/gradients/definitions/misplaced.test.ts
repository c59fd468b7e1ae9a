import { describe, expect, it } from 'vitest';
import {
  anyGradientPremises,
  gradientQuantities,
  measureGradients,
  usualFalseAlarmRate,
} from '../../../../src/audit/index.js';
import { describePlace } from '../../../../src/audit/rows/index.js';
import type { FailedGradients } from '../../../../src/audit/gradients/diagnosis/failed-gradients.js';
import { explains, type Prediction } from '../../../../src/audit/gradients/diagnosis/prediction.js';
import { placeShown } from '../../../../src/audit/gradients/diagnosis/showing.js';
import { movedFaults } from '../../../../src/audit/gradients/diagnosis/stored/moved-faults.js';
import { storedFaults } from '../../../../src/audit/gradients/diagnosis/stored/stored-faults.js';
import { leftOverFaults } from '../../../../src/audit/gradients/diagnosis/sums/left-over-faults.js';
import { gradientFindings } from '../../../../src/audit/gradients/gradient-findings.js';
import { judgeGradients } from '../../../../src/audit/gradients/judge-gradient.js';
import {
  measureMeanErrors,
  measureWeightErrors,
} from '../../../../src/audit/gradients/structure/mean-errors.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import { lazily } from '../../../../src/reuse.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';

const [batch, heads, queries, keys, qkDim, vDim] = [2, 3, 20, 36, 8, 6] as const;
type Name = 'dq' | 'dk' | 'dv';
const sizes = {
  dq: [batch * heads, queries, qkDim],
  dk: [batch * heads, keys, qkDim],
  dv: [batch * heads, keys, vDim],
} as const;

/** Gradients in fp64, so that they are what they are made. */
const measured = lazily(() => {
  const random = bellShaped(7);
  const problem = filledProblem({ batch, heads, queries, keys, dim: qkDim, vDim }, random);
  const dout = tensor('bf16', [batch, heads, queries, vDim], random);
  const premises = anyGradientPremises(problem, 'fp64');
  const forward = { out: null, lse: null };
  const measure = measureGradients(problem, dout, { premises, given: forward });
  const values = decodeTensor(dout);
  return {
    problem,
    dout,
    premises,
    forward,
    measured: measure,
    together: {
      dk: measureMeanErrors(problem, values, measure, premises),
      dv: measureWeightErrors(problem, values, measure),
    },
    falseAlarmRate: usualFalseAlarmRate,
  };
});

/** Gradients of which some are made of their exact values. */
function failedBy(
  changes: Partial<Record<Name, (exact: Float64Array) => Float64Array>>,
): FailedGradients {
  const of = measured();
  const given = gradientQuantities.map((quantity) => {
    const { values } = of.measured.gradients[quantity.name].exact;
    const changed = changes[quantity.name]?.(values) ?? values;
    return { quantity, format: 'fp64', values: changed } as const;
  });
  const findings = gradientFindings(judgeGradients(given, of), 'any correct kernel');
  return { ...of, given, findings };
}

type From = (head: number, row: number, column: number) => readonly [number, number, number] | null;

/** The elements of a gradient from elsewhere; null for zero. */
function from(name: Name, place: From) {
  const [, rows, columns] = sizes[name];
  return (exact: Float64Array) =>
    exact.map((_, i) => {
      const row = Math.floor(i / columns);
      const at = place(Math.floor(row / rows), row % rows, i % columns);
      return at === null ? 0 : exact[(at[0] * rows + at[1]) * columns + at[2]];
    });
}

/** A gradient with some elements multiplied. */
function times(name: Name, factor: (head: number, row: number, column: number) => number) {
  const [, rows, columns] = sizes[name];
  return (exact: Float64Array) =>
    exact.map((x, i) => {
      const row = Math.floor(i / columns);
      return x * factor(Math.floor(row / rows), row % rows, i % columns);
    });
}

/** What is said of gradients, and where. */
function said(
  family: (failed: FailedGradients) => Iterable<Prediction>,
  changes: Parameters<typeof failedBy>[0],
): string[] {
  const failed = failedBy(changes);
  return [...family(failed)]
    .filter((one) => explains(failed, one))
    .map((one) => {
      const place = placeShown(failed, one, null);
      const where = place === null ? 'nowhere' : describePlace({ ...place, rows: null });
      return `${one.id}: ${where}`;
    });
}

/** Heads of a batch entry in another order. */
const ordered =
  (order: readonly number[]): From =>
  (head, row, column) => [order[head], row, column];

describe('gradients that are right and elsewhere', () => {
  it.each<[string, Parameters<typeof failedBy>[0]]>([
    ['heads-moved: everywhere', { dk: from('dk', ordered([1, 2, 0, 4, 5, 3])) }],
    ['heads-moved: everywhere', { dq: from('dq', ordered([2, 0, 1, 5, 3, 4])) }],
    ['batches-exchanged: everywhere', { dv: from('dv', ordered([3, 4, 5, 0, 1, 2])) }],
    ['heads-permuted: sequence 1, heads 0 to 1', { dq: from('dq', ordered([0, 1, 2, 4, 3, 5])) }],
    [
      'heads-permuted: sequence 0, kv heads 1 to 2',
      { dk: from('dk', ordered([0, 2, 1, 3, 4, 5])) },
    ],
    ['rows-moved: everywhere', { dk: from('dk', (h, r, c) => [h, Math.min(r + 1, keys - 1), c]) }],
    ['rows-moved: everywhere', { dk: from('dk', (h, r, c) => [h, (r + 1) % keys, c]) }],
    ['rows-moved: everywhere', { dq: from('dq', (h, r, c) => [h, Math.max(r - 1, 0), c]) }],
    [
      'rows-moved: everywhere',
      { dq: from('dq', (h, r, c) => [h, (r + queries - 1) % queries, c]) },
    ],
    ['columns-moved: everywhere', { dq: from('dq', (h, r, c) => [h, r, (c + 4) % 8]) }],
    ['columns-moved: everywhere', { dv: from('dv', (h, r, c) => [h, r, (c >> 1) + (c % 2) * 3]) }],
    [
      'gradient-layout: everywhere',
      {
        dq: from('dq', (h, r, c) => {
          const at = (h % heads) * queries + r;
          return [h - (h % heads) + (at % heads), Math.floor(at / heads), c];
        }),
      },
    ],
    [
      'gradient-layout: everywhere',
      {
        dv: from('dv', (h, r, c) => {
          const at = r * heads + (h % heads);
          return [h - (h % heads) + Math.floor(at / keys), at % keys, c];
        }),
      },
    ],
  ])('%s', (wanted, changes) => {
    expect(said(movedFaults, changes)).toEqual([wanted]);
  });

  it('are nothing of the kind where another order repeats a head, or rows are two on', () => {
    expect(said(movedFaults, { dk: from('dk', ordered([0, 1, 1, 3, 4, 5])) })).toEqual([]);
    expect(said(movedFaults, { dk: from('dk', (h, r, c) => [h, (r + 2) % keys, c]) })).toEqual([]);
    expect(said(movedFaults, {})).toEqual([]);
  });
});

describe('gradients that are not written as they are', () => {
  it.each<[string, Parameters<typeof failedBy>[0]]>([
    [
      'rows-zero: sequence 1, head 1, queries 5 to 7',
      { dq: times('dq', (h, r) => (h === 4 && r >= 5 && r < 8 ? 0 : 1)) },
    ],
    ['rows-zero: sequence 0, kv head 2', { dv: times('dv', (h) => (h === 2 ? 0 : 1)) }],
    ['columns-zero: columns 4 to 7', { dk: times('dk', (_, __, c) => (c >= 4 ? 0 : 1)) }],
    [
      'columns-zero: sequence 0, kv head 1, column 2',
      { dv: times('dv', (h, _, c) => (h === 1 && c === 2 ? 0 : 1)) },
    ],
    [
      'column-sign: sequence 1, head 0, column 3',
      { dq: times('dq', (h, _, c) => (h === 3 && c === 3 ? -1 : 1)) },
    ],
    [
      'block-transposed: sequence 0, kv head 1, keys 8 to 15',
      {
        dk: from('dk', (h, r, c) => (h === 1 && r >= 8 && r < 16 ? [h, 8 + c, r - 8] : [h, r, c])),
      },
    ],
    [
      'block-transposed: sequence 1, head 2, queries 16 to 19',
      {
        dq: from('dq', (h, r, c) =>
          h === 5 && r >= 16 && c >= 4 ? [h, 12 + c, r - 12] : [h, r, c],
        ),
      },
    ],
    [
      'wrong-stride: everywhere',
      {
        dv: from('dv', (h, r, c) => {
          const at = r * qkDim + c;
          return at < keys * vDim ? [h, Math.floor(at / vDim), at % vDim] : null;
        }),
      },
    ],
    [
      'wrong-stride: everywhere',
      {
        dq: from('dq', (h, r, c) => [
          h,
          Math.floor((r * vDim + c) / qkDim),
          (r * vDim + c) % qkDim,
        ]),
      },
    ],
  ])('%s', (wanted, changes) => {
    expect(said(storedFaults, changes)).toContain(wanted);
  });

  it('are nothing of the kind where one element is written, or has its sign, or two gradients fail', () => {
    const zero = (h: number, r: number) => (h === 4 && r === 5 ? 0 : 1);
    expect(
      said(storedFaults, { dq: times('dq', (h, r, c) => (c === 7 ? 1 : zero(h, r))) }),
    ).toEqual([]);
    const negated = (h: number, r: number, c: number) => (h === 3 && c === 3 && r > 0 ? -1 : 1);
    expect(said(storedFaults, { dq: times('dq', negated) })).toEqual([]);
    const all = { dq: times('dq', zero), dk: times('dk', zero) };
    expect(said(storedFaults, all)).toEqual([]);
    expect(said(storedFaults, { dq: times('dq', () => 0) })).toEqual(['rows-zero: everywhere']);
  });
});

/** A gradient to which every stretch adds what the one before it had, or all before it. */
function leftOver(name: Name, size: number, isRunning: boolean, crosses: boolean) {
  const [, rows, columns] = sizes[name];
  return (exact: Float64Array) => {
    const made = exact.slice();
    const stretches: (readonly [first: number, end: number])[] = [];
    for (let head = 0; head < batch * heads; head++)
      for (let row = 0; row < rows; row += size)
        stretches.push([head * rows + row, head * rows + Math.min(rows, row + size)]);
    stretches.forEach(([first, end], i) => {
      if (i === 0 || (!crosses && first % rows === 0)) return;
      const [before] = stretches[i - 1];
      for (let at = 0; at < (end - first) * columns; at++)
        made[first * columns + at] += (isRunning ? made : exact)[before * columns + at];
    });
    return made;
  };
}

describe('sums that do not begin with zero', () => {
  it.each<[string, Parameters<typeof failedBy>[0]]>([
    ['all of the heads before', { dq: leftOver('dq', queries, true, true) }],
    ['the head before', { dk: leftOver('dk', keys, false, true) }],
    ['all of the tiles before', { dk: leftOver('dk', 32, true, true) }],
    [
      'the tile before',
      { dv: leftOver('dv', 32, false, true), dk: leftOver('dk', 32, false, true) },
    ],
    ['the tile before, in a head', { dk: leftOver('dk', 32, false, false) }],
    ['a number', { dq: (exact) => exact.map((x) => x + 0.37) }],
  ])('%s', (_, changes) => {
    const found = said(leftOverFaults, changes);
    expect(found).toEqual([expect.stringMatching(/^accumulator-not-zeroed: /)]);
  });

  it('are nothing of the kind where half of it is left', () => {
    const half = leftOver('dk', 32, false, true);
    const changed = (exact: Float64Array) => half(exact).map((x, i) => (x + exact[i]) / 2);
    expect(said(leftOverFaults, { dk: changed })).toEqual([]);
    expect(said(leftOverFaults, { dk: leftOver('dk', 24, false, true) })).toEqual([]);
  });
});
