import { type FormatName, formats, round, ulp } from '../formats/index.js';
import { type AttentionReference, levels } from '../../oracles/index.js';

/**
 * Whether an infinity, or the NaN of a format without infinities, is what rounding to the format makes
 * of some number within `error` of a finite exact value: beyond the largest finite number and half an
 * ulp, to nearest even. An infinity must have the sign of such a number.
 *
 * @param error how far from exact a correct value may be before it is rounded
 */
export function isAdmittedOverflow(
  value: number,
  exact: number,
  error: number,
  format: FormatName,
): boolean {
  if (Number.isNaN(error)) return false;
  const furthest = [exact + error, exact - error];
  return furthest.some((number) => Object.is(round(formats[format], number), value));
}

/** The rounding of an output next to the largest finite number: half an ulp there. */
export function largestRounding(format: FormatName): number {
  return ulp(formats[format], formats[format].maxFinite) / 2;
}

/**
 * Whether a row sees keys, but only such with a score of −∞. Nothing is left for it, as for a row
 * without keys; a kernel that subtracts the maximum gets −∞ − (−∞), NaN, and may.
 * @param row counted over [batch, heads, queries]
 */
export function isUndefinedRow({ level, quantities }: AttentionReference, row: number): boolean {
  return levels[level[row]] === 'special' && quantities.lse.values[row] === -Infinity;
}
