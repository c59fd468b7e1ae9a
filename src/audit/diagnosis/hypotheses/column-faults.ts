import { listNumbers } from '../location.js';
import type { Hypothesis, HypothesisFamily, SampleRow } from '../hypothesis.js';

/** Rows that tell where a column comes from. */
const searchedRows = 24;
/** A column errs when its squares exceed this multiple of what rounding makes. */
const damaged = 8;
/** Another column is its source when that leaves this part of the squares at most. */
const improvement = 0.2;

/** Σ over the rows of (observed column − exact column)², in units of the rounding of one element. */
function mismatch(rows: readonly SampleRow[], column: number, source: number): number {
  let sum = 0;
  for (const { observed, correct, vDim } of rows)
    sum += ((observed[column] - correct.out[source]) ** 2 * vDim) / correct.noise;
  return sum;
}

/** Where each column comes from; null when a column that errs comes from nowhere. */
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

/** "columns 5 and 6 are exchanged", or what each of them holds. */
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
    // A regular permutation that does the same is said in fewer words.
    adjusted: true,
    predict: ({ correct }) => ({
      ...correct,
      out: correct.out.map((_, c) => correct.out[from(c)]),
      limit: correct.limit.map((_, c) => correct.limit[from(c)]),
    }),
  };
  yield moved;
};
