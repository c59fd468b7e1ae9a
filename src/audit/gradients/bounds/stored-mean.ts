import { formats, round, unitRoundoff, type NumberFormat } from '../../../formats/index.js';
import type { GradientPremises } from './gradient-premises.js';
import type { PairArithmetic } from './pair-arithmetic.js';
import { partialSquares } from './pairs/partial-sums.js';

/** A row's sum dO·O of the O that was stored: its distance from the exact D, and its own error. */
export interface StoredMean {
  /** The sum less the exact D. */
  readonly shift: number;
  /** Its error: at worst, the part that does not average out, the variance of the rest. */
  readonly worst: number;
  readonly typical: number;
  readonly variance: number;
  /** The part of the error that is the same share of D in all rows. */
  readonly common: number;
}

/** Formats that D is written in on its way, where they are shorter than the one that it is computed in. */
export interface DeltaFormats {
  /** The format of each product of dO and O. */
  readonly products: NumberFormat | null;
  /** The format of the sum. */
  readonly sums: NumberFormat | null;
}

/** The formats that premises give for writing D. */
export function deltaFormats({
  deltaProducts,
  deltaSums,
  elementwise,
}: GradientPremises): DeltaFormats {
  const short = (format: NumberFormat) => (unitRoundoff(format) > elementwise ? format : null);
  return { products: short(formats[deltaProducts]), sums: short(formats[deltaSums]) };
}

/** The rounding of a number of an interval: halfway between those of its ends, and half of their distance. */
function roundedBetween(format: NumberFormat, low: number, high: number) {
  const [from, to] = [round(format, low), round(format, high)];
  return from === to
    ? { value: from, error: 0 }
    : { value: (from + to) / 2, error: (to - from) / 2 };
}

/** Sums of the products of dO and O of a row as they are added. */
interface ProductSums {
  readonly sum: number;
  /** Σ |product|, Σ product², the largest sum on the way. */
  readonly size: number;
  readonly squares: number;
  readonly largest: number;
  /** The uncertainty of the roundings of products: fp32 may round them first, which matters near halves of an ulp. */
  readonly ambiguous: number;
}

function sumProducts(
  { products }: DeltaFormats,
  dout: Float64Array,
  out: Float64Array,
): ProductSums {
  let [sum, size, squares, largest, ambiguous] = [0, 0, 0, 0, 0];
  for (let c = 0; c < out.length; c++) {
    let product = dout[c] * out[c];
    if (products !== null) {
      const [once, twice] = [round(products, product), round(products, Math.fround(product))];
      product = once === twice ? once : (once + twice) / 2;
      if (once !== twice) ambiguous += Math.abs(once - twice) / 2;
    }
    sum += product;
    size += Math.abs(product);
    squares += product * product;
    largest = Math.max(largest, Math.abs(sum));
  }
  return { sum, size, squares, largest, ambiguous };
}

/** The D that a kernel makes of a row of the O that it stored, without the errors of its additions. */
export function storedMean(written: DeltaFormats, dout: Float64Array, out: Float64Array): number {
  const { sum } = sumProducts(written, dout, out);
  return written.sums === null ? sum : round(written.sums, sum);
}

/**
 * Makes a function that sums dO·O of a row of the O that was stored, as the kernel does: with its products, and the sum, rounded
 * as the premises say. Roundings of known numbers are known, and so are not errors. Theorem 5 of docs/theory/bounds-backward.md.
 */
export function createStoredMean(
  premises: GradientPremises,
  { products, underflow, tellsApart }: PairArithmetic,
): (dout: Float64Array, out: Float64Array, mean: number) => StoredMean {
  const written = deltaFormats(premises);
  return (dout, out, mean) => {
    const { sum, size, squares, largest, ambiguous } = sumProducts(written, dout, out);
    const partials = Math.min(((size + Math.abs(sum)) / 2) ** 2, partialSquares(largest, squares));
    const floor = 2 ** 16 * underflow;
    const ofSum = products.worst * size + ambiguous;
    if (written.sums !== null) {
      const { value, error } = roundedBetween(written.sums, sum - ofSum, sum + ofSum);
      return {
        shift: value - mean,
        worst: error + floor,
        typical: error + floor,
        variance: 0,
        common: 0,
      };
    }
    return {
      shift: sum - mean,
      worst: ofSum + floor,
      typical: (tellsApart ? 0 : products.toZero) * Math.abs(sum) + ambiguous + floor,
      // The parts of a sum that are cut off, beside the part that all sums share.
      variance:
        products.walk * products.walk * partials +
        (tellsApart ? (products.toZero * sum) ** 2 / 12 : 0),
      common: tellsApart ? products.toZero : 0,
    };
  };
}
