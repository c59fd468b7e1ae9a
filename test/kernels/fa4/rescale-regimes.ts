import { encodeFromFloat64, formats } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';

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

/** Standard normal numbers, the same for a seed. */
function normalSource(seed: number): () => number {
  let state = seed;
  const uniform = (): number => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** A bf16 problem of one head in a regime; keys last are visited first. */
export function rescaleProblem(
  regime: RescaleRegime,
  queries: number,
  keys: number,
  dim: number,
  seed: number,
): Problem {
  const normal = normalSource(seed);
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
  const tensor = (values: Float64Array, rows: number) => ({
    format: 'bf16' as const,
    shape: [1, rows, dim],
    data: encodeFromFloat64(formats.bf16, values),
  });
  return {
    q: tensor(q, queries),
    k: tensor(k, keys),
    v: tensor(fill(keys, normal), keys),
    scale: 1 / Math.sqrt(dim),
    causal: false,
    window: null,
    softcap: null,
  };
}
