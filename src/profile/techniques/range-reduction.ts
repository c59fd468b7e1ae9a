import { exp2Coefficients, type PolynomialDegree } from '../../../kernels/index.js';
import { polynomialDegrees } from '../functions.js';
import { cutCells, slicesOf, type Cell, type InputRange } from '../cells.js';
import { bitsOfOrdinal } from '../float32-order.js';
import { hexadecimal } from '../input-view.js';
import { largestRelativeError, relativeError } from '../minimax.js';
import { mergeReductions, noReductions, type ReductionCounts } from './range-reduction-slice.js';
import { sweep } from '../sweep.js';
import { beyond, cellOf } from './input-cells.js';
import type { ProfileOptions } from './profile.js';

/** Results of the range reduction at the inputs of one sign whose ulps are alike. */
export interface BinadeReduction extends Omit<ReductionCounts, 'largestErrorAt'> {
  readonly sign: '+' | '-';
  /** 2^exponent ≤ |x| < 2^(exponent + 1); null for zeros and subnormal numbers. */
  readonly exponent: number | null;
  /** The value of `inexact` by the law; null where the range cuts the binade. */
  readonly inexactByLaw: number | null;
  readonly largestErrorAt: string | null;
}

/** The effect that the ends of the fractions' range have on the polynomial of a degree. */
interface FractionEffects {
  readonly degree: PolynomialDegree;
  /** p(1)/2 − 1, the relative error of 2^x for a tiny negative x. */
  readonly errorAtOne: number;
  /** The largest relative error on [0, 1], and on [−1/2, 1/2], the range of the fraction with add.rn. */
  readonly largestError: number;
  readonly largestErrorNearest: number;
}

/** The profile of FlashAttention-4's range reduction. */
export interface RangeReductionProfile {
  readonly technique: 'range-reduction';
  readonly title: string;
  readonly range: InputRange;
  readonly total: ReductionCounts;
  /** Counts by binade, in ascending input. */
  readonly binades: readonly BinadeReduction[];
  readonly effects: readonly FractionEffects[];
}

const cells: readonly Cell[] = [
  cellOf('-127 <= x < 0', [-127, -0], 'x', true),
  cellOf('0 <= x < 128', [0, beyond(128)], 'x', true),
];

/** Numbers in a whole binade. */
const binadeInputs = 2 ** 23;

/**
 * Number of the 2^23 numbers of a binade that the law of `isReductionExact` calls inexact: for
 * negative ones all but the multiples of 2^-24, of which there are 2^(exponent + 24).
 */
export function inexactByLaw(sign: '+' | '-', exponent: number | null): number {
  if (sign === '+' || exponent === null || exponent >= -1) return 0;
  return binadeInputs - (exponent >= -24 ? 2 ** (exponent + 24) : 0);
}

function effectsOf(degree: PolynomialDegree): FractionEffects {
  const coefficients = exp2Coefficients[degree];
  const size = (from: number, to: number): number =>
    Math.abs(largestRelativeError(coefficients, from, to).error);
  return {
    degree,
    errorAtOne: relativeError(coefficients, 1),
    largestError: size(0, 1),
    largestErrorNearest: size(-0.5, 0.5),
  };
}

/**
 * Profiles FlashAttention-4's range reduction x = b + f at every fp32 input of [−127, 128) within the
 * range.
 * @throws RequestError for a range without such an input
 */
export async function profileRangeReduction(
  options: ProfileOptions = {},
): Promise<RangeReductionProfile> {
  const { degrees = polynomialDegrees, range = {} } = options;
  const cut = cutCells(cells, range);
  const binades = new Map<string, { sign: '+' | '-'; field: number; counts: ReductionCounts }>();
  let total = noReductions;
  await sweep({ kind: 'range-reduction' }, slicesOf(cut), options, ({ slice, counts }) => {
    const bits = bitsOfOrdinal(slice.first);
    const sign = bits >= 2 ** 31 ? '-' : '+';
    const field = Math.floor(bits / binadeInputs) % 256;
    const key = `${sign}${field}`;
    const known = binades.get(key)?.counts ?? noReductions;
    binades.set(key, { sign, field, counts: mergeReductions(known, counts) });
    total = mergeReductions(total, counts);
  });
  const order = ({ sign, field }: { sign: '+' | '-'; field: number }): number =>
    sign === '-' ? -field - 1 : field;
  return {
    technique: 'range-reduction',
    title: "x = b + f: the range reduction of FlashAttention-4's exp2",
    range,
    total,
    binades: [...binades.values()]
      .sort((a, b) => order(a) - order(b))
      .map(({ sign, field, counts }): BinadeReduction => {
        const exponent = field === 0 ? null : field - 127;
        const byLaw = inexactByLaw(sign, exponent);
        const isWhole = counts.inputs === binadeInputs;
        return {
          ...counts,
          sign,
          exponent,
          inexactByLaw: isWhole || byLaw === 0 ? byLaw : null,
          largestErrorAt:
            counts.largestErrorAt === null
              ? null
              : hexadecimal(bitsOfOrdinal(counts.largestErrorAt)),
        };
      }),
    effects: degrees.map(effectsOf),
  };
}
