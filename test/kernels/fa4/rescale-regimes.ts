import type { Problem } from '../../../src/problem/index.js';
import { boxMullerNumbers, filledProblem } from '../../setup/problems.js';

/** How scores are distributed; as fixtures/capture/regimes.py has them. */
export const rescaleRegimes = [
  'normal',
  'large',
  'student',
  'sink',
  'ascending',
  'descending',
] as const;
export type RescaleRegime = (typeof rescaleRegimes)[number];

/** Weaker than there, as in the problems whose rescales were counted. */
const sinkScore = 7;
const climbScore = 24;

/** Numbers in [0, 1), the same for a seed: mulberry32. */
function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A bf16 problem of one head in a regime; keys last are visited first. */
export function rescaleProblem(
  regime: RescaleRegime,
  queries: number,
  keys: number,
  dim: number,
  seed: number,
): Problem {
  const normal = boxMullerNumbers(mulberry(seed));
  const fill = (rows: number, value: () => number): Float64Array =>
    Float64Array.from({ length: rows * dim }, value);
  const heavy = (): number => {
    const chiSquared = normal() ** 2 + normal() ** 2 + normal() ** 2;
    return normal() / Math.sqrt(chiSquared / 3);
  };
  const factor = regime === 'large' ? 4 : 1;
  const noise = regime === 'ascending' || regime === 'descending' ? 0.25 : factor;
  const draw = regime === 'student' ? heavy : () => noise * normal();
  const q = fill(queries, draw);
  const k = fill(keys, draw);
  const direction = Array.from({ length: dim }, normal);
  const length = Math.hypot(...direction);
  const add = (rows: Float64Array, row: number, strength: number): void => {
    for (let c = 0; c < dim; c++) rows[row * dim + c] += (strength * direction[c]) / length;
  };
  const slope = { ascending: (x: number) => x, descending: (x: number) => 1 - x };
  if (regime === 'sink') {
    const strength = Math.sqrt(sinkScore * Math.sqrt(dim));
    for (let row = 0; row < queries; row++) add(q, row, strength);
    k.fill(0, 0, dim);
    add(k, 0, strength);
  } else if (regime === 'ascending' || regime === 'descending') {
    const strength = Math.sqrt(climbScore * Math.sqrt(dim));
    for (let row = 0; row < queries; row++) add(q, row, strength);
    for (let j = 0; j < keys; j++) add(k, j, strength * slope[regime](j / (keys - 1)));
  }
  return filledProblem(
    { batch: null, queries, keys, dim },
    { q: (i) => q[i], k: (i) => k[i], v: normal },
  );
}
