import { describePlace, elementAt, type Coordinates } from '../../src/audit/index.js';
import type { Problem } from '../../src/problem/index.js';
import { NotApplicable, type LawTools } from './law.js';
import {
  arrangeReference,
  arrangeResults,
  type RowArrangement,
  type RunResults,
} from './transform-problem.js';
import { exactAttention, judgedViolation } from './within-bound.js';

/** The results to compare; all by default. */
interface Comparison {
  /** Selects elements of O, by row over [batch, heads, queries] and by column. */
  readonly elements?: (row: number, column: number) => boolean;
  /** Selects rows of the LSE. */
  readonly rows?: (row: number) => boolean;
}

/** The first result that differs, and the number of those that do. */
interface RunDifference {
  readonly what: 'O' | 'the LSE';
  readonly at: Coordinates;
  readonly expected: number;
  readonly found: number;
  readonly differing: number;
  readonly compared: number;
}

/**
 * Whether two numbers are the same to the bit, but for the sign of a zero and the payload of a NaN:
 * neither is a result of attention, and both depend on the order of correct operations.
 */
export function isSameResult(a: number, b: number): boolean {
  return a === b || (Number.isNaN(a) && Number.isNaN(b));
}

/** The first result that differs, null for none, and the number of results compared. */
interface RunComparison {
  readonly difference: RunDifference | null;
  readonly compared: number;
}

function differenceOf(
  what: RunDifference['what'],
  expected: Float64Array,
  found: Float64Array,
  counts: (index: number) => boolean,
  place: (index: number) => Coordinates,
): RunComparison {
  let first = -1;
  let differing = 0;
  let compared = 0;
  for (let i = 0; i < expected.length; i++) {
    if (!counts(i)) continue;
    compared++;
    if (isSameResult(expected[i], found[i])) continue;
    if (first < 0) first = i;
    differing++;
  }
  if (first < 0) return { difference: null, compared };
  const [wanted, got] = [expected[first], found[first]];
  const at = place(first);
  return { difference: { what, at, expected: wanted, found: got, differing, compared }, compared };
}

/** Coordinates of a row over [batch, heads, queries]. */
export function placeOfRow(shape: RunResults['shape'], row: number): Coordinates {
  const { batch, head, query } = elementAt({ ...shape, vDim: 1 }, row);
  return { batch, head, query };
}

/**
 * Compares two runs over rows of the same shape, O before LSE. The signs of zeros and the payloads of
 * NaNs do not count. The LSE is compared where both have one.
 */
export function compareRuns(
  expected: RunResults,
  found: RunResults,
  { elements = () => true, rows = () => true }: Comparison = {},
): RunComparison {
  const { shape } = found;
  const { vDim } = shape;
  const out = differenceOf(
    'O',
    expected.out,
    found.out,
    (i) => elements(Math.floor(i / vDim), i % vDim),
    (i) => elementAt(shape, i),
  );
  if (out.difference !== null || expected.lse === null || found.lse === null) return out;
  const lse = differenceOf('the LSE', expected.lse, found.lse, rows, (row) =>
    placeOfRow(shape, row),
  );
  return { ...lse, compared: out.compared + lse.compared };
}

/**
 * The first result in which two runs differ, or null; see `compareRuns`.
 * @throws NotApplicable when there is nothing to compare
 */
export function firstDifference(
  expected: RunResults,
  found: RunResults,
  comparison: Comparison = {},
): RunDifference | null {
  const { difference, compared } = compareRuns(expected, found, comparison);
  if (compared === 0) throw new NotApplicable('no result of the problem can be compared');
  return difference;
}

/**
 * A difference in a sentence without its full stop, as in `O at head 0, query 3, column 1 is 0.5 alone
 * but 0.25 with the heads permuted`.
 * @param usual describes the expected results, as in `alone`
 * @param changed describes the others, as in `with the heads permuted`
 */
export function describeDifference(
  { what, at, expected, found, differing, compared }: RunDifference,
  usual: string,
  changed: string,
): string {
  const unit = what === 'O' ? 'elements' : 'rows';
  const others = differing === 1 ? '' : ` (${differing} of ${compared} ${unit} differ)`;
  return `${what} at ${describePlace(at)} is ${expected} ${usual} but ${found} ${changed}${others}`;
}

/** Two problems; the rows of the transformed one are rows of the other. */
export interface ArrangedProblems {
  readonly problem: Problem;
  readonly transformed: Problem;
  /** The rows of the problem that the transformed one has; default the same. */
  readonly rows?: RowArrangement;
  /** The results of the transformed problem to compare to the bit; default all. */
  readonly comparison?: Comparison;
  /** The transformation in words, as in `with the queries permuted`. */
  readonly words: string;
}

/** The place in the original problem of a row of the transformed one. */
function placeBefore(at: Coordinates, { batches, heads, queries }: RowArrangement): Coordinates {
  return {
    ...at,
    batch: batches?.[at.batch] ?? at.batch,
    head: heads?.[at.head] ?? at.head,
    query: queries?.[at.query!] ?? at.query!,
  };
}

/**
 * Whether the rows of a transformed problem come out as those of the problem: to the bit, compared
 * with a run of it, or within the bound around its exact attention, which is that of the rows. What
 * is wrong, in a sentence without its full stop; null for nothing. Places are counted in the problem
 * where bits differ, and in the transformed one where a bound is exceeded.
 */
export async function arrangedViolation(
  { problem, transformed, rows = {}, comparison = {}, words }: ArrangedProblems,
  { strength, run, judge }: LawTools,
): Promise<string | null> {
  if (strength === 'bits') {
    const usual = arrangeResults(await run(problem), rows);
    const found = firstDifference(usual, await run(transformed), comparison);
    if (found === null) return null;
    return describeDifference({ ...found, at: placeBefore(found.at, rows) }, 'at first', words);
  }
  const other = await run(transformed);
  const reference = arrangeReference(exactAttention(problem), rows, transformed);
  const violation = judgedViolation(judge(other, reference));
  return violation && `${words}, ${violation}`;
}
