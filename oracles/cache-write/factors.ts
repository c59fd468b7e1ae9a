import type { Code, Division, FactorFloor, FactorRule } from '../../src/problem/index.js';
import { usualRounding } from '../../src/problem/index.js';
import { formats, powerOfTwo, unitRoundoff } from '../../src/formats/index.js';

/** Two numbers, the lower first. */
export type Span = readonly [low: number, high: number];

/** How factors follow from the numbers that share them. */
export interface FactorTerms {
  readonly rule: FactorRule;
  /** The number that amax is divided by. */
  readonly maximum: number;
  readonly floor: FactorFloor | null;
  readonly division: Division | null;
  /** The number that elements are multiplied by besides. */
  readonly global: number;
  /** The code that factors are stored in, and that of the numbers. */
  readonly factorCode: Code;
  readonly code: Code;
}

const unit = unitRoundoff(formats.fp32);

/** Whether a positive number is a power of two. */
function isPowerOfTwo(x: number): boolean {
  return x > 0 && x < Infinity && powerOfTwo(Math.round(Math.log2(x))) === x;
}

/** ⌊log2 x⌋ of a positive number. */
function exponentOf(x: number): number {
  const near = Math.floor(Math.log2(x));
  if (powerOfTwo(near) > x) return near - 1;
  return powerOfTwo(near + 1) <= x ? near + 1 : near;
}

/**
 * What a kernel may have for a quotient, from a span of the numerator and one of the divisor.
 *
 * By one division it has the quotient or that rounded to fp32; a quotient by a power of two is exact whichever way. A reciprocal is
 * rounded, or approximate by one ulp, two units, before the product is rounded; an approximate division errs by two ulps (div.full.f32 in
 * the PTX ISA). A product of two factors is rounded besides, and its reciprocal approximated.
 */
export function quotientSpan(
  [low, high]: Span,
  [least, most]: Span,
  division: Division | null,
  isProduct: boolean,
): Span {
  const ends = [low / least, low / most, high / least, high / most];
  const [from, to] = [Math.min(...ends), Math.max(...ends)];
  if (least === most && isPowerOfTwo(least)) return [from, to];
  if (division === 'divide' && !isProduct)
    return [Math.min(from, Math.fround(from)), Math.max(to, Math.fround(to))];
  const units = { divide: 1, reciprocal: 3, any: 4 }[division ?? 'any'] + (isProduct ? 2 : 0);
  const error = units * unit + 2 ** -50;
  return [from * (from < 0 ? 1 + error : 1 - error), to * (to < 0 ? 1 - error : 1 + error)];
}

/** The power of two of MX for a largest size: 2^(exponent − the exponent of the code's largest number). */
function microscaled(amax: number, rule: FactorRule, code: Code): number {
  if (amax <= 0) return 0;
  const exponent = exponentOf(amax);
  const scaled = amax / powerOfTwo(exponent);
  const isUp =
    rule === 'mx-ceil' ? scaled > 1 : rule === 'mx-even' && scaled >= 2 - 2 ** -code.precision;
  return powerOfTwo(exponent + (isUp ? 1 : 0) - code.maxExponent);
}

/** Errors of a logarithm in fp32 that decides a power of two, in units of its argument. */
const logarithmUnits = 16;

/** A power of two at or above each end of a span. */
function powersAbove([low, high]: Span, division: Division | null): Span {
  const error = division === 'divide' ? 0 : logarithmUnits * unit;
  const above = (x: number) => {
    if (x <= 0) return 0;
    const exponent = exponentOf(x);
    return powerOfTwo(x > powerOfTwo(exponent) ? exponent + 1 : exponent);
  };
  return [above(low * (1 - error)), above(high * (1 + error))];
}

/**
 * The factors that a right kernel may store for numbers whose largest size lies in a span, as numbers of the code; null where any will
 * do: for zeros alone without a floor, and for factors that are given.
 */
export function factorSpan([low, high]: Span, terms: FactorTerms): Span | null {
  const { rule, maximum, floor, division, global, factorCode, code } = terms;
  if (rule === 'given') return null;
  const least = Math.fround(floor?.least ?? 0);
  const amax: Span =
    floor?.of === 'amax' ? [Math.max(low, least), Math.max(high, least)] : [low, high];
  const floored = ([from, to]: Span): Span =>
    floor?.of === 'factor' ? [Math.max(from, least), Math.max(to, least)] : [from, to];
  const stored = ([from, to]: Span): Span => [
    factorCode.round(from, usualRounding),
    factorCode.round(to, usualRounding),
  ];
  if (amax[1] === 0 && floor?.of !== 'factor') return null;
  if (rule === 'amax' || rule === 'power-up') {
    const divisor = maximum * global;
    const quotients = quotientSpan(amax, [divisor, divisor], division, global !== 1);
    const least = floored(quotients);
    return stored(rule === 'amax' ? least : powersAbove(least, division));
  }
  return stored(floored([microscaled(amax[0], rule, code), microscaled(amax[1], rule, code)]));
}
