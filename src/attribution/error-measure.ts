import { type FormatName, formats, ulp } from '../formats/index.js';
import type { AttentionReference } from '../../oracles/index.js';
import { elementAt } from '../audit/index.js';

/** Largest magnitude, root mean square and mean of something over the elements. */
export interface Spread {
  readonly max: number;
  readonly rms: number;
  /** Mean, with its sign. */
  readonly mean: number;
}

/** A spread being measured, number by number. */
export class RunningSpread {
  /** Number of numbers so far, and the largest magnitude among them; 0 for none. */
  count = 0;
  max = 0;
  #squares = 0;
  #sum = 0;

  /** @param x finite */
  add(x: number): void {
    this.count++;
    this.max = Math.max(this.max, Math.abs(x));
    this.#squares += x * x;
    this.#sum += x;
  }

  /** The spread of the numbers so far; zeros for none. */
  measure(): Spread {
    const count = Math.max(this.count, 1);
    return { max: this.max, rms: Math.sqrt(this.#squares / count), mean: this.#sum / count };
  }
}

/** Share of a whole in the sense of least squares: Σ part · whole / Σ whole², 0 without a whole. */
export class Projection {
  #cross = 0;
  #squares = 0;

  /** Adds an element; one that is not finite counts for nothing. */
  add(part: number, whole: number): void {
    if (!Number.isFinite(part) || !Number.isFinite(whole)) return;
    this.#cross += part * whole;
    this.#squares += whole * whole;
  }

  share(): number {
    return this.#squares === 0 ? 0 : this.#cross / this.#squares;
  }
}

/** An error over all elements of an output where it is finite. */
export interface ErrorMeasure {
  readonly elements: number;
  /** Elements that could not be measured. */
  readonly nonFinite: number;
  /** Error in the output's own unit. */
  readonly absolute: Spread;
  /** Error in units of Σ p|v| / Σ p of each element. */
  readonly relative: Spread;
  /** Error in ulps of the output's format at each element's exact value. */
  readonly ulps: Spread;
  /**
   * Mean of the relative error with the sign of the exact value: above 0 the error enlarges outputs,
   * below 0 it shrinks them, as truncation does.
   */
  readonly outward: number;
  /** The element with the largest relative error; null if there is no error. */
  readonly worst:
    (ReturnType<typeof elementAt> & { readonly error: number; readonly exact: number }) | null;
}

/** The units of an output's errors: one number per element. */
export interface ErrorUnits {
  readonly exact: Float64Array;
  /** 1 / (Σ p|v| / Σ p), 0 where that is 0 or too small to have a reciprocal. */
  readonly perMagnitude: Float64Array;
  readonly perUlp: Float64Array;
  readonly shape: AttentionReference['shape'];
}

const smallestMagnitude = 2 ** -1000;

/** The units of errors against a reference, for outputs in the format. */
export function errorUnits(reference: AttentionReference, outputFormat: FormatName): ErrorUnits {
  const format = formats[outputFormat];
  const {
    shape,
    quantities: {
      out: { values: out, magnitude },
    },
  } = reference;
  return {
    exact: out,
    perMagnitude: magnitude.map((size) => (size < smallestMagnitude ? 0 : 1 / size)),
    perUlp: out.map((x) => 1 / ulp(format, Math.min(Math.abs(x), format.maxFinite))),
    shape,
  };
}

/** An error being measured, element by element. */
export class ErrorMeter {
  readonly #units: ErrorUnits;
  readonly #absolute = new RunningSpread();
  readonly #relative = new RunningSpread();
  readonly #ulps = new RunningSpread();
  #outward = 0;
  #nonFinite = 0;
  #worst = -1;
  #worstError = 0;

  constructor(units: ErrorUnits) {
    this.#units = units;
  }

  /** Adds the error of the element, counted from the output's first. */
  add(index: number, error: number): void {
    const { exact, perMagnitude, perUlp } = this.#units;
    if (!Number.isFinite(error) || !Number.isFinite(exact[index])) {
      this.#nonFinite++;
      return;
    }
    const relative = error * perMagnitude[index];
    this.#absolute.add(error);
    if (this.#worst < 0 ? error !== 0 : Math.abs(relative) > this.#relative.max) {
      this.#worst = index;
      this.#worstError = error;
    }
    this.#relative.add(relative);
    this.#ulps.add(error * perUlp[index]);
    this.#outward += exact[index] < 0 ? -relative : relative;
  }

  measure(): ErrorMeasure {
    const { count } = this.#absolute;
    const { exact, shape } = this.#units;
    return {
      elements: count,
      nonFinite: this.#nonFinite,
      absolute: this.#absolute.measure(),
      relative: this.#relative.measure(),
      ulps: this.#ulps.measure(),
      outward: this.#outward / Math.max(count, 1),
      worst:
        this.#worst < 0
          ? null
          : {
              ...elementAt(shape, this.#worst),
              error: this.#worstError,
              exact: exact[this.#worst],
            },
    };
  }
}

/** An error of LSEs over all rows, in units of natural logarithm. */
export interface LseMeasure extends Spread {
  /** Rows that were measured: those in which the LSE and the exact one are finite. */
  readonly rows: number;
  /** Rows in which one of both is not finite; rows without keys, where both are −∞, count nowhere. */
  readonly nonFinite: number;
}

/** An error of LSEs being measured, row by row. */
export class LseMeter {
  readonly #errors = new RunningSpread();
  #nonFinite = 0;

  add(lse: number, exact: number): void {
    if (lse === -Infinity && exact === -Infinity) return;
    const error = lse - exact;
    if (Number.isFinite(error)) this.#errors.add(error);
    else this.#nonFinite++;
  }

  measure(): LseMeasure {
    return { rows: this.#errors.count, nonFinite: this.#nonFinite, ...this.#errors.measure() };
  }
}
