import type { Code, CodeRounding, Division } from '../../src/problem/index.js';
import { quotientSpan, type Span } from './factors.js';

/** How numbers are divided and rounded. */
export interface NumberTerms {
  readonly code: Code;
  readonly rounding: CodeRounding;
  readonly division: Division | null;
  /** Whether the divisor is the product of two factors. */
  readonly isProduct: boolean;
}

/** The numbers that may be stored: none outside of the span; NaN where it says so. */
export interface LegalNumbers {
  readonly low: number;
  readonly high: number;
  readonly nan: boolean;
}

/** The roundings of all numbers of a span. */
function roundings([low, high]: Span, { code, rounding }: NumberTerms): LegalNumbers {
  const first = code.round(low, rounding);
  const last = low === high ? first : code.round(high, rounding);
  const nan = Number.isNaN(first) || Number.isNaN(last);
  // Beyond the largest number a code may have none: what is left of the span are the numbers on this side.
  const from = Number.isNaN(first) ? (low < 0 && high > low ? -code.maximum : Infinity) : first;
  const to = Number.isNaN(last) ? (high > 0 && high > low ? code.maximum : -Infinity) : last;
  // The least whole number has no counterpart, and kernels clamp to either.
  const isClamped = code.name === 'int8' && rounding.overflow === 'saturate' && from === -128;
  return { low: from, high: isClamped ? Math.max(to, -127) : to, nan };
}

/**
 * The numbers of a code that a right kernel may store for a number of a span, divided by a factor of another: the roundings of all
 * that it may have. null where there is nothing to judge: for NaN in a code that has none, and where a factor is none.
 *
 * @param divisor null where nothing is divided. By 0 only zeros and, where it is caught by saturation, the largest number are right:
 * all of them are read as 0.
 */
export function legalNumbers(
  value: Span,
  divisor: Span | null,
  terms: NumberTerms,
): LegalNumbers | null {
  const { code } = terms;
  if (Number.isNaN(value[0]) || Number.isNaN(value[1])) {
    const hasNan = Number.isNaN(code.round(NaN, terms.rounding));
    return hasNan ? { low: Infinity, high: -Infinity, nan: true } : null;
  }
  if (divisor === null) return roundings(value, terms);
  if (!(divisor[0] >= 0 && divisor[1] < Infinity)) return null;
  if (divisor[1] === 0) return { low: -code.maximum, high: code.maximum, nan: false };
  if (divisor[0] === 0) return null;
  return roundings(quotientSpan(value, divisor, terms.division, terms.isProduct), terms);
}

/** Whether a stored number is one of those. Zeros have either sign. */
export function isLegal(stored: number, { low, high, nan }: LegalNumbers): boolean {
  return Number.isNaN(stored) ? nan : stored >= low && stored <= high;
}
