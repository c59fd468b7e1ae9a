import { type FormatName, formats, ulp } from '../../src/formats/index.js';
import { RequestError } from '../../src/request-error.js';
import type { Operand } from './operand.js';
import type { Sink } from './sink.js';

/** The sink in a row's sum, and the dropout of its weights. */
interface RowFeatures {
  /** The sink; null for none. */
  readonly sink: Sink | null;
  /** 1 − the probability of dropout, which divides the kept weights. 1 without dropout. */
  readonly share: number;
}

/**
 * One query with the keys that count for it, every number finite: the input of the slower levels of the
 * oracle. `keys` and `values` hold a whole head; `visible` selects from them.
 */
export interface Row extends RowFeatures {
  /** [qkDim] */
  readonly query: Float64Array;
  /** An upper bound on the Euclidean norm of the query. */
  readonly queryNorm: number;
  readonly keys: Operand;
  readonly values: Operand;
  /** Indices of the keys that take part, ascending; never empty. */
  readonly visible: Int32Array;
  /** Per visible key 0, or ±1 where the raw score is ±∞ and the softcap makes it ±cap. */
  readonly infinite: Int8Array;
  /** Addend of each visible key's score, after the softcap; null for none. */
  readonly addends: Float64Array | null;
  /** Rounding errors of the addends, where they are rounded sums; null where they are exact. */
  readonly addendRests: Float64Array | null;
  /** 1 for each visible key whose weight dropout keeps, else 0; null without dropout. */
  readonly kept: Uint8Array | null;
}

/** The oracle's answer for one row, each value with a proven radius. */
export interface RowResult {
  /** [vDim] */
  readonly out: Float64Array;
  readonly outRadius: Float64Array;
  /** Σ p|v| / Σ p per column, under dropout with the weights that multiply v. */
  readonly magnitude: Float64Array;
  /** Natural log of Σ exp(score). */
  readonly lse: number;
  readonly lseRadius: number;
  /** The largest score of a key, in natural-log units, to about fp64 accuracy. */
  readonly maximum: number;
  /** Natural log of the divisor of O, the sink included: the LSE itself if that includes it or there is none. */
  readonly denominator: number;
}

/** The result of a row whose weights are all 0: a row without keys, but for its sink. */
export function emptyRow(vDim: number, sink: Sink | null): RowResult {
  return {
    out: new Float64Array(vDim),
    outRadius: new Float64Array(vDim),
    magnitude: new Float64Array(vDim),
    lse: sink?.inLse === true ? sink.logit : -Infinity,
    lseRadius: 0,
    maximum: -Infinity,
    denominator: sink?.logit ?? -Infinity,
  };
}

/**
 * The radius that the caller wants. An element is accurate when its radius is at most `ulpFraction` ulp
 * of the output format, or at most `magnitudeFraction` of Σ p|v| / Σ p, whichever is larger. Values are
 * held in fp64, so no radius has to be below 2^-52 of its value or below 2^-1072.
 */
export interface Accuracy {
  readonly outputFormat: FormatName;
  /** The radius in ulps of the output format. */
  readonly ulpFraction: number;
  /** Relative to Σ p|v| / Σ p; 0 to go by ulps alone. */
  readonly magnitudeFraction: number;
}

/** Four of fp64's smallest subnormals: the sum of the roundings of a result that underflows. */
const underflowFloor = 2 ** -1072;

/** The LSE's radius is wanted in ulps of fp32, but never below this: the errors of an LSE are absolute. */
const lseFloor = 2 ** -34;

/**
 * Throws a RequestError for an accuracy that no radius can reach, or that is no number: the slower
 * levels would go on for ever.
 */
export function checkAccuracy(accuracy: Accuracy): void {
  for (const name of ['ulpFraction', 'magnitudeFraction'] as const)
    if (!(accuracy[name] >= 0 && accuracy[name] < Infinity))
      throw new RequestError(
        `accuracy.${name} is ${accuracy[name]}; give a finite number that is not negative`,
      );
}

/**
 * Whether every element of a row and its LSE reach the wanted accuracy. Infinite and NaN radii do
 * not.
 */
export function isAccurate(row: RowResult, accuracy: Accuracy): boolean {
  const format = formats[accuracy.outputFormat];
  for (let c = 0; c < row.out.length; c++) {
    const value = row.out[c];
    const allowed = Math.max(
      accuracy.ulpFraction * ulp(format, Math.min(Math.abs(value), format.maxFinite)),
      accuracy.magnitudeFraction * row.magnitude[c],
      2 ** -52 * Math.abs(value),
      underflowFloor,
    );
    if (!(row.outRadius[c] <= allowed && row.outRadius[c] < Infinity)) return false;
  }
  // An exact LSE beyond fp64 is held as an infinity.
  const lse = Math.min(Math.abs(row.lse), Number.MAX_VALUE);
  const allowed = Math.max(accuracy.ulpFraction * ulp(formats.fp32, lse), 2 ** -52 * lse, lseFloor);
  return row.lseRadius <= allowed;
}
