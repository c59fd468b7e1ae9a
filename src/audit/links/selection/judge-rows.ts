import { selectionScorer, type SelectionProblem } from '../../../../oracles/index.js';
import { decodeTensor } from '../../../formats/index.js';
import type { Tensor } from '../../../problem/index.js';
import { intervalMaker, type ScoreIntervals, type SelectionArithmetic } from './score-intervals.js';

/** What a kernel selected. */
export interface SelectionResults {
  /** [batch, queries, heads, listed]: candidates, −1 where a place is unused. */
  readonly indices: Int32Array;
  /** The scores of these, of the same shape; left out where they are not given. */
  readonly scores?: Tensor;
}

/** What is promised of a selection beside its set. */
export interface SelectionPromises {
  /** Whether lists are in descending order of scores. */
  readonly isSorted: boolean;
  /** Which of equal scores are selected; `any` where that is not promised. */
  readonly ties: 'any' | 'lowest-index' | 'highest-index';
}

/** What may be wrong with a list. */
export const rowFaults = [
  'range',
  'duplicates',
  'count',
  'largest',
  'order',
  'ties',
  'values',
] as const;
/** One of {@link rowFaults}. */
export type RowFault = (typeof rowFaults)[number];

/** A row of a selection. */
export interface SelectionRow {
  readonly entry: number;
  readonly query: number;
  readonly head: number;
}

/** Something wrong in a list, with the numbers that show it. */
export interface Witness extends SelectionRow {
  /** The candidate that is wrong, and one that should be there in its place; −1 for none. */
  readonly listed: number;
  readonly left: number;
  /** Scores of both, exact; NaN where there is none. */
  readonly listedScore: number;
  readonly leftScore: number;
}

/** What was found in a list. */
export interface JudgedRow {
  /** Number of wrong places by fault, those of no fault left out. */
  readonly wrong: Partial<Record<RowFault, number>>;
  readonly witness: Partial<Record<RowFault, Witness>>;
  /** Number of valid places; of these those that a candidate left out could have in their place. */
  readonly listed: number;
  readonly free: number;
  /** Whether scores make some list of as many wrong; null where all candidates fit, and scores do not matter. */
  readonly isDecided: boolean | null;
  /** Whether a score is NaN or has no bound, so that nothing says which are the largest. */
  readonly isUndefined: boolean;
}

/** The range of candidates that a row may list. */
export function visibleOf(
  { shape, first, end }: SelectionProblem,
  { entry, query }: Pick<SelectionRow, 'entry' | 'query'>,
): { readonly from: number; readonly to: number } {
  const row = entry * shape.queries + query;
  return { from: Math.max(0, first[row]), to: Math.min(shape.candidates, end[row]) };
}

/** The places of a list that are valid candidates, each once, and what is wrong with the others. */
function placesOf(
  indices: Int32Array,
  from: number,
  to: number,
  at: SelectionRow,
): {
  readonly chosen: number[];
  readonly wrong: JudgedRow['wrong'];
  readonly witness: JudgedRow['witness'];
} {
  const seen = new Set<number>();
  const wrong: Partial<Record<RowFault, number>> = {};
  const witness: Partial<Record<RowFault, Witness>> = {};
  const note = (fault: RowFault, listed: number) => {
    wrong[fault] = (wrong[fault] ?? 0) + 1;
    witness[fault] ??= { ...at, listed, left: -1, listedScore: NaN, leftScore: NaN };
  };
  for (const index of indices) {
    if (index === -1) continue;
    if (index < from || index >= to) note('range', index);
    else if (seen.has(index)) note('duplicates', index);
    else seen.add(index);
  }
  return { chosen: [...seen], wrong, witness };
}

/** The candidates of a row: their intervals, which of them it sees, and which are listed. */
interface Candidates extends ScoreIntervals {
  readonly from: number;
  readonly to: number;
  readonly isChosen: Uint8Array;
}

/** Whether all scores have bounds: NaN has none, and an infinite one would let any list pass. */
function areBounded({ low, high, from, to }: Omit<Candidates, 'isChosen'>): boolean {
  for (let j = from; j < to; j++)
    if (!(low[j] === high[j] || high[j] - low[j] < Infinity)) return false;
  return true;
}

/** Whether some list of `wanted` candidates is wrong: one is below another for certain; null where all fit. */
function decides({ low, high, from, to }: Omit<Candidates, 'isChosen'>, wanted: number) {
  if (wanted >= to - from) return null;
  let [largest, smallest] = [-Infinity, Infinity];
  for (let j = from; j < to; j++) {
    largest = Math.max(largest, low[j]);
    smallest = Math.min(smallest, high[j]);
  }
  return largest > smallest;
}

/** What a list leaves to be said by scores. */
interface Swaps {
  /** Listed candidates that have to give way to larger ones. */
  readonly count: number;
  /** Listed candidates that do not have to be larger than all that were left out. */
  readonly open: number;
  /** The worst of each; −1 where there are none. */
  readonly listed: number;
  readonly left: number;
}

function swapsOf(chosen: readonly number[], { low, high, from, to, isChosen }: Candidates): Swaps {
  const rest = Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i).filter(
    (j) => isChosen[j] === 0,
  );
  const extreme = (some: readonly number[], isMore: (a: number, b: number) => boolean) =>
    some.reduce((most, j) => (most < 0 || isMore(j, most) ? j : most), -1);
  // What was left out with the largest least score, and what was chosen with the smallest greatest one.
  const left = extreme(rest, (a, b) => low[a] > low[b]);
  const listed = extreme(chosen, (a, b) => high[a] < high[b]);
  if (left < 0 || listed < 0) return { count: 0, open: 0, listed, left };
  const most = rest.reduce((a, j) => Math.max(a, high[j]), -Infinity);
  const open = chosen.filter((j) => low[j] <= most).length;
  const below = chosen.filter((j) => high[j] < low[left]).length;
  const above = rest.filter((j) => low[j] > high[listed]).length;
  return { count: Math.min(below, above), open, listed, left };
}

/** Makes a judge of lists, a row at a time: what the arithmetic leaves free is right. */
export function rowJudge(
  problem: SelectionProblem,
  results: SelectionResults,
  arithmetic: SelectionArithmetic,
  promises: SelectionPromises,
): (row: SelectionRow) => JudgedRow {
  const { shape, count, forced } = problem;
  const { queries, heads, listed } = shape;
  const scorer = selectionScorer(problem);
  const intervals = intervalMaker(problem, arithmetic);
  const isChosen = new Uint8Array(shape.candidates);
  return (row) => {
    const { entry, query, head } = row;
    const { from, to } = visibleOf(problem, row);
    const start = ((entry * queries + query) * heads + head) * listed;
    const places = results.indices.subarray(start, start + listed);
    const { chosen, wrong, witness } = placesOf(places, from, to, row);
    const found = { wrong, witness, listed: chosen.length };
    const exact = scorer(entry, query, head);
    const { low, high } = intervals(exact);
    const { values } = exact;
    if (forced.first && to > from) low[from] = high[from] = values[from] = Infinity;
    if (forced.last && to > from) low[to - 1] = high[to - 1] = values[to - 1] = Infinity;
    const wanted = Math.min(count, Math.max(0, to - from));
    const note = (fault: RowFault, many: number, one: number, other: number) => {
      if (many === 0) return;
      wrong[fault] = (wrong[fault] ?? 0) + many;
      witness[fault] ??= {
        ...row,
        listed: one,
        left: other,
        listedScore: values[one] ?? NaN,
        leftScore: values[other] ?? NaN,
      };
    };
    if (!areBounded({ low, high, from, to }))
      return { ...found, free: 0, isDecided: null, isUndefined: true };
    note('count', Math.abs(places.filter((index) => index !== -1).length - wanted), -1, -1);
    isChosen.fill(0);
    for (const index of chosen) isChosen[index] = 1;
    const swapped = swapsOf(chosen, { low, high, from, to, isChosen });
    note('largest', swapped.count, swapped.listed, swapped.left);
    if (promises.isSorted) noteOrder(places, { low, high }, note);
    if (promises.ties !== 'any')
      noteTies(problem, { chosen: isChosen, from, to, ties: promises.ties, values }, note);
    if (results.scores !== undefined)
      noteValues(places, { low, high }, decodeTensor(results.scores, start, start + listed), note);
    return {
      ...found,
      free: Math.max(0, swapped.open - swapped.count),
      isDecided: decides({ low, high, from, to }, wanted),
      isUndefined: false,
    };
  };
}

type Note = (fault: RowFault, many: number, one: number, other: number) => void;

/** Places whose score is larger, for certain, than the one before. */
function noteOrder(places: Int32Array, { low, high }: ScoreIntervals, note: Note): void {
  for (let i = 1; i < places.length; i++) {
    const [before, here] = [places[i - 1], places[i]];
    if (here >= 0 && before >= 0 && high[before] < low[here]) note('order', 1, here, before);
    else if (here >= 0 && before < 0) note('order', 1, here, -1);
  }
}

/** Of given scores that are equal, chosen ones where an unchosen one has the better index. */
function noteTies(
  { law }: SelectionProblem,
  {
    chosen,
    from,
    to,
    ties,
    values,
  }: {
    readonly chosen: Uint8Array;
    readonly from: number;
    readonly to: number;
    readonly ties: SelectionPromises['ties'];
    readonly values: Float64Array;
  },
  note: Note,
): void {
  // Only scores that are given are equal for certain.
  if (law !== 'given') return;
  let lowest = Infinity;
  for (let j = from; j < to; j++) if (chosen[j] === 1) lowest = Math.min(lowest, values[j]);
  const isLowest = ties === 'lowest-index';
  let missed = -1;
  for (let i = 0; i < to - from; i++) {
    const j = isLowest ? from + i : to - 1 - i;
    if (values[j] !== lowest) continue;
    if (chosen[j] === 0) missed = missed < 0 ? j : missed;
    else if (missed >= 0) note('ties', 1, j, missed);
  }
}

/** Scores beside the list that are not those of its candidates. */
function noteValues(
  places: Int32Array,
  { low, high }: ScoreIntervals,
  given: Float64Array,
  note: Note,
): void {
  places.forEach((index, i) => {
    if (index < 0 || index >= low.length || low[index] === Infinity) return;
    if (!(given[i] >= low[index] && given[i] <= high[index])) note('values', 1, index, -1);
  });
}
