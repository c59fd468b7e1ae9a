import type { ProblemShape } from '../../../problem/index.js';
import type { HypothesisContext, HypothesisFamily, SampleRow } from '../hypothesis.js';
import { scalePrediction } from '../prediction.js';
import type { RowReader } from '../row-reader.js';
import { createRowShares, type RowShares } from '../row-shares.js';

/** A wrong divisor, in units of the row's correct sum. */
interface RowSumFault {
  readonly id: string;
  readonly technique: string | null;
  readonly statement: string;
  /** The statement without its parameters. */
  readonly cause?: string;
  /** Faulty divisor / correct row sum. */
  readonly ratio: (row: SampleRow) => number;
  /** Whether the LSE is made of the same sum. */
  readonly inLse: boolean;
}

/** Σ over the keys that `counts` and a sink: their share in the row sum. */
function share(shares: Float64Array, keys: number, counts: (key: number) => boolean): number {
  let sum = 0;
  for (let j = 0; j < shares.length; j++)
    if (shares[j] !== 0 && (j >= keys || counts(j))) sum += shares[j];
  return sum;
}

const padSizes = [16, 32, 64, 128, 256] as const;
const strides = [2, 4, 8, 16, 32] as const;
const tileSizes = [16, 32, 64, 128] as const;

/** Keys of zeros that pad a sequence up to a multiple of some number, or up to the longest sequence. */
function* paddingFaults(reader: RowReader, { keys, batch }: ProblemShape): Generator<RowSumFault> {
  const { sequences, causal } = reader.problem;
  const lengths = sequences?.map((one) => one.keys) ?? Array.from({ length: batch }, () => keys);
  const longest = Math.max(...lengths);
  const paddings = [
    ...padSizes.map((size) => ({
      extra: (length: number) => (size - (length % size)) % size,
      where: `up to a multiple of ${size}`,
    })),
    { extra: (length: number) => longest - length, where: 'up to the longest sequence' },
  ];
  const known = new Set<string>();
  for (const { extra, where } of causal ? [] : paddings) {
    const extras = lengths.map(extra);
    const some = [...new Set(extras.filter((count) => count > 0))];
    const [count] = some;
    if (count === undefined || known.has(extras.join())) continue;
    known.add(extras.join());
    const past = sequences === undefined ? 'the last one' : 'the end of a sequence';
    yield {
      id: 'tail-keys-counted',
      technique: null,
      statement: `${some.length === 1 ? `${count} ` : ''}keys of zeros past ${past}, ${where}, are counted`,
      ratio: (row) => 1 + extra(reader.place(row.row).keys) * Math.exp(-row.denominator),
      inLse: true,
    };
  }
  yield {
    id: 'zero-key-counted',
    technique: 'row-sum',
    statement: 'one more key with score 0, a sink, is in the row sum',
    ratio: (row) => 1 + Math.exp(-row.denominator),
    inLse: true,
  };
}

/** Keys after which all regular patterns of keys that a row sum may leave out repeat. */
const period = 128;

/** Σ over the keys of each residue of 128, and last that of a sink. */
function residueSums(shares: Float64Array, keys: number): Float64Array {
  const sums = new Float64Array(period + 1);
  for (let j = 0; j < keys; j++) sums[j % period] += shares[j];
  for (let j = keys; j < shares.length; j++) sums[period] += shares[j];
  return sums;
}

/** A pattern of keys that a row sum has. */
interface SummedKeys {
  readonly statement: string;
  readonly counts: (key: number) => boolean;
}

/** Patterns that repeat after 128 keys. */
function* regularPatterns(keys: number): Generator<SummedKeys> {
  for (const stride of strides)
    for (let residue = 0; residue < stride && stride < keys; residue++) {
      if (stride <= 4)
        yield {
          statement: `the row sum takes one key in ${stride} only, from key ${residue} on`,
          counts: (key) => key % stride === residue,
        };
      if (stride > 2)
        yield {
          statement: `the row sum leaves out one key in ${stride}, from key ${residue} on`,
          counts: (key) => key % stride !== residue,
        };
    }
  for (const size of [32, 64, 128]) {
    const half = size / 2;
    if (half >= keys) continue;
    const halves = ['first', 'second'] as const;
    for (const [index, name] of halves.entries())
      yield {
        statement: `the row sum takes the ${name} ${half} of each ${size} keys only`,
        counts: (key) => Math.floor(key / half) % 2 === index,
      };
    for (let quarter = 0; quarter < 4; quarter++)
      yield {
        statement: `the row sum leaves out keys ${(quarter * size) / 4} to ${((quarter + 1) * size) / 4 - 1} of each ${size}`,
        counts: (key) => Math.floor((4 * key) / size) % 4 !== quarter,
      };
  }
}

function* partialSums(
  shares: RowShares,
  { keys }: ProblemShape,
  isLong: boolean,
): Generator<RowSumFault> {
  const known = new Map<number, Float64Array>();
  const residues = (row: SampleRow) => {
    const sums = known.get(row.row) ?? residueSums(shares(row), keys);
    known.set(row.row, sums);
    return sums;
  };
  const sum = (statement: string, ratio: RowSumFault['ratio']): RowSumFault => ({
    id: 'row-sum-over-part-of-the-keys',
    technique: 'row-sum',
    statement,
    cause: 'the row sum leaves out part of the keys',
    ratio,
    inLse: true,
  });
  for (const { statement, counts } of regularPatterns(keys))
    yield sum(statement, (row) =>
      isLong ? share(residues(row), period, counts) : share(shares(row), keys, counts),
    );
  /** Without the tile of a key. */
  const without = (row: SampleRow, size: number, key: number) => {
    const first = key - (key % size);
    const isLeft = (other: number) => other >= first && other < first + size;
    if (!isLong) return share(shares(row), keys, (other) => !isLeft(other));
    const all = residues(row).reduce((total, x) => total + x, 0);
    const end = Math.min(first + size, keys);
    return (
      all -
      shares(row)
        .subarray(first, end)
        .reduce((total, x) => total + x, 0)
    );
  };
  for (const size of tileSizes) {
    if (size >= keys) continue;
    for (const last of [true, false])
      yield sum(
        `the ${last ? 'last' : 'first'} tile of ${size} keys is not in the row sum`,
        (row) => without(row, size, last ? row.span.end - 1 : row.span.begin),
      );
  }
  yield sum('key 0 is not in the row sum', (row) => without(row, 1, 0));
  yield sum('the last key is not in the row sum', (row) => without(row, 1, row.span.end - 1));
}

function* divisionFaults(reader: RowReader): Generator<RowSumFault> {
  const largest = ({ row }: SampleRow) =>
    reader.scores(row).reduce((a, b) => Math.max(a, b), -Infinity);
  yield {
    id: 'not-normalised',
    technique: 'normalise',
    statement: 'the output is not divided by the row sum',
    ratio: (row) => Math.exp(largest(row) - row.denominator),
    inLse: false,
  };
  yield {
    id: 'normalised-twice',
    technique: 'normalise',
    statement: 'the output is divided by the row sum twice',
    ratio: (row) => Math.exp(row.denominator - largest(row)),
    inLse: false,
  };
}

function* rowSumFaults({ reader, shape, isLong }: HypothesisContext): Generator<RowSumFault> {
  yield* paddingFaults(reader, shape);
  yield* partialSums(createRowShares(reader), shape, isLong === true);
  yield* divisionFaults(reader);
}

/** Right weights over a wrong row sum: each row's output off by one factor. */
export const rowSumHypotheses: HypothesisFamily = function* (context) {
  const { input } = context;
  const hasLse = input.outputs.lse !== null;
  for (const { id, technique, statement, cause, ratio, inLse } of rowSumFaults(context)) {
    // Where the LSE is not given, or is right, the division alone may have got the wrong sum.
    for (const lseFollows of inLse && hasLse ? [true, false] : [inLse])
      yield {
        id,
        technique,
        ...(cause === undefined ? {} : { cause }),
        statement: inLse && hasLse && !lseFollows ? `${statement}, but not in the LSE` : statement,
        predict: (row) => {
          if (row.ranges.length === 0) return row.correct;
          const divisor = ratio(row);
          if (divisor === 0) return null;
          const lse = row.correct.lse + (lseFollows ? Math.log(divisor) : 0);
          return scalePrediction(row, row.correct, 1 / divisor, lse);
        },
      };
  }
};

/** Fewest rows that show factors of their own. */
const fewestRows = 8;

/** "−1.2 % to 0.8 %". */
function rangeOf(factors: readonly number[]): string {
  const percent = (x: number) => `${Number(((x - 1) * 100).toPrecision(2))} %`;
  return `${percent(Math.min(...factors))} to ${percent(Math.max(...factors))}`;
}

/** The factor of a row's output that its LSE shows: the factor by which the row sum is too small. */
function factorByLse({ observedLse, correct }: SampleRow): number {
  return Math.exp(correct.lse - observedLse!);
}

/**
 * A row sum that is off by a factor of its own on every row: the LSE gives the factor, and the output bears it out.
 * Said only when nothing that would make such factors is known.
 */
export const rowFactorHypotheses: HypothesisFamily = function* ({ sample, input }) {
  if (input.outputs.lse === null) return;
  const damaged = sample.filter((row) => row.damaged);
  if (damaged.length < fewestRows) return;
  const factors = damaged.map(factorByLse);
  if (!factors.every((x) => Number.isFinite(x) && x > 0)) return;
  yield {
    id: 'row-sum-by-row',
    technique: 'row-sum',
    statement: `the row sum is wrong by a factor that differs from row to row, and the LSE with it: the output is off by ${rangeOf(factors)}`,
    fitted: true,
    predict: (row) => {
      const factor = factorByLse(row);
      if (!Number.isFinite(factor)) return null;
      return scalePrediction(row, row.correct, factor, row.observedLse!);
    },
  };
};
