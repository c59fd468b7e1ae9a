import { doubleDouble, normalizedDoubleDouble, type DoubleDouble } from './double-double.js';
import { productError } from './two-product.js';
import { fastSumError } from './two-sum.js';

/**
 * x·y, relative error at most 5u² (u = 2^−53) within the range stated with `DoubleDouble`.
 *
 * Algorithm 10 (DWTimesDW1, which needs no fused multiply-add) of Joldeş, Muller and Popescu 2017,
 * who prove 7u²; lowered to 5u² for round-to-nearest-even by Muller and Rideau, "Formalization of
 * double-word arithmetic", ACM TOMS 48(1), 2022. Infinities, NaN and zeros as in fp64.
 */
export function multiplyDoubleDouble(x: DoubleDouble, y: DoubleDouble): DoubleDouble {
  const product = x.high * y.high;
  if (product === 0 || !Number.isFinite(product)) return doubleDouble(product);
  const crossTerms = x.high * y.low + x.low * y.high;
  return normalizedDoubleDouble(product, productError(x.high, y.high, product) + crossTerms);
}

/**
 * x·y for an fp64 y, relative error at most 3/2 u² + 4u³ (u = 2^−53) within the range stated with
 * `DoubleDouble`.
 *
 * Algorithm 7 (DWTimesFP1) of Joldeş, Muller and Popescu 2017. Infinities, NaN and zeros as in fp64.
 */
export function multiplyDoubleDoubleByFloat64(x: DoubleDouble, y: number): DoubleDouble {
  const product = x.high * y;
  if (product === 0 || !Number.isFinite(product)) return doubleDouble(product);
  const lowProduct = x.low * y;
  const high = product + lowProduct;
  if (!Number.isFinite(high)) return doubleDouble(high);
  const low = fastSumError(product, lowProduct, high) + productError(x.high, y, product);
  return normalizedDoubleDouble(high, low);
}
