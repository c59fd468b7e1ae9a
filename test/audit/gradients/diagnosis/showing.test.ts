import { describe, expect, it } from 'vitest';
import { describePlace } from '../../../../src/audit/rows/index.js';
import { placeShown } from '../../../../src/audit/gradients/diagnosis/showing.js';
import { filledProblem } from '../../../setup/problems.js';
import { bareFailure, type BareGradient, type Named } from '../definitions/bare-failure.js';

const [heads, queries, keys, dim] = [3, 4, 5, 2] as const;
const problem = filledProblem({ batch: 2, heads, queries, keys, dim }, () => 1);

const rowsOf = { dq: queries, dk: keys, dv: keys } as const;

/** What a gradient has, by the head over the batch of each element, or by its place. */
type Change = (head: number, i: number) => number;

/** A gradient whose errors have a deviation of 1, the changes that it has, and those that a cause predicts. */
interface Shown {
  readonly given: Change;
  readonly predicted: Change;
  /** Changes of what is exact, and of the deviation of an element. */
  readonly exact?: (x: number, i: number) => number;
  readonly deviation?: (i: number) => number;
}

/** Where a cause shows in gradients with some changes. */
function shownIn(gradients: Partial<Record<Named, Shown>>): string {
  const made: Partial<Record<Named, BareGradient>> = {};
  const predicted: Partial<Record<Named, Float64Array>> = {};
  for (const [
    name,
    { given, predicted: cause, exact = (x: number) => x, deviation },
  ] of Object.entries(gradients) as [Named, Shown][]) {
    const size = rowsOf[name] * dim;
    const numbers = (of: (i: number) => number) =>
      Float64Array.from({ length: 2 * heads * size }, (_, i) => of(i));
    const own = numbers((i) => exact((i % 7) - 3, i));
    const by = (change: Change) => own.map((x, i) => x + change(Math.floor(i / size), i));
    predicted[name] = by(cause);
    made[name] = {
      values: by(given),
      exact: own,
      shift: numbers(() => 0),
      systematic: numbers(() => 0),
      deviation: numbers(deviation ?? (() => 1)),
      total: numbers(() => 1),
    };
  }
  const failed = bareFailure(problem, made, []);
  const found = placeShown(failed, { id: '', sentence: '', predicted }, null);
  return found === null ? 'nowhere' : describePlace({ ...found, rows: null });
}

const nothing: Change = () => 0;
/** A change of a head of the second batch entry, far beyond rounding. */
const ofHead: Change = (head) => (head === 4 ? 100 : 0);

describe('the place where a cause shows', () => {
  it('is that of dQ where it has the change, and else that of dK and dV', () => {
    const [has, lacks] = [
      { given: ofHead, predicted: ofHead },
      { given: nothing, predicted: nothing },
    ];
    expect(shownIn({ dq: has, dk: lacks, dv: lacks })).toBe('sequence 1, head 1');
    expect(shownIn({ dq: lacks, dk: has, dv: lacks })).toBe('sequence 1, kv head 1');
    expect(shownIn({ dk: lacks, dv: has })).toBe('sequence 1, kv head 1');
    expect(shownIn({ dq: lacks, dk: lacks, dv: lacks })).toBe('everywhere');
  });

  it('is nowhere where one head would have the change and has less than half of it', () => {
    const all: Change = () => 100;
    const but =
      (share: number): Change =>
      (head) =>
        head === 4 ? share * 100 : 100;
    expect(shownIn({ dq: { given: but(0.51), predicted: all } })).toBe('everywhere');
    expect(shownIn({ dq: { given: but(0.49), predicted: all } })).toBe('nowhere');
  });

  it('leaves out heads whose changes are less than eight deviations together', () => {
    // All eight elements of a head of dQ have the same.
    const beside =
      (deviations: number): Change =>
      (head) =>
        head === 4 ? 100 : head === 0 ? deviations / Math.sqrt(queries * dim) : 0;
    expect(shownIn({ dq: { given: ofHead, predicted: beside(7.9) } })).toBe('sequence 1, head 1');
    expect(shownIn({ dq: { given: ofHead, predicted: beside(8.1) } })).toBe('nowhere');
  });

  it.each<[string, Partial<Shown>]>([
    ['that are not numbers', { exact: (x, i) => (i % 8 === 3 ? NaN : x) }],
    ['that are infinite', { exact: (x, i) => (i % 8 === 3 ? Infinity : x) }],
    [
      'whose change is infinite',
      { predicted: (head, i) => (i % 8 === 3 ? Infinity : ofHead(head, i)) },
    ],
    [
      'without roundings whose change squared is zero',
      {
        exact: (x, i) => (i % 8 === 3 ? 0 : x),
        deviation: (i) => (i % 8 === 3 ? 0 : 1),
        predicted: (head, i) => (i % 8 === 3 ? 2 ** -600 : ofHead(head, i)),
      },
    ],
  ])('is told without elements %s', (_, changes) => {
    const dq = { given: ofHead, predicted: ofHead, ...changes };
    expect(shownIn({ dq })).toBe('sequence 1, head 1');
  });
});
