import {
  addDoubleDouble,
  divideDoubleDouble,
  divideDoubleDoubleByFloat64,
  doubleDouble,
  doubleDoubleFromSum,
  multiplyDoubleDouble,
  productError,
  subtractDoubleDouble,
  sumError,
  type DoubleDouble,
} from '../../src/arith/index.js';
import type { ScoreLaw } from '../../src/problem/index.js';
import {
  compensatedDot,
  compensatedDotError,
  compensatedExponents,
  droppedExponent,
} from '../attention/double-double-exponents.js';
import { operandRow, type Operand } from '../attention/operand.js';
import type { Row } from '../attention/row.js';
import type { ScoreConstants } from '../attention/scores.js';
import { sinkFrom, withSink } from '../attention/sink.js';
import { largestExponent } from '../attention/tile-level.js';
import { doubleDoubleExp2, doubleDoubleExp2Error } from '../exp2.js';
import type { Coefficients, SolvedRow } from './exact-row.js';
import type { Gradient } from './sums.js';

const u = 2 ** -53;
const slack = 1 + 2 ** -5;

/** The largest relative error, and the largest products, for which the analysis holds. */
const largestRelative = 2 ** -12;
const largestProduct = 2 ** 900;

/** Numbers with about twice fp64's precision, one for each key. */
interface DoubleDoubleVector extends Coefficients {
  readonly rests: Float64Array;
}

/** A row that is solved in double-double. */
export interface DoubleDoubleRow extends SolvedRow {
  readonly derivatives: DoubleDoubleVector;
}

function vectorOf(numbers: readonly DoubleDouble[], radius: Float64Array): DoubleDoubleVector {
  return {
    values: Float64Array.from(numbers, ({ high }) => high),
    rests: Float64Array.from(numbers, ({ low }) => low),
    radius,
  };
}

/** The sum of double-doubles: relative error 3u² of the sizes for each addition. */
function sumOf(numbers: readonly DoubleDouble[]): DoubleDouble {
  return numbers.reduce(addDoubleDouble, doubleDouble(0));
}

/** P of a row's keys, and the sink's share; null where the analysis does not hold. */
function weightsOf(row: Row, law: ScoreLaw, constants: ScoreConstants) {
  const { y, error, origin } = compensatedExponents(row, law, constants);
  const largest = y.reduce((most, { high }) => Math.max(most, high), -Infinity);
  const sink = row.sink === null ? null : sinkFrom(row.sink, origin);
  const inRange = y.every(({ high }) => Math.abs(high) <= largestExponent);
  if (!inRange || sink?.weight === null || !(error <= largestRelative)) return null;
  const reference = Math.round(largest);
  const w = y.map((exponent): DoubleDouble => {
    const power = doubleDoubleExp2(exponent);
    const shift = power.exponent - reference;
    const factor = shift < droppedExponent ? 0 : 2 ** shift;
    return { high: power.fraction.high * factor, low: power.fraction.low * factor };
  });
  const { sum, lift } = withSink(sumOf(w), reference, sink);
  if (lift > 900) return null;
  const total = { high: sum.high * 2 ** lift, low: sum.low * 2 ** lift };
  // Of a weight, of their sum and of the sink's, and the roundings of the sum and of the quotient.
  const ofWeight = (Math.LN2 * error + doubleDoubleExp2Error) * (1 + 2 ** -10);
  const trusted = Math.max(ofWeight, sink?.weight.error ?? 0);
  const relative = (2 * trusted + (3 * w.length + 30) * u ** 2) * slack;
  const exponent = (sink?.weight.exponent ?? 0) - reference - lift;
  return {
    p: w.map((weight) => divideDoubleDouble(weight, total)),
    relative,
    sinkShare:
      sink === null
        ? 0
        : ((sink.weight?.fraction.high ?? 0) * 2 ** Math.max(-1074, exponent)) / sum.high,
  };
}

/**
 * One row's derivatives in double-double arithmetic, from compensated dot products: Theorem 2 of
 * docs/theory/bounds-backward.md.
 * @returns null where the analysis does not hold, and for problems with a softcap
 */
export function doubleDoubleRow(
  row: Row,
  dout: { readonly values: Float64Array; readonly norm: number },
  law: ScoreLaw,
  constants: ScoreConstants,
): DoubleDoubleRow | null {
  const { values, visible, kept, share } = row;
  if (law.softcap !== null) return null;
  const found = weightsOf(row, law, constants);
  if (found === null) return null;
  const { p, relative, sinkShare } = found;
  const largest = visible.reduce((most, key) => Math.max(most, values.norm[key]), 0) * dout.norm;
  if (!(largest <= largestProduct)) return null;
  const product = (compensatedDotError(values.dim, largest) / share) * (1 + 2 ** -20);
  const zero = doubleDouble(0);
  const x = Array.from(visible, (key, j) => {
    if (kept?.[j] === 0) return zero;
    const dot = compensatedDot(dout.values, operandRow(values, key));
    return share === 1 ? dot : divideDoubleDoubleByFloat64(dot, share);
  });
  const terms = p.map((weight, j) => multiplyDoubleDouble(weight, x[j]));
  const mean = sumOf(terms);
  const meanSize = terms.reduce((sum, { high }) => sum + Math.abs(high), 0);
  // Of D; dS has it again, and a difference and a product more.
  const ofMean = relative + (3 * p.length + 20) * u ** 2;
  const floor = (p.length + 1) * ((2 ** -978 * 2 * largest) / share + 2 ** -1060);
  const scales = Float64Array.from(p, ({ high }, j) => high * (Math.abs(x[j].high) + meanSize));
  const ds = p.map((weight, j) => multiplyDoubleDouble(weight, subtractDoubleDouble(x[j], mean)));
  const derivatives = vectorOf(
    ds,
    scales.map((size, j) => (2 * ofMean * size + 2 * product * p[j].high) * slack + floor),
  );
  const weights = p.map((weight, j) => {
    if (kept?.[j] === 0) return zero;
    return share === 1 ? weight : divideDoubleDoubleByFloat64(weight, share);
  });
  return {
    weights: vectorOf(
      weights,
      Float64Array.from(weights, ({ high }, j) =>
        kept?.[j] === 0 ? 0 : 2 * relative * high + 2 ** -978 / share,
      ),
    ),
    derivatives,
    scoreDerivatives: derivatives,
    scales,
    cappedScales: scales,
    mean: mean.high,
    meanRadius: (ofMean * meanSize + product) * slack + u * Math.abs(mean.high) + floor,
    meanSize,
    sinkShare,
  };
}

/** A row of dQ from its derivatives: compensated sums, times the scale. */
export function doubleDoubleProduct(
  { derivatives, scales }: DoubleDoubleRow,
  keys: Operand,
  visible: Int32Array,
  scale: number,
): Gradient {
  const { dim } = keys;
  const column = () => new Float64Array(dim);
  const [sums, rests, sizes, errors] = [column(), column(), column(), column()];
  visible.forEach((key, j) => {
    const [high, low] = [derivatives.values[j], derivatives.rests[j]];
    const radius = derivatives.radius[j];
    const ofKey = operandRow(keys, key);
    for (let c = 0; c < dim; c++) {
      const product = high * ofKey[c];
      const next = sums[c] + product;
      rests[c] +=
        productError(high, ofKey[c], product) + sumError(sums[c], product, next) + low * ofKey[c];
      sums[c] = next;
      sizes[c] += scales[j] * Math.abs(ofKey[c]);
      errors[c] += radius * Math.abs(ofKey[c]);
    }
  });
  const factor = Math.abs(scale);
  const n = visible.length;
  const magnitude = sizes.map((size) => size * factor);
  const values = sums.map((sum, c) => doubleDoubleFromSum(sum, rests[c]).high * scale);
  const radius = values.map((value, c) => {
    const largest = keys.columnLargest[c];
    if (largest === 0) return 0;
    const ofSum = 3.1 * (n + 2) ** 2 * u ** 2 * sizes[c];
    const ofTerms = factor * (errors[c] + ofSum + n * 2 ** -1065 * (1 + largest)) * slack;
    return ofTerms + 2.1 * u * Math.abs(value) + 2 ** -1073;
  });
  return { values, radius, magnitude };
}
