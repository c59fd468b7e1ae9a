/**
 * The two loops over a state of [key dimension, value dimension] in fp64, four rows at a time; the key dimension is padded to
 * a multiple of four with zero keys. Each term of a sum passes at most `roundingsOf` roundings.
 */

/** Rows that a loop takes at a time. */
export const rowsAtATime = 4;

/** The most roundings that a product of a row's element passes in the loops' sums, its own included. */
export function roundingsOf(paddedDim: number): number {
  return paddedDim / rowsAtATime + 3;
}

/** read = Σ_i k_i (d_i S_i): what the decayed state holds at the key. */
export function readState(
  state: Float64Array,
  decay: Float64Array,
  key: Float64Array,
  read: Float64Array,
): void {
  const dim = read.length;
  read.fill(0);
  for (let i = 0; i < key.length; i += rowsAtATime) {
    const [k0, k1, k2, k3] = [key[i], key[i + 1], key[i + 2], key[i + 3]];
    const [d0, d1, d2, d3] = [decay[i], decay[i + 1], decay[i + 2], decay[i + 3]];
    const first = i * dim;
    const second = first + dim;
    const third = second + dim;
    const fourth = third + dim;
    for (let c = 0; c < dim; c++)
      read[c] +=
        k0 * (d0 * state[first + c]) +
        k1 * (d1 * state[second + c]) +
        (k2 * (d2 * state[third + c]) + k3 * (d3 * state[fourth + c]));
  }
}

/** A token's operands in {@link advanceState}. */
export interface Step {
  readonly decay: Float64Array;
  readonly key: Float64Array;
  readonly query: Float64Array;
  /** What is written beside the key, by value dimension. */
  readonly written: Float64Array;
}

/** S_i = d_i S_i + k_i w; then read = Σ_i q_i S_i and squares = Σ_i S_i². */
export function advanceState(
  state: Float64Array,
  { decay, key, query, written }: Step,
  read: Float64Array,
  squares: Float64Array,
): void {
  const dim = read.length;
  read.fill(0);
  squares.fill(0);
  for (let i = 0; i < key.length; i += rowsAtATime) {
    const [k0, k1, k2, k3] = [key[i], key[i + 1], key[i + 2], key[i + 3]];
    const [d0, d1, d2, d3] = [decay[i], decay[i + 1], decay[i + 2], decay[i + 3]];
    const [q0, q1, q2, q3] = [query[i], query[i + 1], query[i + 2], query[i + 3]];
    const first = i * dim;
    const second = first + dim;
    const third = second + dim;
    const fourth = third + dim;
    for (let c = 0; c < dim; c++) {
      const w = written[c];
      const s0 = d0 * state[first + c] + k0 * w;
      const s1 = d1 * state[second + c] + k1 * w;
      const s2 = d2 * state[third + c] + k2 * w;
      const s3 = d3 * state[fourth + c] + k3 * w;
      state[first + c] = s0;
      state[second + c] = s1;
      state[third + c] = s2;
      state[fourth + c] = s3;
      read[c] += q0 * s0 + q1 * s1 + (q2 * s2 + q3 * s3);
      squares[c] += s0 * s0 + s1 * s1 + (s2 * s2 + s3 * s3);
    }
  }
}
