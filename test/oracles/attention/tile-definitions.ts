/**
 * Definitions of the WebAssembly loops of oracles/attention/assembly/tile-kernels.ts, in the same order of operations, so
 * that results are equal bit for bit. The error analysis in oracles/attention/tile-level.ts counts the operations written
 * here. Read these, run those.
 */

/** 1.5 · 2^52: adding and subtracting it rounds to the nearest integer, ties to even, below 2^51. */
const toInteger = 1.5 * 2 ** 52;

/** The nearest integer, as by WebAssembly's `nearest`: a zero has the sign of x. */
function nearestInteger(x: number): number {
  const size = Math.abs(x);
  return size < 2 ** 51 ? Math.sign(x) * (size + toInteger - toInteger) : x;
}

/** ln(2)^k / k! for k = 13 … 0, rounded to fp64. */
const coefficients = [
  1.3691488853904128e-12, 2.5678435993488206e-11, 4.4455382718708116e-10, 7.054911620801123e-9,
  1.01780860092397e-7, 1.321548679014431e-6, 1.5252733804059841e-5, 1.540353039338161e-4,
  1.3333558146428443e-3, 9.618129107628477e-3, 0.05550410866482158, 0.24022650695910072,
  6.931471805599453e-1, 1,
];

/** 2^f for |f| ≤ 0.5 + 2^-12: Taylor's polynomial of degree 13, by Horner's rule. */
function exp2Fraction(f: number): number {
  return coefficients.reduce((sum, coefficient) => sum * f + coefficient);
}

/** Σ a_t b_t and Σ |a_t b_t|, the products added in order: `product` and `productWithMagnitude`. */
export function dotWithMagnitude(
  a: ArrayLike<number>,
  b: ArrayLike<number>,
): { readonly sum: number; readonly magnitude: number } {
  let sum = 0;
  let magnitude = 0;
  for (let t = 0; t < a.length; t++) {
    const product = a[t] * b[t];
    sum += product;
    magnitude += Math.abs(product);
  }
  return { sum, magnitude };
}

/** The sum of older tiles times the factor of a rescale, and this tile's: `accumulate`. */
export function accumulated(before: number, factor: number, tile: number): number {
  return before * factor + tile;
}

/** 2^w for |w| ≤ 1000. */
export function exponential(w: number): number {
  const n = nearestInteger(w);
  return exp2Fraction(w - n) * 2 ** n;
}

/** tanh(s·factor / (2 log2 e)) = (2^w − 1)/(2^w + 1) with w = s·factor within ±128: `capScores`. */
export function cappedScore(score: number, factor: number): number {
  const power = exponential(Math.max(Math.min(score * factor, 128), -128));
  return (power - 1) / (power + 1);
}

/** The state of a row between two tiles: `weights` changes it. */
export interface WeightState {
  /** An integer, log2 of the reference of weights; −∞ before the first key that the row sees. */
  readonly reference: number;
  /** The largest |product| that enters exponents, and the largest exponent met. */
  readonly extent: number;
  readonly maximum: number;
}

/** The weights of a row's scores in a tile. */
export interface RowWeights {
  readonly state: WeightState;
  /** Factor by which to multiply older sums. */
  readonly factor: number;
  /** 2^(exponent − reference); 0 for keys that the row does not see. */
  readonly weights: Float64Array;
  readonly sum: number;
}

/** The head of Veltkamp's split of x into halves of 26 bits. */
function splitHead(x: number): number {
  const t = 134217729 * x;
  return t - (t - x);
}

/** A constant as an unevaluated sum of two fp64 numbers. */
interface Words {
  readonly high: number;
  readonly low: number;
}

/** s·c as a rounded product p and the rest e: Dekker's product, then the tail of c. */
function productWithRest(s: number, c: Words): { readonly p: number; readonly e: number } {
  const cBig = splitHead(c.high);
  const cSmall = c.high - cBig;
  const p = s * c.high;
  const sBig = splitHead(s);
  const sSmall = s - sBig;
  let e = sBig * cBig - p;
  e += sBig * cSmall;
  e += sSmall * cBig;
  e += sSmall * cSmall;
  e += s * c.low;
  return { p, e };
}

/** s·c + a·d likewise, p the rounded sum of the rounded products: the errors of their 2Sum join the rest. */
function sumWithRest(s: number, c: Words, a: number, d: Words) {
  const first = productWithRest(s, c);
  const second = productWithRest(a, d);
  const p = first.p + second.p;
  const ofSecond = p - first.p;
  const lost = first.p - (p - ofSecond) + (second.p - ofSecond);
  return { p, e: first.e + second.e + lost };
}

/** 2^(p + e − reference); 0 below 2^-1000. */
function weightOf({ p, e }: { readonly p: number; readonly e: number }, reference: number): number {
  const n = nearestInteger(p);
  const shift = n - reference;
  if (!(shift >= -1000)) return 0;
  return exp2Fraction(p - n + e) * 2 ** Math.min(shift, 1000);
}

/** Addends of scores, and their factor. */
export interface Addition {
  readonly addends: Float64Array;
  readonly factor: Words;
}

/**
 * The weights of one row against a tile: `weights`, with addends where there is an addition. The row sees the places
 * low ≤ j < high. The reference is raised to the row's maximum when a weight would exceed 2^16; an older sum that
 * falls by more than 2^1022 becomes 0. Weights of even places are added, those of odd ones, then the two sums.
 * @param c the factor that turns scores into exponents of 2, as a double-double
 */
export function weighScores(
  scores: Float64Array,
  c: Words,
  { low, high }: { readonly low: number; readonly high: number },
  state: WeightState,
  addition: Addition | null = null,
): RowWeights {
  const weights = new Float64Array(scores.length);
  if (low >= high) return { state, factor: 1, weights, sum: 0 };
  const products = scores.slice(low, high).map((s) => s * c.high);
  const added = addition?.addends.slice(low, high).map((a) => a * addition.factor.high);
  const exponents = added === undefined ? products : products.map((y, j) => y + added[j]);
  const largest = exponents.reduce((most, y) => Math.max(most, y), -Infinity);
  const extent = [...products, ...(added ?? [])].reduce(
    (most, y) => Math.max(most, Math.abs(y)),
    state.extent,
  );
  const isFirst = state.reference === -Infinity;
  const isRaised = isFirst || largest - state.reference > 16;
  const reference = isRaised ? nearestInteger(largest) : state.reference;
  const shift = state.reference - reference;
  const factor = isFirst || shift < -1022 ? 0 : 2 ** shift;
  const sums = [0, 0];
  for (let j = low; j < high; j++) {
    const exponent =
      addition === null
        ? productWithRest(scores[j], c)
        : sumWithRest(scores[j], c, addition.addends[j], addition.factor);
    weights[j] = weightOf(exponent, reference);
    sums[j % 2] += weights[j];
  }
  return {
    state: { reference, extent, maximum: Math.max(state.maximum, largest) },
    factor,
    weights,
    sum: sums[0] + sums[1],
  };
}
