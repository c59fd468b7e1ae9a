import { viewedRows } from '../../../rows/index.js';
import type {
  Hypothesis,
  HypothesisContext,
  HypothesisFamily,
  SampleRow,
} from '../../hypothesis.js';
import { exactRow } from '../placement-faults.js';
import { predictOperands, rowsOfKeys, type Operands } from './operand-faults.js';

/** The two wrong orders of axes, the first of `viewedRows` first. */
const ways = [
  '[batch, seqlen, heads, dim] as if it were [batch, heads, seqlen, dim]',
  '[batch, heads, seqlen, dim] as if it were [batch, seqlen, heads, dim]',
] as const;

/** Tensors that are viewed together; where `back` is set, the output is written in the order in which Q is read. */
interface Viewed {
  readonly names: string;
  readonly q: boolean;
  readonly k: boolean;
  readonly v: boolean;
  readonly back?: true;
}

const viewed: readonly Viewed[] = [
  { names: 'Q, K and V are', q: true, k: true, v: true },
  { names: 'K and V are', q: false, k: true, v: true },
  { names: 'Q and K are', q: true, k: true, v: false },
  { names: 'Q and V are', q: true, k: false, v: true },
  { names: 'Q is', q: true, k: false, v: false },
  { names: 'K is', q: false, k: true, v: false },
  { names: 'V is', q: false, k: false, v: true },
  { names: 'Q, K and V are', q: true, k: true, v: true, back: true },
  { names: 'Q is', q: true, k: false, v: false, back: true },
];

/** Whether every tensor that is named has rows that a view moves, and has all of them here. */
function isMoved({ reader, shape }: HypothesisContext, { q, k, v }: Viewed): boolean {
  const { heads, kvHeads, queries, keys } = shape;
  // A sample of rows lacks those that others were mistaken for.
  if (q && (heads < 2 || queries < 2 || reader.problem.rows !== undefined)) return false;
  return !(k || v) || (kvHeads > 1 && keys > 1);
}

/** A view where a transpose is due: of inputs, and of the output that is viewed back. */
function* viewedInputs(context: HypothesisContext): Generator<Hypothesis> {
  const { reader, shape, buildRow } = context;
  const ofQueries = viewedRows(shape.heads, shape.queries);
  const ofKeys = viewedRows(shape.kvHeads, shape.keys);
  const key = rowsOfKeys(context, 'k');
  const value = rowsOfKeys(context, 'v');
  for (const one of viewed) {
    if (!isMoved(context, one)) continue;
    for (const direction of [0, 1] as const) {
      const how = ways[direction];
      const { from, to } = ofQueries[direction];
      const keyFrom = ofKeys[direction].from;
      const operands: Operands = {
        ...(one.q ? { query: (flat: number) => reader.query(from(flat)) } : {}),
        ...(one.k ? { key: (flat: number) => key(keyFrom(flat)) } : {}),
        ...(one.v ? { value: (flat: number) => value(keyFrom(flat)) } : {}),
      };
      const here = (row: SampleRow) => predictOperands(context, row, operands);
      // An LSE is [batch, heads, seqlen] in either order, and a host that views the output may view it or not.
      const back = (row: SampleRow) => ({ ...here(buildRow(to(row.row), row.damaged)), lse: NaN });
      yield {
        id: 'view-for-transpose',
        technique: null,
        statement: one.back
          ? `${one.names} read from ${how}, and the output is written so: views in place of transposes`
          : `${one.names} read from ${how}: a view in place of a transpose`,
        ofAll: true,
        predict: one.back ? back : here,
      };
    }
  }
}

/** A view where a transpose is due: of the output. */
function* viewedOutput(context: HypothesisContext): Generator<Hypothesis> {
  const { reader, shape } = context;
  const { heads, queries } = shape;
  if (heads < 2 || queries < 2 || reader.problem.rows !== undefined) return;
  for (const [direction, { from }] of viewedRows(heads, queries).entries())
    yield {
      id: 'view-for-transpose',
      technique: null,
      statement: `the output is read from ${ways[direction]}: a view in place of a transpose`,
      ofAll: true,
      predict: ({ row }) => exactRow(context, from(row)),
    };
}

/** Inputs or the output in memory of another order of axes than they are read in, so that a row is one of another head and position. */
export const viewHypotheses: HypothesisFamily = function* (context) {
  yield* viewedInputs(context);
  yield* viewedOutput(context);
};
