import { decodeToFloat64, formats } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import type { Arena, Mpfr, Real } from '../mpfr.js';

/** Bits to which scores are known after the point, and weights and sums relative to their size. */
const significantBits = 400;

/** Attention of a finite problem in MPFR: a second implementation that shares no code with oracles/. */
export interface ReferenceAttention {
  readonly rows: number;
  readonly vDim: number;
  /** Keys that the row sees. */
  readonly visible: (row: number) => readonly number[];
  /** |value − O|, rounded up. */
  readonly outDistance: (row: number, column: number, value: number) => number;
  /** Σ p|v| / Σ p, rounded to nearest. */
  readonly magnitude: (row: number, column: number) => number;
  /** The LSE and the largest score to nearest fp64. Only for rows that see a key. */
  readonly lse: (row: number) => number;
  readonly maximum: (row: number) => number;
  /** |value − LSE|, rounded up. Only for rows that see a key. */
  readonly lseDistance: (row: number, value: number) => number;
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

/** Whether a query sees a key, word for word as the law of the masks has it. */
export function sees(problem: Problem, query: number, key: number): boolean {
  const queries = dims(problem.q)[2];
  const keys = dims(problem.k)[2];
  // Both masks are aligned to the bottom right: the last query sits on the last key.
  const offset = key - (query + keys - queries);
  if (problem.causal && offset > 0) return false;
  if (problem.window === null) return true;
  const { left, right } = problem.window;
  if (left !== -1 && offset < -left) return false;
  if (right !== -1 && offset > right) return false;
  return true;
}

interface Row {
  readonly out: Real[];
  readonly magnitude: number[];
  readonly lse: Real;
  readonly maximum: Real;
}

/** One row, from the scores of the keys that it sees. */
function solveRow(arena: Arena, scores: readonly Real[], values: readonly Real[][]): Row {
  const largest = scores.reduce((a, b) => (arena.isLess(a, b) ? b : a));
  const weights = scores.map((score) => arena.exp(arena.subtract(score, largest)));
  const total = weights.reduce((a, b) => arena.add(a, b));
  const columns = values[0].map((_, c) => {
    const products = weights.map((weight, j) => arena.multiply(weight, values[j][c]));
    const sum = products.reduce((a, b) => arena.add(a, b));
    const size = products.map((x) => arena.absolute(x)).reduce((a, b) => arena.add(a, b));
    return {
      out: arena.divide(sum, total),
      magnitude: arena.toNumber(arena.divide(size, total)),
    };
  });
  return {
    out: columns.map(({ out }) => out),
    magnitude: columns.map(({ magnitude }) => magnitude),
    lse: arena.add(largest, arena.log(total)),
    maximum: largest,
  };
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
  const bits =
    significantBits +
    exponentOf(q) +
    exponentOf(k) +
    exponentOf([problem.scale]) +
    exponentOf([problem.softcap ?? 1]) +
    exponentOf([qkDim]);
  return mpfr.withPrecision(bits, (arena) => {
    const reals = (values: Float64Array) => Array.from(values, (x) => arena.of(x));
    const [qReal, kReal, vReal] = [reals(q), reals(k), reals(v)];
    const scale = arena.of(problem.scale);
    const cap = problem.softcap === null ? null : arena.of(problem.softcap);
    const rows: (Row | null)[] = [];
    const visibleOf: number[][] = [];
    for (let b = 0; b < batch; b++)
      for (let h = 0; h < heads; h++)
        for (let i = 0; i < queries; i++) {
          const kvHead = b * kvHeads + Math.floor((h * kvHeads) / heads);
          const query = ((b * heads + h) * queries + i) * qkDim;
          const visible = Array.from({ length: keys }, (_, j) => j).filter((j) =>
            sees(problem, i, j),
          );
          visibleOf.push(visible);
          if (visible.length === 0) {
            rows.push(null);
            continue;
          }
          const scores = visible.map((j) => {
            const key = (kvHead * keys + j) * qkDim;
            let dot = arena.of(0);
            for (let t = 0; t < qkDim; t++)
              dot = arena.add(dot, arena.multiply(qReal[query + t], kReal[key + t]));
            const score = arena.multiply(dot, scale);
            return cap === null ? score : arena.multiply(cap, arena.tanh(arena.divide(score, cap)));
          });
          const values = visible.map((j) => {
            const first = (kvHead * keys + j) * vDim;
            return vReal.slice(first, first + vDim);
          });
          rows.push(solveRow(arena, scores, values));
        }
    const zero = arena.of(0);
    return judge({
      rows: rows.length,
      vDim,
      visible: (row) => visibleOf[row],
      outDistance: (row, column, value) => arena.distance(rows[row]?.out[column] ?? zero, value),
      magnitude: (row, column) => rows[row]?.magnitude[column] ?? 0,
      lse: (row) => arena.toNumber(rows[row]!.lse),
      maximum: (row) => arena.toNumber(rows[row]!.maximum),
      lseDistance: (row, value) => arena.distance(rows[row]!.lse, value),
      outError: (row, column) => (rows[row]?.magnitude[column] ?? 0) * 2 ** (64 - significantBits),
      lseError: 2 ** (64 - significantBits),
    });
  });
}
