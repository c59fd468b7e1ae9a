import type {
  Hypothesis,
  HypothesisContext,
  HypothesisFamily,
  SampleRow,
} from '../../hypothesis.js';
import { misfitOf } from '../../measure-agreement.js';
import type { RowPrediction } from '../../prediction.js';
import { predictOperands, rowsOfKeys, type Operands } from './operand-faults.js';
import { exactRow } from '../placement-faults.js';

/** Heads that stand in place of others, whatever their order: by head the one that is found there. */
type HeadMap = ReadonlyMap<number, number>;

/** Rows of a head that its source is looked for with. */
const rowsOfHead = 2;
/** Multiply-adds that a search may take; with more heads, only the regular orders of the tables are tried. */
const productBudget = 2 ** 28;

/** Erring rows of each query head of a batch entry, a few of each, as far apart as they are. */
function rowsByHead({ erring, shape, buildRow }: HypothesisContext): Map<number, SampleRow[]> {
  const byHead = new Map<number, number[]>();
  for (const row of erring) {
    const head = Math.floor(row / shape.queries) % shape.heads;
    const rows = byHead.get(head);
    if (rows === undefined) byHead.set(head, [row]);
    else rows.push(row);
  }
  return new Map(
    [...byHead].map(([head, rows]) => {
      const step = Math.max(1, Math.floor(rows.length / rowsOfHead));
      const some = rows.filter((_, i) => i % step === 0).slice(0, rowsOfHead);
      return [head, some.map((row) => buildRow(row, true))];
    }),
  );
}

/** The source of each of some groups of rows that leaves least of their error; null where all stay as they are. */
function findSources(
  groups: ReadonlyMap<number, readonly SampleRow[]>,
  count: number,
  predict: (row: SampleRow, source: number) => RowPrediction,
): HeadMap | null {
  const sources = new Map<number, number>();
  for (const [own, rows] of groups) {
    const misfit = (source: number) =>
      rows.reduce((sum, row) => sum + misfitOf(row.observed, predict(row, source)), 0);
    let [best, least] = [own, Infinity];
    for (let source = 0; source < count; source++) {
      const left = misfit(source);
      if (left < least) [best, least] = [source, left];
    }
    sources.set(own, best);
  }
  return [...sources].some(([own, source]) => own !== source) ? sources : null;
}

/** "head 0 that of 2, head 1 that of 0 and 6 more". */
function describeMap(sources: HeadMap): string {
  const moved = [...sources].filter(([own, source]) => own !== source).sort(([a], [b]) => a - b);
  const shown = moved.slice(0, 4).map(([own, source]) => `head ${own} that of ${source}`);
  return `${shown.join(', ')}${moved.length > 4 ? ` and ${moved.length - 4} more` : ''}`;
}

/** Heads of the output in any order. */
function* movedOutputs(context: HypothesisContext): Generator<Hypothesis> {
  const { heads, queries } = context.shape;
  const from = (row: SampleRow, source: number) =>
    (row.head - (row.head % heads) + source) * queries + row.query;
  const sources = findSources(rowsByHead(context), heads, (row, source) =>
    exactRow(context, from(row, source)),
  );
  if (sources === null) return;
  yield {
    id: 'heads-permuted',
    technique: null,
    statement: `heads hold the output of others: ${describeMap(sources)}`,
    adjusted: true,
    predict: (row) => {
      const source = sources.get(row.head % heads) ?? row.head % heads;
      return source === row.head % heads ? row.correct : exactRow(context, from(row, source));
    },
  };
}

const operands = [
  { names: 'K and V', id: 'kv-heads-permuted', q: false, k: true, v: true },
  { names: 'K', id: 'kv-heads-permuted', q: false, k: true, v: false },
  { names: 'V', id: 'kv-heads-permuted', q: false, k: false, v: true },
  { names: 'Q', id: 'query-heads-permuted', q: true, k: false, v: false },
] as const;

/** Heads of Q, or of K and V, in any order; the heads of K that a group of query heads shares go together. */
function* movedOperands(context: HypothesisContext): Generator<Hypothesis> {
  const { reader, shape } = context;
  const { heads, kvHeads, queries, keys, groupSize } = shape;
  const key = rowsOfKeys(context, 'k');
  const value = rowsOfKeys(context, 'v');
  const byHead = rowsByHead(context);
  const byKvHead = new Map<number, SampleRow[]>();
  for (const [head, rows] of byHead) {
    const kv = Math.floor(head / groupSize);
    byKvHead.set(kv, [...(byKvHead.get(kv) ?? []), ...rows].slice(0, 2 * rowsOfHead));
  }
  for (const { names, id, q, k, v } of operands) {
    // A sample has no other rows of a head's.
    if (q && reader.problem.rows !== undefined) continue;
    const count = q ? heads : kvHeads;
    const own = (row: SampleRow) => (q ? row.head % heads : row.kv % kvHeads);
    const predict = (row: SampleRow, source: number): RowPrediction => {
      const by = source - own(row);
      if (by === 0) return row.correct;
      const read: Operands = {
        ...(q ? { query: (flat: number) => reader.query(flat + by * queries) } : {}),
        ...(k ? { key: (flat: number) => key(flat + by * keys) } : {}),
        ...(v ? { value: (flat: number) => value(flat + by * keys) } : {}),
      };
      return predictOperands(context, row, read);
    };
    const sources = findSources(q ? byHead : byKvHead, count, predict);
    if (sources === null) continue;
    yield {
      id,
      technique: null,
      statement: `${names} ${names === 'K and V' ? 'are' : 'is'} read from other heads: ${describeMap(sources)}`,
      adjusted: true,
      predict: (row) => predict(row, sources.get(own(row)) ?? own(row)),
    };
  }
}

/** Heads of the output or of an operand in the place of others, in whatever order. */
export const movedHeadHypotheses: HypothesisFamily = function* (context) {
  const { heads, keys, qkDim, vDim } = context.shape;
  const rows = rowsOfHead * heads;
  if (heads < 2 || rows * heads * keys * (qkDim + vDim) > productBudget) return;
  yield* movedOutputs(context);
  yield* movedOperands(context);
};
