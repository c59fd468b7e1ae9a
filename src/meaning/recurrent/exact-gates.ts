import {
  addFloat64ToDoubleDouble,
  divideDoubleDouble,
  doubleDouble,
  doubleDoubleFromSum,
  multiplyDoubleDouble,
  negateDoubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import { decodeTensor } from '../../formats/index.js';
import { softplusThreshold, type GateInputs, type Tensor } from '../../problem/index.js';
import { power } from '../contracts/index.js';
import type { RecurrentConstants } from './constants.js';

/** e^x by a kernel's log2 e. */
const exponential = (x: DoubleDouble, { logarithm }: RecurrentConstants): DoubleDouble =>
  power(multiplyDoubleDouble(x, logarithm!.value));

/**
 * log(1 + e^x), x itself beyond the threshold. Where a rounding may decide which power of two a kernel's logarithm splits off, of one argument in a million,
 * the smaller one counts.
 */
function softplus(x: DoubleDouble, constants: RecurrentConstants): DoubleDouble {
  if (x.high > softplusThreshold || (x.high === softplusThreshold && x.low > 0)) return x;
  return constants.softplus!.of(addFloat64ToDoubleDouble(exponential(x, constants), 1))[0];
}

/**
 * The gates of a row, counted over [batch, tokens, value heads], as a kernel makes them: −exp(A_log) · softplus(a + dt_bias), one or one for each key dimension.
 */
export function madeGates(
  { aLog, a, dtBias }: GateInputs,
  row: number,
  constants: RecurrentConstants,
): readonly DoubleDouble[] {
  const [, , heads, width = 1] = a.shape;
  const head = row % heads;
  const logarithm = decodeTensor(aLog, head, head + 1)[0];
  const rate = negateDoubleDouble(exponential(doubleDouble(logarithm), constants));
  const bias = dtBias && decodeTensor(dtBias, head * width, (head + 1) * width);
  return Array.from(decodeTensor(a, row * width, (row + 1) * width), (one, i) =>
    multiplyDoubleDouble(rate, softplus(doubleDoubleFromSum(one, bias?.[i] ?? 0), constants)),
  );
}

/** β of a row as a kernel makes it: 1 / (1 + e^−b). */
export function madeStrength(
  logits: Tensor,
  row: number,
  constants: RecurrentConstants,
): DoubleDouble {
  const [b] = decodeTensor(logits, row, row + 1);
  const sum = addFloat64ToDoubleDouble(exponential(doubleDouble(-b), constants), 1);
  return divideDoubleDouble(doubleDouble(1), sum);
}
