import {
  addDoubleDouble,
  divideDoubleDouble,
  doubleDouble,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  subtractDoubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import { doubleDoubleExp2, type ExponentRow } from '../../../oracles/index.js';

/** Weights below 2^-900 of the largest one of a key are 0: the low words of products with smaller ones would underflow. */
const lowestExponent = -900;

/** A sink this many octaves above all keys leaves nothing of their weights. */
const highestSink = 900;

const zero = doubleDouble(0);

/** The weights of a row at one factor, relative to the largest one of a key. */
export interface RowWeights {
  /** 2^(exponent − largest) of each key. */
  readonly weights: readonly DoubleDouble[];
  /** Their sum. */
  readonly ofKeys: DoubleDouble;
  /** The divisor of O: their sum with the sink; null where the sink is so large that O is 0, or nothing has a weight. */
  readonly divisor: DoubleDouble | null;
  /** The largest exponent of a key; 0 for a row without keys. */
  readonly largest: DoubleDouble;
}

/** 2^y for y ≤ 900, and 0 below −900. */
export function power(y: DoubleDouble): DoubleDouble {
  if (y.high < lowestExponent) return zero;
  const { fraction, exponent } = doubleDoubleExp2(y);
  const scale = 2 ** exponent;
  return { high: fraction.high * scale, low: fraction.low * scale };
}

/** An exponent at a factor: times `ratio`, which is null for 1. */
export function scaledExponent(y: DoubleDouble, ratio: DoubleDouble | null): DoubleDouble {
  return ratio === null ? y : multiplyDoubleDouble(y, ratio);
}

/**
 * The weights of a row.
 * @param ratio the factor of the scores over the exact one, scale · log2 e; null for 1
 */
export function weighRow(row: ExponentRow, ratio: DoubleDouble | null): RowWeights {
  const exponents = row.exponents.map((y) => scaledExponent(y, ratio));
  const largest =
    exponents.length === 0
      ? zero
      : exponents.reduce((a, b) => (subtractDoubleDouble(b, a).high > 0 ? b : a));
  const weights = exponents.map((y) => power(subtractDoubleDouble(y, largest)));
  const ofKeys = weights.reduce(addDoubleDouble, zero);
  if (exponents.length === 0) return { weights, ofKeys, divisor: null, largest };
  if (row.sink === null) return { weights, ofKeys, divisor: ofKeys, largest };
  const above = subtractDoubleDouble(scaledExponent(row.sink.exponent, ratio), largest);
  const divisor = above.high > highestSink ? null : addDoubleDouble(ofKeys, power(above));
  return { weights, ofKeys, divisor, largest };
}

/** A number for each column, in words of their own: arithmetic on them makes no objects. */
class Columns {
  readonly #high: Float64Array;
  readonly #low: Float64Array;

  constructor(columns: number) {
    this.#high = new Float64Array(columns);
    this.#low = new Float64Array(columns);
  }

  #put(column: number, { high, low }: DoubleDouble): void {
    this.#high[column] = high;
    this.#low[column] = low;
  }

  of(column: number): DoubleDouble {
    return { high: this.#high[column], low: this.#low[column] };
  }

  /** Takes a weight times values. */
  setProducts(weight: DoubleDouble, values: Float64Array): void {
    for (let c = 0; c < values.length; c++)
      this.#put(c, multiplyDoubleDoubleByFloat64(weight, values[c]));
  }

  add(terms: Columns): void {
    for (let c = 0; c < this.#high.length; c++)
      this.#put(c, addDoubleDouble(this.of(c), terms.of(c)));
  }

  addMagnitudes(terms: Columns): void {
    for (let c = 0; c < this.#high.length; c++) {
      const sign = terms.#high[c] < 0 ? -1 : 1;
      const size = { high: sign * terms.#high[c], low: sign * terms.#low[c] };
      this.#put(c, addDoubleDouble(this.of(c), size));
    }
  }
}

/** O of one column and its scale of errors. */
export interface WeighedColumn {
  readonly out: DoubleDouble;
  /** Σ p|v| / Σ p, with the weights that O has. */
  readonly magnitude: DoubleDouble;
}

/**
 * O of every column.
 * @param weighed the weights of the row
 */
export function weighColumns(
  row: ExponentRow,
  { weights, divisor }: RowWeights,
): readonly WeighedColumn[] {
  const { vDim } = row;
  const [products, sums, sizes] = [new Columns(vDim), new Columns(vDim), new Columns(vDim)];
  if (divisor !== null)
    weights.forEach((weight, j) => {
      const value = weight.high === 0 ? null : row.value(j);
      if (value === null) return;
      products.setProducts(weight, value);
      sums.add(products);
      sizes.addMagnitudes(products);
    });
  const whole = divisor === null ? doubleDouble(1) : sharedDivisor(row, divisor);
  return Array.from(row.specialOut, (special, c) => ({
    out: special === 0 ? divideDoubleDouble(sums.of(c), whole) : doubleDouble(special),
    magnitude: divideDoubleDouble(sizes.of(c), whole),
  }));
}

/** The divisor of kept weights. */
export function sharedDivisor({ share }: ExponentRow, divisor: DoubleDouble): DoubleDouble {
  return share === 1 ? divisor : multiplyDoubleDoubleByFloat64(divisor, share);
}
