import {
  addDoubleDouble,
  addFloat64ToDoubleDouble,
  divideDoubleDouble,
  doubleDouble,
  type DoubleDouble,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  negateDoubleDouble,
  squareRootDoubleDouble,
  subtractDoubleDouble,
} from '../../arith/index.js';
import { doubleDoubleExp2, log2OfDoubleDouble } from '../../../oracles/index.js';

/** log2 e, ln 2 and π/2 as double-doubles: the words nearest to the number and to the rest (OEIS A007525, A002162, A019669). */
export const log2e: DoubleDouble = { high: 1.4426950408889634, low: 2.0355273740931033e-17 };
export const ln2: DoubleDouble = { high: 0.6931471805599453, low: 2.3190468138462996e-17 };
const halfPi: DoubleDouble = { high: 1.5707963267948966, low: 6.123233995736766e-17 };

/** Beyond it 2^x is no fp64 number, or zero. */
const largestExponent = 1100;

const notANumber = doubleDouble(NaN);

/** 2^x, relative error about 2^−100 where the result and its last bits are normal numbers. */
export function exp2(x: DoubleDouble): DoubleDouble {
  if (!(Math.abs(x.high) < largestExponent)) return doubleDouble(2 ** x.high);
  const { fraction, exponent } = doubleDoubleExp2(x);
  // In two steps: the power alone may be below the smallest number.
  const half = Math.trunc(exponent / 2);
  const scale = (word: number): number => word * 2 ** half * 2 ** (exponent - half);
  return { high: scale(fraction.high), low: scale(fraction.low) };
}

/** log2 x, absolute error about 2^−98; NaN below zero, −∞ at zero. */
export function log2(x: DoubleDouble): DoubleDouble {
  if (!(x.high > 0 && Number.isFinite(x.high))) return doubleDouble(Math.log2(x.high));
  return log2OfDoubleDouble(x);
}

/** x − x³/3! + … or, with `sign` 1, x + x³/3! + …, for |x| < 1. */
function oddSeries(x: DoubleDouble, sign: 1 | -1): DoubleDouble {
  const square = multiplyDoubleDouble(x, x);
  let [term, sum] = [x, x];
  for (let i = 3; i < 40 && Math.abs(term.high) > Math.abs(sum.high) * 2 ** -110; i += 2) {
    const factor = divideDoubleDouble(square, doubleDouble(sign * (i - 1) * i));
    term = multiplyDoubleDouble(term, factor);
    sum = addDoubleDouble(sum, term);
  }
  return sum;
}

/** tanh x, relative error about 2^−98. */
export function tanh(x: DoubleDouble): DoubleDouble {
  if (!(Math.abs(x.high) < 40)) return doubleDouble(Math.tanh(x.high));
  if (Math.abs(x.high) < 0.5) {
    const sinh = oddSeries(x, 1);
    const square = multiplyDoubleDouble(sinh, sinh);
    return divideDoubleDouble(sinh, squareRootDoubleDouble(addFloat64ToDoubleDouble(square, 1)));
  }
  const power = exp2(multiplyDoubleDouble(multiplyDoubleDoubleByFloat64(x, 2), log2e));
  return divideDoubleDouble(
    addFloat64ToDoubleDouble(power, -1),
    addFloat64ToDoubleDouble(power, 1),
  );
}

/** sin x, absolute error about 2^−100 + 2^−106 |x|. */
export function sine(x: DoubleDouble): DoubleDouble {
  if (!Number.isFinite(x.high)) return notANumber;
  const quarter = Math.round(x.high / halfPi.high);
  const rest = subtractDoubleDouble(x, multiplyDoubleDoubleByFloat64(halfPi, quarter));
  const s = oddSeries(rest, -1);
  const turn = ((quarter % 4) + 4) % 4;
  if (turn % 2 === 0) return turn === 0 ? s : negateDoubleDouble(s);
  // cos r = 1 − 2 sin²(r / 2)
  const half = oddSeries(multiplyDoubleDoubleByFloat64(rest, 0.5), -1);
  const square = multiplyDoubleDoubleByFloat64(multiplyDoubleDouble(half, half), -2);
  const c = addFloat64ToDoubleDouble(square, 1);
  return turn === 1 ? c : negateDoubleDouble(c);
}

/** cos x, as accurate as `sine`. */
export function cosine(x: DoubleDouble): DoubleDouble {
  return sine(addDoubleDouble(x, halfPi));
}
