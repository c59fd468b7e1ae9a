import { decodeToFloat64, formats } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import type { Arena, Mpfr, Real } from '../mpfr.js';
import { readFeatures } from './reference-features.js';
import { sees as seesAt } from './sees.js';

/** Bits to which scores are known after the point, and weights and sums relative to their size. */
const significantBits = 400;

/** Attention of a finite problem in MPFR: a second implementation that shares no code with oracles/. */
export interface ReferenceAttention {
  readonly rows: number;
  readonly vDim: number;
  /** Keys that the row sees. */
  readonly visible: (row: number) => readonly number[];
  /** |value + low − O|, rounded up; `low` is the low word of a double-double, default 0. */
  readonly outDistance: (row: number, column: number, value: number, low?: number) => number;
  /** Σ p|v| / Σ p with the weights that O has, rounded to nearest. */
  readonly magnitude: (row: number, column: number) => number;
  /** The LSE and the largest score to nearest fp64; −∞ for a row that has none. */
  readonly lse: (row: number) => number;
  readonly maximum: (row: number) => number;
  /** The largest magnitude that is added to a score of the row. */
  readonly addendSize: (row: number) => number;
  /** The logarithm of what O is divided by, likewise. */
  readonly denominator: (row: number) => number;
  /** |value + low − LSE|, rounded up. Only for rows that see a key. */
  readonly lseDistance: (row: number, value: number, low?: number) => number;
  /** How far O of the row can be from exact itself. */
  readonly outError: (row: number, column: number) => number;
  /** How far the LSE can be from exact itself. */
  readonly lseError: number;
}

/** log2 of the largest magnitude, rounded up; 0 for no magnitude above 1. */
function exponentOf(values: Iterable<number>): number {
  let largest = 1;
  for (const x of values) largest = Math.max(largest, Math.abs(x));
  return Math.ceil(Math.log2(largest)) + 1;
}

function decode(tensor: Tensor): Float64Array {
  return decodeToFloat64(tensor.data, formats[tensor.format]);
}

function dims(tensor: Tensor): readonly number[] {
  return tensor.shape.length === 3 ? [1, ...tensor.shape] : tensor.shape;
}

/** Whether a query sees a key by causal and window masks. */
export function sees(problem: Problem, query: number, key: number): boolean {
  const queries = dims(problem.q)[2];
  const keys = dims(problem.k)[2];
  return seesAt(problem, { query, queries, keys }, key);
}

/** One key of a row: its score, its values, and whether dropout keeps its weight. */
interface Key {
  readonly score: Real;
  readonly values: readonly Real[];
  readonly isKept: boolean;
}

interface Row {
  readonly columns: readonly { readonly out: Real; readonly magnitude: number }[];
  /** Null for −∞. */
  readonly lse: Real | null;
  readonly denominator: Real | null;
  readonly maximum: Real | null;
}

/** What all rows of a head have. */
interface Settings {
  readonly vDim: number;
  /** Null for none. */
  readonly sink: Real | null;
  readonly isSinkInLse: boolean;
  readonly share: Real;
}

/** ln(e^lse + e^sink), and what of that sum is e^lse. */
function withSink(arena: Arena, lse: Real, sink: Real | null) {
  if (sink === null) return { denominator: lse, keysShare: arena.of(1) };
  // Relative to the larger of both, since MPFR's exponents end, too.
  const largest = arena.isLess(lse, sink) ? sink : lse;
  const [ofKeys, ofSink] = [lse, sink].map((x) => arena.exp(arena.subtract(x, largest)));
  const sum = arena.add(ofKeys, ofSink);
  return {
    denominator: arena.add(largest, arena.log(sum)),
    keysShare: arena.divide(ofKeys, sum),
  };
}

/** One row, from the keys that it sees. */
function solveRow(arena: Arena, keys: readonly Key[], settings: Settings): Row {
  const { vDim, sink, isSinkInLse, share } = settings;
  const zero = arena.of(0);
  const larger = (a: Real, b: Real) => (arena.isLess(a, b) ? b : a);
  const add = (a: Real, b: Real) => arena.add(a, b);
  const scores = keys.map(({ score }) => score);
  const ofNothing = Array.from({ length: vDim }, () => ({ out: zero, magnitude: 0 }));
  if (scores.length === 0)
    return { columns: ofNothing, lse: isSinkInLse ? sink : null, denominator: sink, maximum: null };
  const maximum = scores.reduce(larger);
  const weights = scores.map((score) => arena.exp(arena.subtract(score, maximum)));
  const ofKeys = weights.reduce(add);
  const lse = arena.add(maximum, arena.log(ofKeys));
  const { denominator, keysShare } = withSink(arena, lse, sink);
  const factor = arena.divide(keysShare, arena.multiply(ofKeys, share));
  const columns = ofNothing.map((_, c) => {
    const products = keys.flatMap(({ values, isKept }, j) =>
      isKept ? [arena.multiply(weights[j], values[c])] : [],
    );
    const size = products.map((x) => arena.absolute(x)).reduce(add, zero);
    return {
      out: arena.multiply(products.reduce(add, zero), factor),
      magnitude: arena.toNumber(arena.multiply(size, factor)),
    };
  });
  return { columns, lse: isSinkInLse ? denominator : lse, denominator, maximum };
}

/**
 * Runs `judge` with the reference of a problem whose values are all finite; its numbers are freed
 * afterwards. The precision grows with the exponents, so that scores are known to 2^-400.
 */
export function withReference<T>(
  mpfr: Mpfr,
  problem: Problem,
  judge: (reference: ReferenceAttention) => T,
): T {
  const [batch, heads, queries, qkDim] = dims(problem.q) as [number, number, number, number];
  const [, kvHeads, keys] = dims(problem.k) as [number, number, number, number];
  const vDim = dims(problem.v)[3];
  const q = decode(problem.q);
  const k = decode(problem.k);
  const v = decode(problem.v);
  if (![q, k, v].every((values) => values.every(Number.isFinite)))
    throw new Error('the reference takes finite problems only');
  const { bias, alibiSlopes, sink, dropout } = problem;
  const logits = sink === undefined ? null : decode(sink.logits);
  const sizeOf = (tensor: Tensor | undefined) =>
    tensor === undefined ? 0 : exponentOf(decode(tensor).filter(Number.isFinite));
  const bits =
    significantBits +
    exponentOf(q) +
    exponentOf(k) +
    exponentOf([problem.scale]) +
    exponentOf([problem.softcap ?? 1]) +
    exponentOf([qkDim]) +
    sizeOf(bias) +
    sizeOf(alibiSlopes) +
    sizeOf(sink?.logits);
  const features = readFeatures(problem);
  return mpfr.withPrecision(bits, (arena) => {
    const reals = (values: Float64Array) => Array.from(values, (x) => arena.of(x));
    const [qReal, kReal, vReal] = [reals(q), reals(k), reals(v)];
    const scale = arena.of(problem.scale);
    const cap = problem.softcap === null ? null : arena.of(problem.softcap);
    const share = arena.of(1 - (dropout?.probability ?? 0));
    const addTo = (score: Real, addend: readonly number[]) => {
      const [added, slope, distance] = addend.map((x) => arena.of(x));
      return arena.subtract(arena.add(score, added), arena.multiply(slope, distance));
    };
    const rows: Row[] = [];
    const visibleOf: number[][] = [];
    const addendSizes: number[] = [];
    for (let b = 0; b < batch; b++)
      for (let h = 0; h < heads; h++)
        for (let i = 0; i < queries; i++) {
          const kvHead = b * kvHeads + Math.floor((h * kvHeads) / heads);
          const query = ((b * heads + h) * queries + i) * qkDim;
          const place = features.place(b, h, i);
          const visible = Array.from({ length: keys }, (_, j) => j).filter((j) =>
            features.sees(place, j),
          );
          visibleOf.push(visible);
          const sizeAt = (j: number) => {
            const [added, slope, distance] = features.addend(place, j);
            return Math.abs(added) + Math.abs(slope) * distance;
          };
          addendSizes.push(visible.reduce((size, j) => Math.max(size, sizeAt(j)), 0));
          const ofRow = visible.map((j): Key => {
            const key = (kvHead * keys + j) * qkDim;
            let dot = arena.of(0);
            for (let t = 0; t < qkDim; t++)
              dot = arena.add(dot, arena.multiply(qReal[query + t], kReal[key + t]));
            const scaled = arena.multiply(dot, scale);
            const capped =
              cap === null ? scaled : arena.multiply(cap, arena.tanh(arena.divide(scaled, cap)));
            const first = (kvHead * keys + j) * vDim;
            return {
              score: features.addsToScores ? addTo(capped, features.addend(place, j)) : capped,
              values: vReal.slice(first, first + vDim),
              isKept: features.isKept(place, j),
            };
          });
          const logit = logits?.[h] ?? -Infinity;
          const settings = {
            vDim,
            sink: logit === -Infinity ? null : arena.of(logit),
            isSinkInLse: sink?.inLse ?? false,
            share,
          };
          rows.push(solveRow(arena, ofRow, settings));
        }
    const number = (x: Real | null) => (x === null ? -Infinity : arena.toNumber(x));
    return judge({
      rows: rows.length,
      vDim,
      visible: (row) => visibleOf[row],
      outDistance: (row, column, value, low) =>
        arena.distance(rows[row].columns[column].out, value, low),
      magnitude: (row, column) => rows[row].columns[column].magnitude,
      lse: (row) => number(rows[row].lse),
      maximum: (row) => number(rows[row].maximum),
      addendSize: (row) => addendSizes[row],
      denominator: (row) => number(rows[row].denominator),
      lseDistance: (row, value, low) => {
        const { lse } = rows[row];
        return lse === null ? Infinity : arena.distance(lse, value, low);
      },
      outError: (row, column) => rows[row].columns[column].magnitude * 2 ** (64 - significantBits),
      lseError: 2 ** (64 - significantBits),
    });
  });
}
