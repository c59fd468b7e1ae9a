import { formatCount } from '../../../words/index.js';
import { rowPlaces } from '../../../problem/index.js';
import { meanShares } from './mean-shares.js';
import type { FailedGradients } from './failed-gradients.js';
import type { Prediction } from './prediction.js';
import type { ReplayedFault } from './replayed-fault.js';
import { replayFaults } from './replayed-fault.js';
import type { Replayed } from './replay/replay.js';

/** What the backward pass takes for a row's LSE and D, as dQ tells; NaN where it does not, as of a row that sees one key. */
interface FoundRow {
  readonly row: number;
  readonly logarithm: number;
  readonly delta: number;
}

/** From how many times what roundings make on a row is off. */
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

/** Whose LSE and D a row may be given; null for none, whose memory holds zeros. */
interface OtherRows {
  readonly id: string;
  readonly words: string;
  readonly of: (row: number) => number | null;
}

/** Rows and tiles that reads are off by. */
const shifts = [1, 32, 64, 128] as const;

/** Rows whose LSE and D may be taken for those of others. */
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

/** How far LSE and D of a row may be from those that dQ tells, beside their own sizes. */
const tolerance = 2 ** -4;

/** The share of rows that another row's numbers are to be found in; of the rest, as of borders, they are what dQ tells. */
const leastShare = 0.75;

/** "queries 128 to 149 of head 0 and 22 other rows" */
function describe(rows: readonly FoundRow[], { measured }: FailedGradients): string {
  const { queries, heads } = measured.shape;
  const first = rows[0].row;
  const end = rows.findIndex(
    ({ row }, i) => row !== first + i || Math.floor(row / queries) !== Math.floor(first / queries),
  );
  const count = end < 0 ? rows.length : end;
  const batch = Math.floor(first / (queries * heads));
  const where = `${batch === 0 ? '' : `batch ${batch}, `}head ${Math.floor(first / queries) % heads}`;
  const run =
    count === 1
      ? `query ${first % queries} of ${where}`
      : `queries ${first % queries} to ${(first + count - 1) % queries} of ${where}`;
  const others = rows.length - count;
  return others === 0 ? run : `${run} and ${formatCount(others, 'other row')}`;
}

/** Faults that give rows the numbers found, or those of others that these are near to. */
function* faultsOf(failed: FailedGradients, found: readonly FoundRow[]): Generator<ReplayedFault> {
  const { measured } = failed;
  const { denominator } = measured.reference;
  const { values: means, magnitude } = measured.mean;
  const where = describe(found, failed);
  const cause = 'as where they are read before they are written, or from another place';
  const allRows = Array.from(means, (_, row): FoundRow => ({ row, logarithm: NaN, delta: NaN }));
  const change = (
    numbers: (one: FoundRow) => readonly [logarithm: number, delta: number, size?: number],
    rows = found,
  ) => {
    const logarithm = Float64Array.from(denominator);
    const [delta, deltaSizes] = [means.slice(), magnitude.slice()];
    for (const one of rows) {
      const [ofLse, ofMean, size = 0] = numbers(one);
      [logarithm[one.row], delta[one.row]] = [ofLse, ofMean];
      deltaSizes[one.row] = Math.max(deltaSizes[one.row], size);
    }
    return { logarithm, delta, deltaSizes };
  };
  const told = found.filter(({ logarithm }) => !Number.isNaN(logarithm));
  const ownMean = ({ row, delta }: FoundRow) =>
    Math.abs(delta - means[row]) <= tolerance * magnitude[row];
  const isOfLse = told.every(ownMean);
  const numbersOf = (row: number, from: number | null): readonly [number, number, number] => {
    const isInside = from !== null && from >= 0 && from < means.length;
    const [ofLse, ofMean, size] = isInside
      ? [denominator[from], means[from], magnitude[from]]
      : [0, 0, 0];
    return isOfLse ? [ofLse, means[row], 0] : [ofLse, ofMean, size];
  };
  const what = isOfLse ? 'the LSE' : 'the LSE and D';
  for (const { id, words, of } of otherRows(failed)) {
    const numbers = ({ row }: FoundRow) => numbersOf(row, of(row));
    const isNear = (one: FoundRow) => {
      const [ofLse, ofMean] = numbers(one);
      const size = magnitude[one.row] + Math.abs(ofMean);
      return (
        Math.abs(ofLse - one.logarithm) <= tolerance &&
        Math.abs(ofMean - one.delta) <= tolerance * size
      );
    };
    const near = told.filter(isNear);
    if (near.length === 0 || near.length < leastShare * told.length) continue;
    const fault = {
      id,
      sentence: `the backward pass reads for ${what} of ${where} ${words}, ${cause}`,
    };
    yield { ...fault, change: change(numbers) };
    // Of some rows dQ tells nothing.
    yield { ...fault, change: change(numbers, allRows) };
    if (near.length === found.length) continue;
    const isOther = new Set(told.filter((one) => !isNear(one)));
    yield {
      ...fault,
      change: change((one) => (isOther.has(one) ? [one.logarithm, one.delta] : numbers(one))),
    };
  }
  if (told.length < found.length) return;
  yield isOfLse
    ? {
        id: 'lse-wrong',
        sentence: `the backward pass has a wrong LSE in ${where}, ${cause}`,
        change: change(({ row, logarithm }) => [logarithm, means[row]]),
      }
    : {
        id: 'statistics-wrong',
        sentence: `the backward pass has a wrong LSE and a wrong D in ${where}, ${cause}`,
        change: change(({ logarithm, delta }) => [logarithm, delta]),
      };
}

/**
 * Rows whose LSE and D are wrong in the backward pass together, which dQ tells and dK and dV have to bear out: of other rows, zeros, or
 * anything. Of the first that is found.
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
      isFound = true;
      yield prediction;
    }
    // What has a name needs no numbers of its own.
    if (isFound) return;
  }
}
