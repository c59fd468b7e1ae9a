import { formats, unitRoundoff } from '../../../../formats/index.js';
import {
  createRotation,
  keysOf,
  type Problem,
  type RotaryLayout,
  type Rotation,
} from '../../../../problem/index.js';
import type {
  Hypothesis,
  HypothesisContext,
  HypothesisFamily,
  SampleRow,
} from '../../hypothesis.js';
import { predictWeighted, softmaxRow, type RowPrediction } from '../../prediction.js';
import { product, rowsOfKeys } from './operand-faults.js';

/**
 * Computes the row that a kernel reads in place of a rotated row of Q or K.
 * @param position of the row in its sequence, as the keys count
 * @param index of the row among the rows of its tensor in the sequence
 */
type Misread = (vector: Float64Array, position: number, index: number) => Float64Array;

/** A faulty rotation; null for a tensor that is rotated rightly. */
interface RotaryFault {
  readonly statement: string;
  readonly query: Misread | null;
  readonly key: Misread | null;
}

const otherLayout = { halves: 'neighbours', neighbours: 'halves' } as const;
const layoutNames = {
  halves: 'halves (t, t + d/2)',
  neighbours: 'neighbours (2t, 2t + 1)',
} as const;

/** Faults that a rotation of some layout may have. */
function faultsOf({ turn }: Rotation, layout: RotaryLayout): readonly RotaryFault[] {
  const times =
    (count: number): Misread =>
    (vector, position) =>
      turn(vector, position, layout, count);
  const both = (what: string, misread: Misread): RotaryFault[] => [
    { statement: `the rotary embedding of Q and K is ${what}`, query: misread, key: misread },
    { statement: `the rotary embedding of Q is ${what}, K's is right`, query: misread, key: null },
    { statement: `the rotary embedding of K is ${what}, Q's is right`, query: null, key: misread },
  ];
  const otherwise: Misread = (vector, position) =>
    turn(turn(vector, position, layout, -1), position, otherLayout[layout], 1);
  return [
    ...both('left out', times(-1)),
    ...both('applied twice', times(1)),
    ...both('turned the other way', times(-2)),
    ...both(
      `applied to ${layoutNames[otherLayout[layout]]} in place of ${layoutNames[layout]}`,
      otherwise,
    ),
    {
      statement:
        'the rotary embedding of Q counts positions from 0, and not on from the keys before them',
      query: (vector, position, index) =>
        turn(turn(vector, position, layout, -1), index, layout, 1),
      key: null,
    },
  ];
}

/** Mean square of a rounding to nearest, in units of the unit roundoff: over significands, 1/(8 ln 2). */
const meanSquare = 0.18;
/** Deviations within which an element is explained. */
const deviations = 6;

/** Relative deviation of a product q·k, from the roundings of the operands that a kernel had beside those that are given. */
function roundoffOf({ q, k }: Problem): number {
  const u = Math.hypot(unitRoundoff(formats[q.format]), unitRoundoff(formats[k.format]));
  return u * Math.sqrt(meanSquare);
}

/** Vectors of a row: its query and its keys as they are given, and as a faulty kernel has them. */
interface Misreading {
  readonly query: Float64Array;
  readonly misreadQuery: Float64Array;
  readonly key: (j: number) => Float64Array;
  readonly misreadKey: (j: number) => Float64Array;
}

/** Σ (a_t b_t)². */
function squaredProducts(a: Float64Array, b: Float64Array): number {
  return a.reduce((sum, x, t) => sum + (x * b[t]) ** 2, 0);
}

/**
 * A row as a kernel gives it that has other vectors. Beside its own roundings it has those of these vectors, of which the given ones
 * are a rotation: they move each score by itself.
 * @param roundoff relative deviation of a product of two elements
 */
function predictMisread(
  { reader, shape }: HypothesisContext,
  row: SampleRow,
  { query, misreadQuery, key, misreadKey }: Misreading,
  roundoff: number,
): RowPrediction {
  const { vDim } = shape;
  const misread = new Map([...keysOf(row.ranges)].map((j) => [j, misreadKey(j)] as const));
  const scores = reader.maskedScores(row.row, row.ranges, (j) =>
    reader.score(product(misreadQuery, misread.get(j)!), row.row, j),
  );
  const values = reader.keptOf(row.row, reader.values(row.kv));
  const weighted = softmaxRow(scores, values);
  const prediction = predictWeighted(row, weighted);
  const spread = new Float64Array(vDim);
  for (const j of keysOf(row.ranges)) {
    const weight = weighted.weights[j];
    if (weight === 0) continue;
    const size = squaredProducts(query, key(j)) + squaredProducts(misreadQuery, misread.get(j)!);
    const variance = (weight * reader.problem.scale * roundoff) ** 2 * size;
    for (let c = 0; c < vDim; c++)
      spread[c] += variance * (values[j * vDim + c] - prediction.out[c]) ** 2;
  }
  return {
    ...prediction,
    // Beside its own rounding an LSE has the much larger error from that of the operands.
    lse: NaN,
    noise: prediction.noise + spread.reduce((sum, x) => sum + x, 0),
    limit: prediction.limit.map((limit, c) => limit + deviations * Math.sqrt(spread[c])),
  };
}

/** Rotary embeddings of Q and K that are left out, made twice or made in another way, where a problem has their tables. */
export const rotaryHypotheses: HypothesisFamily = function* (context) {
  const { reader, shape } = context;
  const { rotary } = reader.problem;
  if (rotary === undefined) return;
  const rotation = createRotation(rotary, shape.qkDim);
  const keyRows = rowsOfKeys(context, 'k');
  const roundoff = roundoffOf(reader.problem);
  for (const layout of rotation.layouts)
    for (const { statement, query: misreadQuery, key: misreadKey } of faultsOf(rotation, layout))
      yield {
        id: 'rotary-embedding',
        technique: null,
        statement,
        ofAll: true,
        predict: (row) => {
          const { firstKey, query: index, keys, queries } = reader.place(row.row);
          const query = reader.query(row.row);
          const key = (j: number) => keyRows(row.kv * shape.keys + j);
          return predictMisread(
            context,
            row,
            {
              query,
              misreadQuery: misreadQuery?.(query, index + keys - queries, index) ?? query,
              key,
              misreadKey: (j) => misreadKey?.(key(j), j - firstKey, j - firstKey) ?? key(j),
            },
            roundoff,
          );
        },
      } satisfies Hypothesis;
};
