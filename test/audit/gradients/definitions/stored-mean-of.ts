import type { GradientPremises } from '../../../../src/audit/gradients/bounds/index.js';
import type { PairArithmetic } from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import { formats, round, unitRoundoff, type FormatName } from '../../../../src/formats/index.js';

/** D of a stored O, beside the exact D: Theorem 5, written down plainly. */
export function storedMeanOf(
  premises: Pick<GradientPremises, 'deltaProducts' | 'deltaSums' | 'elementwise'>,
  a: Pick<PairArithmetic, 'products' | 'underflow' | 'tellsApart'>,
  dout: Float64Array,
  out: Float64Array,
  mean: number,
) {
  const shorter = (name: FormatName) => unitRoundoff(formats[name]) > premises.elementwise;
  const written = Array.from(dout, (x, c) => {
    const product = x * out[c];
    if (!shorter(premises.deltaProducts)) return { value: product, open: 0 };
    const format = formats[premises.deltaProducts];
    const [once, twice] = [round(format, product), round(format, Math.fround(product))];
    return { value: (once + twice) / 2, open: Math.abs(once - twice) / 2 };
  });
  const total = (of: (x: (typeof written)[number]) => number) =>
    written.reduce((sum, x) => sum + of(x), 0);
  const s = total(({ value }) => value);
  const sizes = total(({ value }) => Math.abs(value));
  const open = total((x) => x.open);
  const largest = written.reduce(
    ({ sum, most }, { value }) => ({
      sum: sum + value,
      most: Math.max(most, Math.abs(sum + value)),
    }),
    { sum: 0, most: 0 },
  ).most;
  const floor = 2 ** 16 * a.underflow;
  const off = a.products.worst * sizes + open;
  if (shorter(premises.deltaSums)) {
    const ends = [s - off, s + off].map((x) => round(formats[premises.deltaSums], x));
    const error = (ends[1] - ends[0]) / 2 + floor;
    return {
      shift: (ends[0] + ends[1]) / 2 - mean,
      worst: error,
      typical: error,
      common: 0,
      variance: 0,
    };
  }
  const partials = Math.min(
    ((sizes + Math.abs(s)) / 2) ** 2,
    largest ** 2 + total(({ value }) => value ** 2) / 6,
  );
  return {
    shift: s - mean,
    worst: off + floor,
    typical: (a.tellsApart ? 0 : a.products.toZero * Math.abs(s)) + open + floor,
    common: a.tellsApart ? a.products.toZero : 0,
    variance:
      a.products.walk ** 2 * partials + (a.tellsApart ? (a.products.toZero * s) ** 2 / 12 : 0),
  };
}
