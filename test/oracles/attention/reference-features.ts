import { decodeToFloat64, formats } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { sees } from './sees.js';

/** Where a row is: its batch or sequence, its head, and its query there. */
interface Place {
  readonly sequence: number;
  readonly head: number;
  readonly query: number;
  readonly queries: number;
  readonly keys: number;
  readonly firstKey: number;
}

/** What the features of a problem make of a row and a key, word for word as their members have it. */
export interface ReferenceFeatures {
  readonly place: (batch: number, head: number, row: number) => Place;
  readonly sees: (place: Place, key: number) => boolean;
  readonly addsToScores: boolean;
  /** Bias, slope and distance: bias − slope · distance is added. */
  readonly addend: (place: Place, key: number) => readonly [number, number, number];
  readonly isKept: (place: Place, key: number) => boolean;
}

type Shaped = { readonly shape: readonly number[] };

/** Where [sequence, head, query, key] is in a tensor that is broadcast. */
function broadcastIndex({ shape }: Shaped, place: readonly number[]): number {
  const sizes = [1, 1, 1, 1, ...shape].slice(-4);
  return sizes.reduce((index, size, axis) => index * size + (size === 1 ? 0 : place[axis]), 0);
}

function decode(tensor: Tensor): Float64Array {
  return decodeToFloat64(tensor.data, formats[tensor.format]);
}

/** Reads the features; `segments`, `prefix` and `blockMask` have tests of their own, and are not known here. */
export function readFeatures(problem: Problem): ReferenceFeatures {
  const { mask, bias, alibiSlopes, dropout, sequences, rows } = problem;
  if (problem.segments ?? problem.prefix ?? problem.blockMask)
    throw new Error('the reference knows no segments, prefix or block mask');
  const heads = problem.q.shape.at(-3)!;
  const queries = problem.q.shape.at(-2)!;
  const keys = problem.k.shape.at(-2)!;
  const biases = bias === undefined ? null : decode(bias);
  const slopes = alibiSlopes === undefined ? null : decode(alibiSlopes);
  const within = ({ sequence, head, query, firstKey }: Place, key: number) => [
    sequence,
    head,
    query,
    key - firstKey,
  ];
  return {
    place: (batch, head, row) => {
      const at = rows === undefined ? row : rows.queries[(batch * heads + head) * queries + row];
      const whole = { queries: rows?.of ?? queries, keys, firstKey: 0 };
      if (sequences === undefined) return { sequence: batch, head, query: at, ...whole };
      const sequence = sequences.findIndex(
        ({ firstQuery, queries }) => firstQuery <= at && at < firstQuery + queries,
      );
      return { ...sequences[sequence], sequence, head, query: at - sequences[sequence].firstQuery };
    },
    sees: (place, key) => {
      const own = key - place.firstKey;
      if (own < 0 || own >= place.keys) return false;
      if (!sees(problem, place, own)) return false;
      if (mask !== undefined && mask.data[broadcastIndex(mask, within(place, key))] === 0)
        return false;
      return bias === undefined || biases![broadcastIndex(bias, within(place, key))] !== -Infinity;
    },
    addsToScores: biases !== null || slopes !== null,
    addend: (place, key) => [
      bias === undefined ? 0 : biases![broadcastIndex(bias, within(place, key))],
      slopes === null
        ? 0
        : slopes[
            alibiSlopes!.shape.length === 2 ? place.sequence * heads + place.head : place.head
          ],
      Math.abs(place.query + place.keys - place.queries - (key - place.firstKey)),
    ],
    isKept: (place, key) =>
      dropout === undefined ||
      dropout.kept.data[broadcastIndex(dropout.kept, within(place, key))] !== 0,
  };
}
