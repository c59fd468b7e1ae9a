import {
  addDoubleDouble,
  addFloat64ToDoubleDouble,
  doubleDouble,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  negateDoubleDouble,
  type DoubleDouble,
} from '../../src/arith/index.js';
import { decodeToFloat64, formats } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { doubleDoubleExp2, doubleDoubleExp2Error } from '../exp2.js';
import { log2eWords } from './logarithm-words.js';

/** e^logit = fraction · 2^exponent. */
interface SinkWeight {
  /** The fraction, in [0.98, 2.03). */
  readonly fraction: DoubleDouble;
  readonly exponent: number;
  /** A bound on the relative error of the fraction. */
  readonly error: number;
}

/** The sink of a head: a key without value whose weight e^logit joins the row sum. */
export interface Sink {
  /** Natural units, finite. */
  readonly logit: number;
  /** Whether the LSE includes it too. */
  readonly inLse: boolean;
  /** The weight; null for a logit that is too large for double-double. */
  readonly weight: SinkWeight | null;
}

/** The largest logit whose exponent keeps enough fraction bits. */
const largestLogit = 2 ** 39;

/** Distance in nats from the largest weight beyond which a sink is cut short: its weight is 0 in fp64. */
const lowestLogit = -2000;

const u = 2 ** -53;

/** A sink of a finite logit; null for −∞, which is none. */
function sinkOf(logit: number, inLse: boolean): Sink | null {
  if (logit === -Infinity) return null;
  if (Math.abs(logit) > largestLogit) return { logit, inLse, weight: null };
  const y = multiplyDoubleDoubleByFloat64(log2eWords(), logit);
  // The constant's u² and the product's 3/2 u²; a logit that underflows there moves nothing.
  const error = 4 * u ** 2 * Math.abs(logit) + 2 ** -1000 + doubleDoubleExp2Error;
  return { logit, inLse, weight: { ...doubleDoubleExp2(y), error } };
}

/**
 * The sink with its weight relative to e^origin: without weight where it is far above, and cut short where it is
 * far below.
 * @param origin natural units, with a relative error of u²
 */
export function sinkFrom(sink: Sink, origin: DoubleDouble): Sink {
  if (origin.high === 0) return sink;
  const above = addFloat64ToDoubleDouble(negateDoubleDouble(origin), sink.logit);
  if (!(above.high <= largestLogit)) return { ...sink, weight: null };
  const kept = above.high < lowestLogit ? doubleDouble(lowestLogit) : above;
  // The difference 2u², the constant u², the product 5u².
  const error = u ** 2 * (Math.abs(origin.high) + 9 * Math.abs(kept.high)) * (1 + 2 ** -10);
  return {
    ...sink,
    weight: {
      ...doubleDoubleExp2(multiplyDoubleDouble(kept, log2eWords())),
      error: error + doubleDoubleExp2Error,
    },
  };
}

/** The sinks of a problem by head, counted within the batch; null for a problem without. */
export function headSinks({ sink }: Problem): readonly (Sink | null)[] | null {
  if (sink === undefined) return null;
  const { logits, inLse } = sink;
  const values = decodeToFloat64(logits.data, formats[logits.format]);
  return Array.from(values, (logit) => sinkOf(logit, inLse));
}

/** x · 2^-n for a whole n ≥ 0, off by less than 2^-1073 where it underflows. */
export function scaledDown(x: number, n: number): number {
  if (n === 0) return x;
  const first = Math.min(n, 1000);
  return x * 2 ** -first * 2 ** -Math.min(n - first, 1074);
}

/** Divisor of sums over keys, relative to 2^reference: `sum` · 2^lift. */
export interface Divisor {
  readonly sum: DoubleDouble;
  readonly lift: number;
}

/**
 * The sum of a row's weights with its sink: relative error 3u² beside that of its two parts. It is lifted where
 * the sink is larger than the reference of the keys, so that neither overflows.
 * @param total sum over the keys, relative to 2^reference, at least 1/2
 * @returns NaN for a sink without weight
 */
export function withSink(total: DoubleDouble, reference: number, sink: Sink | null): Divisor {
  if (sink === null) return { sum: total, lift: 0 };
  if (sink.weight === null) return { sum: { high: NaN, low: NaN }, lift: 0 };
  const { fraction, exponent } = sink.weight;
  const lift = Math.max(0, exponent - reference);
  const ofKeys = 2 ** -lift;
  const ofSink = 2 ** (exponent - reference - lift);
  return {
    sum: addDoubleDouble(
      { high: total.high * ofKeys, low: total.low * ofKeys },
      { high: fraction.high * ofSink, low: fraction.low * ofSink },
    ),
    lift,
  };
}
