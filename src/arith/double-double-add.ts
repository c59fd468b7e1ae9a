import {
  doubleDouble,
  negateDoubleDouble,
  normalizedDoubleDouble,
  type DoubleDouble,
} from './double-double.js';
import { fastSumError, sumError } from './two-sum.js';

/**
 * x + y, relative error at most 3u² + 13u³ (u = 2^−53), cancellation included.
 *
 * Algorithm 6 (AccurateDWPlusDW, first in Li et al. 2002) of Joldeş, Muller and Popescu 2017; the
 * bound as corrected and machine-checked by Muller and Rideau, "Formalization of double-word
 * arithmetic", ACM TOMS 48(1), 2022. Infinities and NaN as in fp64 addition.
 */
export function addDoubleDouble(x: DoubleDouble, y: DoubleDouble): DoubleDouble {
  const highSum = x.high + y.high;
  if (!Number.isFinite(highSum)) return doubleDouble(highSum);
  const highSumError = sumError(x.high, y.high, highSum);
  const lowSum = x.low + y.low;
  const lowSumError = sumError(x.low, y.low, lowSum);
  const carry = highSumError + lowSum;
  const high = highSum + carry;
  if (!Number.isFinite(high)) return doubleDouble(high);
  const low = lowSumError + fastSumError(highSum, carry, high);
  return normalizedDoubleDouble(high, low);
}

/** x − y, relative error at most 3u² + 13u³: `addDoubleDouble` of x and −y. */
export function subtractDoubleDouble(x: DoubleDouble, y: DoubleDouble): DoubleDouble {
  return addDoubleDouble(x, negateDoubleDouble(y));
}

/**
 * x + y for an fp64 y, relative error at most 2u² (u = 2^−53), cancellation included.
 *
 * Algorithm 4 (DWPlusFP) of Joldeş, Muller and Popescu 2017. Infinities and NaN as in fp64 addition.
 */
export function addFloat64ToDoubleDouble(x: DoubleDouble, y: number): DoubleDouble {
  const highSum = x.high + y;
  if (!Number.isFinite(highSum)) return doubleDouble(highSum);
  return normalizedDoubleDouble(highSum, x.low + sumError(x.high, y, highSum));
}
