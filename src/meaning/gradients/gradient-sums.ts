import {
  addDoubleDouble,
  doubleDouble,
  multiplyDoubleDoubleByFloat64,
  type DoubleDouble,
} from '../../arith/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import type { RowPlace } from '../contracts/index.js';
import { visibleKeysOf, type GradientRow } from './gradient-row.js';
import { evaluateRow, type GradientForm, type RowTerms } from './row-terms.js';

/** The gradients of attention that certificates compare. */
export const gradientNames = ['dq', 'dk', 'dv'] as const;

/** One of them. */
export type GradientName = (typeof gradientNames)[number];

/** Rows of a gradient: queries of query heads for dQ, keys of heads of K for dK and dV. */
export type PlacesByGradient = Readonly<Record<GradientName, readonly RowPlace[]>>;

/** The forms of which each gradient is wanted. */
export type FormsByGradient = Readonly<Record<GradientName, readonly GradientForm[]>>;

/** A row of a gradient before its factor. */
export interface GradientVector {
  /** Per column. */
  readonly sums: readonly DoubleDouble[];
  /** Σ of the sizes of the terms of each, with those of the products and of δ in them, a softcap's slope as 1. */
  readonly sizes: Float64Array;
}

/** A vector that is being summed. */
class VectorSum {
  readonly #sums: DoubleDouble[];
  readonly #sizes: Float64Array;

  constructor(columns: number) {
    this.#sums = Array.from({ length: columns }, () => doubleDouble(0));
    this.#sizes = new Float64Array(columns);
  }

  add({ value, size }: RowTerms, vector: Float64Array): void {
    vector.forEach((x, c) => {
      if (x === 0) return;
      this.#sums[c] = addDoubleDouble(this.#sums[c], multiplyDoubleDoubleByFloat64(value, x));
      this.#sizes[c] += size * Math.abs(x);
    });
  }

  get result(): GradientVector {
    return { sums: this.#sums, sizes: this.#sizes };
  }
}

/** The sums of one gradient: by place, then by form. */
class GradientSums {
  readonly forms: readonly GradientForm[];
  readonly sums: readonly (readonly VectorSum[])[];
  readonly #indices: ReadonlyMap<string, number>;

  constructor(places: readonly RowPlace[], forms: readonly GradientForm[], columns: number) {
    this.forms = forms;
    this.sums = places.map(() => forms.map(() => new VectorSum(columns)));
    this.#indices = new Map(places.map((place, i) => [placeKey(place), i]));
  }

  at(place: RowPlace): readonly VectorSum[] | null {
    const index = this.#indices.get(placeKey(place));
    return index === undefined ? null : this.sums[index];
  }
}

function placeKey({ batch, head, row }: RowPlace): string {
  return `${batch} ${head} ${row}`;
}

/** Adds what a row has for the gradients that want it. */
function addRow(
  row: GradientRow,
  sums: Readonly<Record<GradientName, GradientSums>>,
  ofKeys: readonly { readonly j: number; readonly place: RowPlace }[],
): void {
  const evaluated = evaluateRow(row);
  const ofQuery = sums.dq.at(row.place);
  if (ofQuery !== null)
    row.keys.forEach((_, j) => {
      const key = row.key(j);
      sums.dq.forms.forEach((form, f) => ofQuery[f].add(evaluated.derivative(form, j), key));
    });
  for (const { j, place } of ofKeys) {
    const [dk, dv] = [sums.dk.at(place), sums.dv.at(place)];
    if (dk !== null)
      sums.dk.forms.forEach((form, f) => dk[f].add(evaluated.derivative(form, j), row.query));
    if (dv !== null)
      sums.dv.forms.forEach((form, f) => dv[f].add(evaluated.weight(form, j), row.dout));
  }
}

/**
 * Rows of the gradients of a problem in some forms, each before the factor behind it: dQ is Σ dS·K, dK is Σ dS·Q over the queries of
 * all heads that share the key, and dV is Σ P·dO. One row of queries is held at a time.
 *
 * @param rowAt as `gradientRows` gives it
 * @returns by place, then by form
 */
export function sumGradients(
  problem: Problem,
  rowAt: (place: RowPlace) => GradientRow,
  places: PlacesByGradient,
  forms: FormsByGradient,
): Readonly<Record<GradientName, readonly (readonly GradientVector[])[]>> {
  const { batch, heads, groupSize, queries, qkDim, vDim } = problemShape(problem);
  const columns = { dq: qkDim, dk: qkDim, dv: vDim } as const;
  const make = (name: GradientName) => new GradientSums(places[name], forms[name], columns[name]);
  const sums = { dq: make('dq'), dk: make('dk'), dv: make('dv') };
  const visibleAt = visibleKeysOf(problem);
  const kvHeads = new Set([...places.dk, ...places.dv].map((one) => `${one.batch} ${one.head}`));
  for (let i = 0; i < batch * heads; i++) {
    const place = { batch: Math.floor(i / heads), head: i % heads };
    const kvHead = Math.floor(place.head / groupSize);
    const hasKeys = kvHeads.has(`${place.batch} ${kvHead}`);
    for (let row = 0; row < queries; row++) {
      const at = { ...place, row };
      const ofKeys = (hasKeys ? visibleAt(at) : []).flatMap((key, j) => {
        const ofKey = { batch: place.batch, head: kvHead, row: key };
        return sums.dk.at(ofKey) === null && sums.dv.at(ofKey) === null
          ? []
          : [{ j, place: ofKey }];
      });
      if (ofKeys.length > 0 || sums.dq.at(at) !== null) addRow(rowAt(at), sums, ofKeys);
    }
  }
  const results = (name: GradientName) =>
    sums[name].sums.map((ofPlace) => ofPlace.map(({ result }) => result));
  return { dq: results('dq'), dk: results('dk'), dv: results('dv') };
}
