import { type FormatName, formats, ulp } from '../../src/formats/index.js';
import { RequestError } from '../../src/request-error.js';

/**
 * One query with the keys that count for it, every number finite: what the slower levels of the
 * oracle work on. `keys` and `values` hold a whole head; `visible` selects from them.
 */
export interface Row {
  /** [qkDim] */
  readonly query: Float64Array;
  /** [seqlen_k × qkDim] */
  readonly keys: Float64Array;
  /** Upper bounds on the Euclidean norms of the query and of every key, [seqlen_k]. */
  readonly queryNorm: number;
  readonly keyNorms: Float64Array;
  /** [seqlen_k × vDim] */
  readonly values: Float64Array;
  readonly qkDim: number;
  readonly vDim: number;
  /** Indices of the keys that take part; never empty. */
  readonly visible: Int32Array;
  /** Per visible key 0, or ±1 where the raw score is ±∞ and the softcap makes it ±cap. */
  readonly infinite: Int8Array;
}

/** The oracle's answer for one row, each value with a proven radius. */
export interface RowResult {
  /** [vDim] */
  readonly out: Float64Array;
  readonly outRadius: Float64Array;
  /** Σ p|v| / Σ p per column. */
  readonly magnitude: Float64Array;
  /** Natural log of Σ exp(score). */
  readonly lse: number;
  readonly lseRadius: number;
  /** The largest score, in natural-log units, to about fp64 accuracy. */
  readonly maximum: number;
}

/**
 * How small a radius the caller wants. An element is good enough when its radius is at most
 * `ulpFraction` ulp of the output format, or at most `magnitudeFraction` of Σ p|v| / Σ p, whichever
 * is larger. Values are held in fp64, so no radius is asked to be below 2^-52 of its value or below
 * 2^-1072.
 */
export interface Accuracy {
  readonly outputFormat: FormatName;
  /** In ulps of the output format. */
  readonly ulpFraction: number;
  /** Relative to Σ p|v| / Σ p; 0 to go by ulps alone. */
  readonly magnitudeFraction: number;
}

/** Four of fp64's smallest subnormals: what the roundings of a result that underflows add up to. */
const underflowFloor = 2 ** -1072;

/** The LSE is asked for in ulps of fp32, but never below this: an LSE is absolute in nature. */
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
