import { formats, unitRoundoff } from '../../../../formats/index.js';
import {
  createRotation,
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
import type { RowPrediction } from '../../prediction.js';
import { predictOperands, rowsOfKeys } from './operand-faults.js';

/**
 * Computes the row that a kernel reads in place of a rotated row of Q or K.
 * @param position of the row in its sequence
 */
type Misread = (
  vector: Float64Array,
  position: number,
  place: { readonly ofQuery: number },
) => Float64Array;

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
      query: (vector, position, { ofQuery }) =>
        turn(turn(vector, position, layout, -1), ofQuery, layout, 1),
      key: null,
    },
  ];
}

/** Mean square of a rounding to nearest, in units of the unit roundoff: over significands, 1/(8 ln 2). */
const meanSquare = 0.18;
/** The largest number of roundings of an operand: of the given one, and of the kernel's own. */
const roundings = 2;
/** Deviations within which an element is explained. */
const deviations = 6;

/** Relative deviation of a product q·k, from the roundings of the operands that a kernel had beside those that are given. */
function roundoffOf({ q, k }: Problem): number {
  const u = Math.hypot(unitRoundoff(formats[q.format]), unitRoundoff(formats[k.format]));
  return u * Math.sqrt(roundings * meanSquare);
}

/** Adds to a prediction the effect of scores that are off by so much, each on its own. */
function blurred(
  { reader }: HypothesisContext,
  row: SampleRow,
  prediction: RowPrediction,
  roundoff: number,
): RowPrediction {
  const { vDim } = row;
  const { qkDim } = reader.shape;
  const { scale } = reader.problem;
  const values = reader.values(row.kv);
  const keys = reader.keys(row.kv);
  const scores = reader.scores(row.row);
  const query = reader.query(row.row);
  const spread = new Float64Array(vDim);
  scores.forEach((score, j) => {
    const weight = Math.exp(score - row.denominator);
    if (weight === 0) return;
    let size = 0;
    for (let t = 0; t < qkDim; t++) size += (query[t] * keys[j * qkDim + t]) ** 2;
    const error = weight ** 2 * (scale * roundoff) ** 2 * size;
    for (let c = 0; c < vDim; c++)
      spread[c] += error * (values[j * vDim + c] - row.correct.out[c]) ** 2;
  });
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
    for (const { statement, query, key } of faultsOf(rotation, layout))
      yield {
        id: 'rotary-embedding',
        technique: null,
        statement,
        ofAll: true,
        predict: (row) => {
          const { firstKey, ...place } = reader.place(row.row);
          const before = place.keys - place.queries;
          const first = row.kv * shape.keys + firstKey;
          const prediction = predictOperands(context, row, {
            ...(query !== null && {
              query: (flat) =>
                query(reader.query(flat), place.query + before, { ofQuery: place.query }),
            }),
            ...(key !== null && {
              key: (flat) => key(keyRows(flat), flat - first, { ofQuery: flat - first }),
            }),
          });
          return blurred(context, row, prediction, roundoff);
        },
      } satisfies Hypothesis;
};
