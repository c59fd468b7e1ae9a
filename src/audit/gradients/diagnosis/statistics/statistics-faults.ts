import { formatCount } from '../../../../words/index.js';
import { rowPlaces } from '../../../../problem/index.js';
import { placeOfRows, type Place } from '../../../rows/index.js';
import { meanShares } from './mean-shares.js';
import type { FailedGradients } from '../failed-gradients.js';
import { explains, type Prediction } from '../prediction.js';
import type { BackwardChange } from '../replay/backward-row.js';
import { scopesOf, type Scope } from '../scope.js';
import type { ReplayedFault } from '../replayed/replayed-fault.js';
import { replayFaults } from '../replayed/replayed-fault.js';
import type { Replayed } from '../replay/replay.js';

/** The LSE and D that the backward pass takes for a row, as dQ tells; NaN where it does not, as of a row that sees one key. */
interface FoundRow {
  readonly row: number;
  readonly logarithm: number;
  readonly delta: number;
}

/** The multiple of a row's roundings from which on the row is off. */
const sureDeviations = 3;

/** The fewest columns of dQ from which two numbers of a row are told. */
const fewestColumns = 8;

/**
 * The rows whose dQ is off, and the LSE and D that it follows from: dQ = f (exact dQ + (D − D') Σ P g k) for f = e^(LSE − LSE')
 * by least squares.
 */
function foundRows(of: Replayed, values: Float64Array): FoundRow[] | null {
  const { problem, measured } = of.failed;
  const { exact, bound } = measured.gradients.dq;
  const { qkDim } = measured.shape;
  const shares = meanShares(of, 2);
  if (shares === null) return null;
  const { denominator } = measured.reference;
  const found: FoundRow[] = [];
  for (let row = 0; row < values.length / qkDim; row++) {
    let [errors, allowed, isOutside] = [0, 0, false];
    let [aa, ab, bb, ya, yb] = [0, 0, 0, 0, 0];
    for (let i = row * qkDim; i < (row + 1) * qkDim; i++) {
      const [a, b] = [exact.values[i], problem.scale * shares.ofQueries[i]];
      const y = values[i] - bound.shift[i];
      errors += (y - a) ** 2;
      allowed += (bound.systematic[i] + sureDeviations * bound.deviation[i]) ** 2;
      isOutside ||= Math.abs(y - a) > bound.total[i];
      aa += a * a;
      ab += a * b;
      bb += b * b;
      ya += y * a;
      yb += y * b;
    }
    if (!isOutside && errors <= allowed) continue;
    const determinant = aa * bb - ab * ab;
    const factor = (ya * bb - yb * ab) / determinant;
    const ofMean = (yb * aa - ya * ab) / determinant;
    const logarithm = denominator[row] - Math.log(factor);
    const delta = measured.mean.values[row] - ofMean / factor;
    const isTold = Number.isFinite(logarithm) && Number.isFinite(delta);
    found.push(isTold ? { row, logarithm, delta } : { row, logarithm: NaN, delta: NaN });
  }
  return found;
}

/** The row whose LSE and D a row may be given; null for none, where memory holds zeros. */
interface OtherRows {
  readonly id: string;
  readonly words: string;
  readonly of: (row: number) => number | null;
}

/** Rows and tiles that reads are off by. */
const shifts = [1, 32, 64, 128] as const;

/** Rows whose LSE and D another row may be given. */
function otherRows({ problem, measured }: FailedGradients): readonly OtherRows[] {
  const { shape } = measured;
  const { batch, queries, heads } = shape;
  const rows = batch * heads * queries;
  const id = 'statistics-of-others';
  const shifted = (by: number, words: string): OtherRows => ({
    id,
    words: `those ${words}`,
    of: (row) => row + by,
  });
  const { sequences = [] } = problem;
  const longest = sequences.reduce((most, one) => Math.max(most, one.queries), 0);
  const placeOf = rowPlaces(problem, shape);
  const padded = (flat: (sequence: number, head: number, query: number) => number): OtherRows => ({
    id: 'statistics-as-padded',
    words: 'those that lie where padded sequences would have them',
    of: (row) => {
      const { sequence, query } = placeOf(Math.floor(row / queries), row % queries);
      return flat(sequence, Math.floor(row / queries), query);
    },
  });
  return [
    { id: 'statistics-zero', words: 'zeros', of: () => null },
    shifted(-queries, 'of the head before'),
    shifted(queries, 'of the next head'),
    ...[-queries, queries].map((by): OtherRows => ({
      id,
      words: `those of the ${by < 0 ? 'head before' : 'next head'}, or of the ${by < 0 ? 'last' : 'first'}`,
      of: (row) => (row + by + rows) % rows,
    })),
    ...(batch === 1
      ? []
      : [-heads * queries, heads * queries].map((by): OtherRows => ({
          id,
          words: 'those of another batch entry',
          of: (row) => (row + by + rows) % rows,
        }))),
    ...[-1, 1].map((by): OtherRows => ({
      id,
      words: `those of the ${by < 0 ? 'row before' : 'next row'}`,
      of: (row) => (row + by + rows) % rows,
    })),
    ...shifts.flatMap((by) => [
      shifted(-by, by === 1 ? 'of the row before' : `of ${by} rows before`),
      shifted(by, by === 1 ? 'of the next row' : `of ${by} rows behind`),
    ]),
    ...(sequences.length === 0
      ? []
      : [
          padded((sequence, head, query) => (sequence * heads + head) * longest + query),
          padded(
            (sequence, head, query) => head * queries + ((sequence * longest + query) % queries),
          ),
        ]),
  ];
}

/** The largest distance of a row's LSE, in nats, and of its D, relative to the sizes of its terms, from those that dQ tells. */
const tolerance = 2 ** -4;

/** The share of rows that must have another row's numbers; the rest, as at borders, have those that dQ tells. */
const leastShare = 0.75;

/** Numbers that a row may be given: the natural logarithm of its row sum, D, and the sizes that D is a sum of. */
type RowNumbers = readonly [logarithm: number, delta: number, size: number];

/** Rows that are given other numbers, and facts about them. */
interface RowSet {
  readonly rows: readonly number[];
  /** The place that the cause claims; undefined for wherever it shows. */
  readonly place?: Place;
  readonly touched?: Scope;
}

/** The rows that a cause may be about: all, some heads or a stretch of rows, those whose dQ is off. */
function rowSets(failed: FailedGradients, found: readonly FoundRow[]): readonly RowSet[] {
  const { problem, measured } = failed;
  const all = Array.from(measured.mean.values.keys());
  const off = found.map(({ row }) => row);
  return [
    { rows: all },
    ...scopesOf(failed).map((scope) => ({
      rows: all.filter((row) => scope[row] === 1),
      touched: scope,
    })),
    { rows: off, place: placeOfRows(off, { ...problem, shape: measured.shape }) },
  ];
}

/** The statistics of a backward pass that gives some rows other numbers. */
function changedStatistics(
  { measured }: FailedGradients,
  rows: readonly number[],
  numbers: (row: number) => RowNumbers,
): BackwardChange {
  const logarithm = Float64Array.from(measured.reference.denominator);
  const [delta, deltaSizes] = [measured.mean.values.slice(), measured.mean.magnitude.slice()];
  for (const row of rows) {
    const [ofLse, ofMean, size] = numbers(row);
    [logarithm[row], delta[row]] = [ofLse, ofMean];
    deltaSizes[row] = Math.max(deltaSizes[row], size);
  }
  return { logarithm, delta, deltaSizes };
}

const cause = 'as where they are read before they are written, or from another place';

/** Faults that give rows the LSE, or LSE and D, of others. */
function* faultsOfOthers(
  failed: FailedGradients,
  found: readonly FoundRow[],
): Generator<ReplayedFault> {
  const { denominator } = failed.measured.reference;
  const { values: means, magnitude } = failed.measured.mean;
  const told = found.filter(({ logarithm }) => !Number.isNaN(logarithm));
  const rules = [true, false].flatMap((isOfLse) =>
    otherRows(failed).flatMap(({ id, words, of }) => {
      const numbers = (row: number): RowNumbers => {
        const from = of(row);
        const isInside = from !== null && from >= 0 && from < means.length;
        const [ofLse, ofMean, size] = isInside
          ? [denominator[from], means[from], magnitude[from]]
          : [0, 0, 0];
        return isOfLse ? [ofLse, means[row], 0] : [ofLse, ofMean, size];
      };
      const near = told.filter((one) => {
        const [ofLse, ofMean] = numbers(one.row);
        const size = magnitude[one.row] + Math.abs(ofMean);
        return (
          Math.abs(ofLse - one.logarithm) <= tolerance &&
          Math.abs(ofMean - one.delta) <= tolerance * size
        );
      });
      if (near.length === 0 || near.length < leastShare * told.length) return [];
      const what = isOfLse ? 'the LSE' : 'the LSE and D';
      return [
        { id, sentence: `the backward pass reads for ${what} ${words}, ${cause}`, numbers, near },
      ];
    }),
  );
  for (const { rows, place, touched } of rowSets(failed, found))
    for (const { id, sentence, numbers } of rules)
      yield {
        id,
        sentence,
        change: changedStatistics(failed, rows, numbers),
        ...(place !== undefined && { place }),
        ...(touched !== undefined && { rows: touched }),
      };
  // There is no rule for borders: dQ alone tells these rows.
  const rows = found.map(({ row }) => row);
  for (const { id, sentence, numbers, near } of rules) {
    const others = new Map(
      told.filter((one) => !near.includes(one)).map((one) => [one.row, one] as const),
    );
    const mixed = (row: number): RowNumbers => {
      const one = others.get(row);
      return one === undefined ? numbers(row) : [one.logarithm, one.delta, 0];
    };
    if (near.length < found.length)
      yield {
        id,
        sentence,
        change: changedStatistics(failed, rows, mixed),
        place: placeOfRows(rows, { ...failed.problem, shape: failed.measured.shape }),
      };
  }
}

/** A fault that gives rows the LSE, or LSE and D, that dQ tells, by no rule. */
function* faultsOfRows(
  failed: FailedGradients,
  found: readonly FoundRow[],
): Generator<ReplayedFault> {
  if (found.some(({ logarithm }) => Number.isNaN(logarithm))) return;
  const { values: means, magnitude } = failed.measured.mean;
  const ownMean = ({ row, delta }: FoundRow) =>
    Math.abs(delta - means[row]) <= tolerance * magnitude[row];
  const isOfLse = found.every(ownMean);
  const byRow = new Map(found.map((one) => [one.row, one] as const));
  const rows = found.map(({ row }) => row);
  const numbers = (row: number): RowNumbers => {
    const { logarithm = 0, delta = 0 } = byRow.get(row) ?? {};
    return [logarithm, isOfLse ? means[row] : delta, 0];
  };
  const count = formatCount(rows.length, 'row');
  const why = 2 * rows.length < means.length ? cause : 'by no rule that is known';
  yield {
    id: isOfLse ? 'lse-wrong' : 'statistics-wrong',
    sentence: `the backward pass has a wrong LSE${isOfLse ? '' : ' and a wrong D'} in ${count}, ${why}`,
    change: changedStatistics(failed, rows, numbers),
    place: placeOfRows(rows, { ...failed.problem, shape: failed.measured.shape }),
  };
}

/** Faults of rows whose numbers dQ tells, those with a rule first. */
function* faultsOf(failed: FailedGradients, found: readonly FoundRow[]): Generator<ReplayedFault> {
  yield* faultsOfOthers(failed, found);
  yield* faultsOfRows(failed, found);
}

/**
 * Rows whose LSE and D are both wrong in the backward pass, which dQ tells and dK and dV have to bear out: those of other rows, zeros,
 * or anything. Only the first that is found.
 */
export function* statisticsFaults(of: Replayed): Generator<Prediction> {
  const { failed } = of;
  const { qkDim } = failed.measured.shape;
  const dq = failed.given.find(({ quantity }) => quantity.name === 'dq');
  if (dq === undefined || failed.given.length === 1 || failed.problem.scale === 0) return;
  if (qkDim < fewestColumns) return;
  const found = foundRows(of, dq.values);
  if (found === null || found.length === 0) return;
  for (const fault of faultsOf(failed, found)) {
    let isFound = false;
    for (const prediction of replayFaults(of, [fault])) {
      isFound ||= explains(failed, prediction);
      yield prediction;
    }
    // A cause with a name needs no numbers of its own.
    if (isFound) return;
  }
}
