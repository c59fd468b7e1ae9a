import {
  addDoubleDouble,
  divideDoubleDouble,
  doubleDouble,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  subtractDoubleDouble,
  type DoubleDouble,
} from '../../../src/arith/index.js';
import { doubleDoubleExp2, log2eWords } from '../../../oracles/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import type {
  GradientInputs,
  GradientRealOf,
  NumbersOf,
  PlacesByGradient,
} from '../../../src/meaning/gradients/index.js';
import { exactAttentionRow, type RowPlace } from '../../../src/meaning/contracts/index.js';
import { problemShape, type Problem, type Tensor } from '../../../src/problem/index.js';

/** Every row of every gradient. */
export function everyGradientPlace(problem: Problem): PlacesByGradient {
  const { batch, heads, kvHeads, queries, keys } = problemShape(problem);
  const places = (count: number, rows: number) =>
    Array.from({ length: batch * count * rows }, (_, i) => ({
      batch: Math.floor(i / (count * rows)),
      head: Math.floor(i / rows) % count,
      row: i % rows,
    }));
  return { dq: places(heads, queries), dk: places(kvHeads, keys), dv: places(kvHeads, keys) };
}

/** The rows of a tensor [batch, heads, queries, columns] of a problem. */
export function numbersIn(problem: Problem, tensor: Tensor): NumbersOf {
  const { heads, queries } = problemShape(problem);
  const columns = tensor.shape.at(-1) ?? 1;
  return ({ batch, head, row }) => {
    const first = ((batch * heads + head) * queries + row) * columns;
    return decodeTensor(tensor, first, first + columns);
  };
}

/** How a backward kernel computes. */
export interface BackwardKernel {
  /** Of q·k in the exponent. */
  readonly factor: DoubleDouble;
  /** Octaves of a unit of the LSE that it is given; null for log2 e, `own` for a sum of its own. */
  readonly unit: number | null | 'own';
  /** Behind dQ and dK. */
  readonly scale: DoubleDouble;
  readonly delta: 'given' | 'of O' | 'own';
}

const sum = (terms: readonly DoubleDouble[]) => terms.reduce(addDoubleDouble, doubleDouble(0));

function dot(a: ArrayLike<number>, b: ArrayLike<number>): DoubleDouble {
  return sum(
    Array.from({ length: a.length }, (_, i) =>
      multiplyDoubleDoubleByFloat64(doubleDouble(a[i]), b[i]),
    ),
  );
}

function power(y: DoubleDouble): DoubleDouble {
  const { fraction, exponent } = doubleDoubleExp2(y);
  return multiplyDoubleDoubleByFloat64(fraction, 2 ** exponent);
}

/** What a plain backward kernel is given, LSE and δ rounded to fp32, and its real values: all of one batch, with at most a mask of keys. */
export function backwardWith(problem: Problem, dout: Tensor, kernel: BackwardKernel) {
  const { groupSize, heads, queries, keys } = problemShape(problem);
  const row = (tensor: Tensor, rows: number, head: number, at: number) => {
    const dim = tensor.shape.at(-1) ?? 0;
    const first = (head * rows + at) * dim;
    return decodeTensor(tensor, first, first + dim);
  };
  const exact = (place: RowPlace) => exactAttentionRow(problem, place);
  const unitOfLse = kernel.unit === 1 ? 'log2Sum' : 'lse';
  const inputs: GradientInputs = {
    dout: numbersIn(problem, dout),
    out: (place) => Float64Array.from(exact(place).out, ({ high }) => Math.fround(high)),
    lse: (place) => Float64Array.of(Math.fround(exact(place)[unitOfLse].high)),
    delta: (place) =>
      Float64Array.of(
        Math.fround(
          sum(
            exact(place).out.map((o, c) =>
              multiplyDoubleDoubleByFloat64(o, row(dout, queries, place.head, place.row)[c]),
            ),
          ).high,
        ),
      ),
  };
  const terms = (head: number, i: number) => {
    const place = { batch: 0, head, row: i };
    const kv = Math.floor(head / groupSize);
    const query = row(problem.q, queries, head, i);
    const ofDout = row(dout, queries, head, i);
    const seen = Array.from({ length: keys }, (_, j) => problem.mask?.data[j] !== 0);
    const exponents = seen.map((_, j) =>
      multiplyDoubleDouble(dot(query, row(problem.k, keys, kv, j)), kernel.factor),
    );
    const unit = typeof kernel.unit === 'number' ? doubleDouble(kernel.unit) : log2eWords();
    const [lse] = inputs.lse?.(place) ?? [0];
    const lower =
      kernel.unit === 'own' ? doubleDouble(0) : multiplyDoubleDoubleByFloat64(unit, lse);
    const weights = exponents.map((y, j) =>
      seen[j] ? power(subtractDoubleDouble(y, lower)) : doubleDouble(0),
    );
    const whole = kernel.unit === 'own' ? sum(weights) : doubleDouble(1);
    const p = weights.map((weight) => divideDoubleDouble(weight, whole));
    const products = p.map((_, j) => dot(ofDout, row(problem.v, keys, kv, j)));
    const deltas = {
      own: () => sum(p.map((weight, j) => multiplyDoubleDouble(weight, products[j]))),
      'of O': () => dot(ofDout, inputs.out?.(place) ?? []),
      given: () => doubleDouble(inputs.delta?.(place)[0] ?? NaN),
    };
    const delta = deltas[kernel.delta]();
    const ds = p.map((weight, j) =>
      multiplyDoubleDouble(weight, subtractDoubleDouble(products[j], delta)),
    );
    return { p, ds, query, ofDout, kv };
  };
  const all = Array.from({ length: heads * queries }, (_, at) =>
    terms(Math.floor(at / queries), at % queries),
  );
  const ofKeys = (kvHead: number, term: (one: (typeof all)[number]) => DoubleDouble) =>
    sum(all.filter(({ kv }) => kv === kvHead).map(term));
  const real: GradientRealOf = (gradient, { head, row: at }, c) => {
    if (gradient === 'dv')
      return ofKeys(head, ({ p, ofDout }) => multiplyDoubleDoubleByFloat64(p[at], ofDout[c]));
    const unscaled =
      gradient === 'dk'
        ? ofKeys(head, ({ ds, query }) => multiplyDoubleDoubleByFloat64(ds[at], query[c]))
        : sum(
            all[head * queries + at].ds.map((term, j) =>
              multiplyDoubleDoubleByFloat64(
                term,
                row(problem.k, keys, Math.floor(head / groupSize), j)[c],
              ),
            ),
          );
    return multiplyDoubleDouble(unscaled, kernel.scale);
  };
  return { inputs, real };
}
