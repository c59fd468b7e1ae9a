import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SlopeSums } from '../../../src/audit/diagnosis/agreement-sums.js';
import type {
  Hypothesis,
  HypothesisContext,
  SampleRow,
} from '../../../src/audit/diagnosis/hypothesis.js';
import { placeOfCause } from '../../../src/audit/diagnosis/place-of-cause.js';
import type { RowPrediction } from '../../../src/audit/diagnosis/prediction.js';
import { axisOf, placeOfRows } from '../../../src/audit/rows/index.js';
import { problemShape, rowPlaces, type Problem } from '../../../src/problem/index.js';
import { filledProblem, sequencesOf } from '../../setup/problems.js';

const [heads, queries, vDim] = [3, 40, 4] as const;

const filled = (x: number) => new Float64Array(vDim).fill(x);

/** What a correct kernel gives each row: roundings have a variance of 1 in all, and are 2 at most. */
const correct: RowPrediction = { out: filled(1), noise: 1, limit: filled(2), lse: 5 };
const magnitude = 2 ** 20;
/** The least that fp64 tells from nothing: of one column, the root of the sum of all squares. */
const least = 2 ** -38 * Math.sqrt(magnitude);

type Status = 'explained' | 'unexplained' | 'against' | 'consistent' | 'untouched';

/** A row, and what a cause predicts of it. */
interface Kind {
  readonly status: Status;
  readonly damaged: boolean;
  readonly observed: Float64Array;
  readonly observedLse: number | null;
  readonly predicted: RowPrediction | null;
}

const off = (by: number, columns: readonly number[]) =>
  correct.out.map((x, c) => (columns.includes(c) ? x + by : x));

/** All kinds of rows, by what they are called. */
function kindsOf(columns: readonly number[], share: number): Readonly<Record<string, Kind>> {
  const [far, near] = [off(40, columns), off(0.5, columns)];
  const kind = (
    status: Status,
    damaged: boolean,
    observed: Float64Array,
    out: Float64Array | null,
    [observedLse, lse]: readonly [number | null, number] = [null, correct.lse],
  ): Kind => ({
    status,
    damaged,
    observed,
    observedLse,
    predicted: out === null ? null : { ...correct, out, lse },
  });
  const right = correct.out;
  const wrong = off(100, [0]);
  const [first] = columns;
  return {
    errs: kind('explained', true, far, far),
    'errs by its LSE alone': kind('explained', true, right, off(0.99 * least, [first]), [8, 8]),
    'errs elsewhere': kind('unexplained', true, wrong, far),
    'errs, and its LSE does not': kind('unexplained', true, far, far, [5, 8]),
    'errs where nothing is changed': kind('unexplained', true, wrong, right),
    'errs, of which nothing is said': kind('unexplained', true, wrong, null),
    'is sound all the same': kind('against', false, right, far),
    'is sound, and its LSE is': kind('against', false, right, right, [5, 8]),
    'shows too little': kind('consistent', false, off(0.5 * share, columns), near),
    'shows the least': kind('consistent', false, right, off(1.01 * least, [first])),
    'is not changed': kind('untouched', false, right, right),
    'is changed by less than the least': kind(
      'untouched',
      false,
      right,
      off(0.99 * least, [first]),
    ),
    'has an LSE that is not changed': kind('untouched', false, right, right, [5, 5 + 0.9e-10]),
    'has an LSE that is hardly changed': kind('consistent', false, right, right, [5, 5 + 1.1e-10]),
    'has an LSE that is left open': kind('untouched', false, right, right, [5, NaN]),
    'has no LSE to be changed': kind('untouched', false, right, right, [null, 8]),
    'counts with its head': kind('untouched', true, right, right),
    'is sound, and nothing is said of it': kind('untouched', false, right, null),
  };
}

const names = Object.keys(kindsOf([0], 1));

const drawns = fc.record({
  isPacked: fc.boolean(),
  /** Of each head of a sequence some kinds of rows, and where they change. */
  groups: fc.array(
    fc.record({
      kinds: fc.oneof(
        {
          weight: 2,
          arbitrary: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }),
        },
        {
          weight: 1,
          arbitrary: fc.constant(['errs', 'shows too little', 'is sound all the same']),
        },
        { weight: 1, arbitrary: fc.constant(['shows too little']) },
      ),
      order: fc.array(fc.nat(11), { minLength: 1, maxLength: 11 }),
      /** The kind that all rows but one or two are of; else they take turns. */
      others: fc.constantFrom(0, 1, 2, null),
    }),
    { minLength: 2 * heads, maxLength: 2 * heads },
  ),
  columns: fc.constantFrom([0], [1, 2], [0, 1, 2, 3]),
  share: fc.constantFrom(0, 0.8, 1, 1.3, 2.5, -1),
  onlyLse: fc.boolean(),
  pooled: fc.boolean(),
  /** Whether so many rows and keys are there that only some of the rows are looked at. */
  isLong: fc.boolean(),
});

type Drawn = typeof drawns extends fc.Arbitrary<infer T> ? T : never;

function problemOf({ isPacked }: Drawn): Problem {
  const frame = { heads, queries, keys: 4, dim: 1, vDim };
  const sequences = sequencesOf([
    [15, 2],
    [25, 2],
  ]);
  return isPacked
    ? filledProblem(frame, () => 1, { sequences })
    : filledProblem({ ...frame, batch: 2 }, () => 1);
}

/** Some rows at equal distances. */
function someOf(rows: readonly number[], count: number): number[] {
  if (rows.length <= count) return [...rows];
  return Array.from({ length: count }, (_, i) => rows[Math.floor((i * rows.length) / count)]);
}

/** The rows of a head that are struck, of those that were looked at what they showed; null for others. */
function struck(
  status: readonly (Status | null)[],
  { onlyLse, pooled }: Drawn,
  slopes: SlopeSums,
): number[] {
  const errs = status.includes('explained');
  const misses = status.filter((one) => one === 'against' || one === 'unexplained');
  const isWhole = misses.length <= (pooled ? 0.03 * status.length : 0);
  const { value, standardError } = slopes.slope();
  const isFollowed = Math.abs(value - 1) <= 0.1 + 4 * standardError && value > 4 * standardError;
  if (!errs && (onlyLse || !isWhole || !isFollowed)) return [];
  const all = [...status.keys()];
  if (isWhole && pooled) return all.filter((i) => status[i] !== 'untouched');
  const says = (i: number) => status[i] !== 'consistent' && status[i] !== null;
  return all.filter((i) => {
    if (says(i)) return status[i] === 'explained';
    if (!status.includes('against')) return true;
    const before = all.slice(0, i).filter(says).at(-1);
    const behind = all.slice(i + 1).find(says);
    const neighbours = [before, behind].filter((one) => one !== undefined);
    return neighbours.length > 0 && neighbours.every((one) => status[one] === 'explained');
  });
}

describe('the place of a cause', () => {
  it('is that of the rows that it explains, with those in their heads that say nothing against it', () => {
    fc.assert(
      fc.property(drawns, (drawn) => {
        const problem = problemOf(drawn);
        const shape = problemShape(problem);
        const placeOf = rowPlaces(problem, shape);
        const kinds = kindsOf(drawn.columns, drawn.share);
        const count = shape.batch * heads * queries;
        const all = Array.from({ length: count }, (_, row) => row);
        const place = (row: number) => placeOf(Math.floor(row / queries), row % queries);
        const groupOf = (row: number) => place(row).sequence * heads + place(row).head;
        const kindOf = all.map((row) => {
          const { kinds: some, order, others } = drawn.groups[groupOf(row)];
          const { query } = place(row);
          const turn = order[query % order.length];
          const isOther = others !== null && (query !== 5 || others === 1) && query !== 9;
          return kinds[some[isOther ? 0 : turn % some.length]];
        });
        const erring = all.filter((row) => kindOf[row].damaged);
        const rowOf = (row: number, damaged: boolean) =>
          ({
            ...kindOf[row],
            row,
            damaged,
            correct,
            magnitude,
            vDim,
            bound: { keys: 4, lse: 0.5, weightRounding: 0 },
          }) as unknown as SampleRow;
        const hypothesis: Hypothesis = {
          id: 'cause',
          technique: null,
          statement: 'a cause',
          predict: ({ row }) => kindOf[row].predicted,
        };
        const keys = drawn.isLong ? 2 ** 27 : 4;
        const context = {
          shape: { ...shape, keys },
          // So many keys that maxima are not looked for: rows-by-maximum.test.ts has them.
          reader: { place, shape: { ...shape, keys: 2 ** 27 } },
          input: {
            problem,
            reference: { quantities: { lse: { values: new Float64Array(count) } } },
          },
          onlyLse: drawn.onlyLse,
          pooled: drawn.pooled,
          buildRow: rowOf,
        } as unknown as HypothesisContext;
        const found = placeOfCause(hypothesis, context, erring);

        const sound = all.filter((row) => !kindOf[row].damaged);
        const looked = new Set(
          drawn.isLong
            ? [
                ...someOf(erring, Math.max(64 - sound.length, 32)),
                ...someOf(sound, Math.max(64 - erring.length, 32)),
              ]
            : all,
        );
        const rows = [...new Set(all.map(groupOf))].flatMap((group) => {
          const own = all.filter((row) => groupOf(row) === group);
          const slopes = new SlopeSums();
          for (const row of own) {
            const { predicted, damaged } = kindOf[row];
            if (looked.has(row) && predicted !== null)
              slopes.add(rowOf(row, damaged), predicted, correct.out);
          }
          const status = own.map((row) =>
            looked.has(row) ? kindOf[row].status : kindOf[row].damaged ? 'explained' : null,
          );
          return struck(status, drawn, slopes).map((i) => own[i]);
        });
        const ofPlace = placeOfRows(rows.length === 0 ? erring : rows, {
          ...problem,
          shape: { ...shape, keys },
        });
        const explained = [...looked]
          .sort((a, b) => a - b)
          .filter((row) => kindOf[row].status === 'explained')
          .slice(0, 64);
        const isShown = explained.some((row) => kindOf[row] === kinds.errs);
        expect(found).toEqual({
          place: { ...ofPlace, columns: isShown ? axisOf(drawn.columns, vDim) : null },
          unexplained: [...looked].filter((row) => kindOf[row].status === 'unexplained').length,
        });
      }),
      { numRuns: 60 },
    );
  });
});
