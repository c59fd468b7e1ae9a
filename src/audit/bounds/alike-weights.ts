import { formats, type FormatName } from '../../formats/index.js';
import type { RowErrors } from './row-errors.js';

/** Bins finer than this, an octave: weights of long formats are alike where they are nearly equal. */
const mostBins = 2 ** 14;

/**
 * How finely weights are told apart whose roundings to a format may be one number: bins of an octave of
 * exponents, four to an ulp. Docs/bounds.md, "The spread", on why a quarter of an ulp.
 */
export function alikeBinsPerOctave(weightFormat: FormatName): number {
  return Math.min(4 * 2 ** (formats[weightFormat].precision - 1), mostBins);
}

/** A row is clustered where its weights are as many as this at the most that round independently. */
const fewIndependent = 16;

/**
 * Whether most of a row's weights share their bins with others, and few bins hold them: its error is that
 * of a few numbers, which may be the same in other such rows.
 */
export function isClustered({
  mass,
  squares,
  squaresAlike,
}: Pick<RowErrors, 'mass' | 'squares' | 'squaresAlike'>): boolean {
  return squaresAlike >= 2 * squares && fewIndependent * squaresAlike >= mass * mass;
}
