import { fusedMultiplyAddFloat32 } from '../../../src/arith/index.js';

/** The scale of the exponents: softmax scale · log2 e. */
export interface ExponentScale {
  /** In fp64. */
  readonly exact: number;
  /** As the kernel has it: rounded to fp32. */
  readonly rounded: number;
  /** Added to every exponent, an fp32 number. */
  readonly offset: number;
}

/**
 * The exponents x [rows × columns] of scores, exact: (s − m)·c + offset, −∞ for a masked score whatever
 * c is.
 */
export function exactExponents(
  target: Float64Array,
  scores: Float64Array,
  subtracted: Float64Array,
  scale: ExponentScale,
  rows: number,
  columns: number,
): void {
  for (let row = 0, i = 0; row < rows; row++)
    for (let j = 0; j < columns; j++, i++)
      target[i] =
        scores[i] === -Infinity
          ? -Infinity
          : (scores[i] - subtracted[row]) * scale.exact + scale.offset;
}

/**
 * The exponents by the kernel's instructions, at the fp32 scores nearest to `scores`, plus what the
 * difference of these scores contributes; for fp32 scores the fp32 numbers that the GPU has.
 */
export function emulatedExponents(
  target: Float64Array,
  scores: Float64Array,
  subtracted: Float64Array,
  scale: ExponentScale,
  rows: number,
  columns: number,
): void {
  for (let row = 0, i = 0; row < rows; row++) {
    const bias = Math.fround(scale.offset - Math.fround(subtracted[row] * scale.rounded));
    for (let j = 0; j < columns; j++, i++) {
      const score = scores[i];
      const nearest = Math.fround(score);
      const x = fusedMultiplyAddFloat32(nearest, scale.rounded, bias);
      target[i] = nearest === score ? x : x + (score - nearest) * scale.exact;
    }
  }
}
