import type { Hypothesis, HypothesisContext, HypothesisFamily, SampleRow } from '../hypothesis.js';
import { misfitOf } from '../measure-agreement.js';
import { correctRow, type RowPrediction } from '../prediction.js';
import { listNumbers } from '../describe-damage.js';

/** A permutation of the columns of a row, within blocks of `size`. */
interface ColumnFault {
  readonly statement: string;
  readonly size: number;
  readonly from: (column: number) => number;
}

function columnFaults(vDim: number): ColumnFault[] {
  const faults: ColumnFault[] = [];
  for (const size of [4, 8, 16, 32, 64, 128, 256].filter((size) => vDim % size === 0)) {
    for (let by = 1; by < size; by *= 2) {
      const block = (column: number) => column - (column % size);
      for (const shift of by === size / 2 ? [by] : [by, size - by])
        faults.push({
          statement: `the columns are rotated by ${shift} in each ${size}`,
          size,
          from: (column) => block(column) + (((column % size) + shift) % size),
        });
      if (size === 2 * by || by === 1)
        faults.push({
          statement: `columns ${by} apart are exchanged in each ${size}`,
          size,
          from: (column) => block(column) + ((column % size) ^ by),
        });
    }
    faults.push({
      statement: `the columns are reversed in each ${size}`,
      size,
      from: (column) => column - 2 * (column % size) + size - 1,
    });
  }
  // The same permutation can go by several names.
  const known = new Set<string>();
  return faults.filter(({ from }) => {
    const image = Array.from({ length: vDim }, (_, c) => from(c)).join();
    return known.has(image) ? false : known.add(image);
  });
}

function permuted(correct: RowPrediction, from: (column: number) => number): RowPrediction {
  return {
    ...correct,
    out: correct.out.map((_, c) => correct.out[from(c)]),
    limit: correct.limit.map((_, c) => correct.limit[from(c)]),
  };
}

/** Columns of the output in the wrong order. */
export const columnHypotheses: HypothesisFamily = function* ({ shape }) {
  for (const { statement, from } of columnFaults(shape.vDim))
    yield {
      id: 'columns-permuted',
      technique: null,
      statement,
      predict: ({ correct }) => permuted(correct, from),
    };
};

/** The exact output of any row as a prediction for `row`, with that row's rounding. */
export function exactRow(context: HypothesisContext, source: number): RowPrediction {
  const { input, noise } = context;
  const { out, limit } = correctRow(input, source);
  return { out, limit, noise: noise[source], lse: NaN };
}

/** Finds the row of one head that stands in place of `row`; null where none does. */
function findSource(context: HypothesisContext, row: SampleRow, head: number): number | null {
  const { queries } = context.shape;
  let best: number | null = null;
  let least = Infinity;
  for (let query = 0; query < queries; query++) {
    const source = head * queries + query;
    if (source === row.row) continue;
    const misfit = misfitOf(row.observed, exactRow(context, source));
    if (misfit < least) {
      least = misfit;
      best = source;
    }
  }
  return best;
}

/** Rows of the output in the wrong place: each damaged row is some other row of its head. */
export const rowHypotheses: HypothesisFamily = function* (context) {
  const { sample, shape } = context;
  const damaged = sample.filter((row) => row.damaged);
  const sources = new Map<number, number>();
  for (const row of damaged.slice(0, 12)) {
    const source = findSource(context, row, row.head);
    if (source !== null) sources.set(row.row, source);
  }
  const offsets = new Map<number, number>();
  for (const [row, source] of sources)
    offsets.set(source - row, (offsets.get(source - row) ?? 0) + 1);
  for (const offset of offsets.keys()) {
    if (offset % shape.queries === 0) continue;
    const source = ({ head, query, row }: SampleRow) => {
      const other = query + offset;
      return other < 0 || other >= shape.queries ? row : head * shape.queries + other;
    };
    yield {
      id: 'rows-permuted',
      technique: null,
      statement: `rows hold the output of the query ${Math.abs(offset)} ${offset > 0 ? 'after' : 'before'} their own`,
      local: true,
      predict: (row) => exactRow(context, source(row)),
    };
  }
  if (damaged.length > 0 && damaged.every(({ row }) => sources.has(row))) {
    const exchanged = damaged.every(({ row }) => {
      const back = sources.get(sources.get(row)!);
      return back === undefined || back === row;
    });
    const list = [...sources.keys()]
      .sort((a, b) => a - b)
      .map((row) => row % shape.queries)
      .join(', ');
    yield {
      id: 'rows-permuted',
      technique: null,
      statement: exchanged
        ? `the outputs of queries ${list} are exchanged`
        : `queries ${list} hold the outputs of other queries of their head`,
      local: true,
      predict: (row) => {
        const source = sources.get(row.row);
        return source === undefined ? row.correct : exactRow(context, source);
      },
    };
  }
  for (const size of [8, 16, 32, 64, 128])
    for (let by = 1; by < size; by *= 2)
      for (const shift of by === size / 2 ? [by] : [by, size - by])
        if (shape.queries >= size)
          yield {
            id: 'rows-permuted',
            technique: null,
            statement: `rows are rotated by ${shift} in each ${size}`,
            predict: (row) => {
              const first = row.query - (row.query % size);
              const height = Math.min(size, shape.queries - first);
              const other = first + (((row.query % size) + shift) % height);
              return exactRow(context, row.row - row.query + other);
            },
          };
};

/** Whole heads of the output in the wrong place. */
export const headPlaceHypotheses: HypothesisFamily = function* (context) {
  const { batch, heads, queries } = context.shape;
  const count = batch * heads;
  if (count < 2) return;
  const head0 = (head: number) => head - (head % heads);
  const faults: readonly (readonly [string, (head: number) => number])[] = [
    ['each head holds the output of the next', (h) => head0(h) + (((h % heads) + 1) % heads)],
    [
      'each head holds the output of the one before',
      (h) => head0(h) + (((h % heads) + heads - 1) % heads),
    ],
    ['the heads are in reverse order', (h) => head0(h) + heads - 1 - (h % heads)],
    ['heads and batch entries are transposed', (h) => (h % batch) * heads + Math.floor(h / batch)],
    ['each batch entry holds the output of the next', (h) => (h + heads) % count],
  ];
  for (const [statement, from] of faults)
    yield {
      id: 'heads-permuted',
      technique: null,
      statement,
      ofAll: true,
      predict: (row) => exactRow(context, from(row.head) * queries + row.query),
    };
};

/** Number of rows by which the source of a column is found. */
const searchedRows = 24;
/** The multiple of the roundings' squares from which on a column errs. */
const damaged = 8;
/** Another column is the source when it leaves at most this part of the squares. */
const improvement = 0.2;

/** Σ over the rows of (observed column − exact column)², in units of the rounding of one element. */
function mismatch(rows: readonly SampleRow[], column: number, source: number): number {
  let sum = 0;
  for (const { observed, correct, vDim } of rows)
    sum += ((observed[column] - correct.out[source]) ** 2 * vDim) / correct.noise;
  return sum;
}

/** The source of each column that errs; null when one of them has no source. */
function sourcesOf(rows: readonly SampleRow[], vDim: number): Map<number, number> | null {
  const sources = new Map<number, number>();
  for (let column = 0; column < vDim; column++) {
    const own = mismatch(rows, column, column);
    if (own <= damaged * rows.length) continue;
    let [best, least] = [column, own];
    for (let source = 0; source < vDim; source++) {
      const left = mismatch(rows, column, source);
      if (left < least) [best, least] = [source, left];
    }
    if (least > improvement * own) return null;
    sources.set(column, best);
  }
  return sources;
}

/** "columns 5 and 6 are exchanged", or the column that each of them holds. */
function describeSources(sources: ReadonlyMap<number, number>): string {
  const columns = [...sources.keys()];
  const exchanged = columns.every((column) => sources.get(sources.get(column)!) === column);
  if (exchanged && columns.length === 2) return `columns ${listNumbers(columns)} are exchanged`;
  const list = columns.slice(0, 4).map((column) => `${column} that of ${sources.get(column)!}`);
  const more = columns.length > 4 ? ` and ${columns.length - 4} more` : '';
  return `columns hold the values of others: ${list.join(', ')}${more}`;
}

/** Columns of the output that hold those of others, or nothing. */
export const columnPlaceHypotheses: HypothesisFamily = function* ({ sample, shape }) {
  const { vDim } = shape;
  const rows = sample.filter((row) => row.damaged);
  const first = rows.slice(0, searchedRows);
  if (first.length === 0) return;
  const zero = Array.from({ length: vDim }, (_, c) => c).filter((c) =>
    rows.every(({ observed }) => observed[c] === 0),
  );
  if (zero.length > 0 && zero.length < vDim)
    yield {
      id: 'columns-not-written',
      technique: null,
      statement: `columns ${listNumbers(zero)} are zero: not written`,
      predict: ({ correct }) => {
        const out = correct.out.slice();
        for (const c of zero) out[c] = 0;
        return { ...correct, out };
      },
    };
  const sources = sourcesOf(first, vDim);
  if (sources === null || sources.size === 0) return;
  const from = (column: number) => sources.get(column) ?? column;
  const moved: Hypothesis = {
    id: 'columns-permuted',
    technique: null,
    statement: describeSources(sources),
    // A regular permutation with the same effect takes fewer words.
    adjusted: true,
    predict: ({ correct }) => ({
      ...correct,
      out: correct.out.map((_, c) => correct.out[from(c)]),
      limit: correct.limit.map((_, c) => correct.limit[from(c)]),
    }),
  };
  yield moved;
};
