import type { FormatName } from '../formats/index.js';
import { formats, ulp } from '../formats/index.js';
import type { AttentionReference } from '../../oracles/index.js';
import { elementAt, type Coordinates } from '../audit/index.js';
import { RunningSpread, type Spread } from './running-spread.js';

/** An error over all elements of an output where it is finite. */
export interface ErrorMeasure {
  readonly elements: number;
  /** Elements that could not be measured. */
  readonly nonFinite: number;
  /** In the output's own unit. */
  readonly absolute: Spread;
  /** In units of Σ p|v| / Σ p of each element. */
  readonly relative: Spread;
  /** In ulps of the output's format at each element's exact value. */
  readonly ulps: Spread;
  /**
   * Mean of the relative error with the sign of the exact value: above 0 the error enlarges outputs,
   * below 0 it shrinks them, as truncation does.
   */
  readonly outward: number;
  /** Where the relative error is largest; null where there is no error. */
  readonly worst:
    (Required<Coordinates> & { readonly error: number; readonly exact: number }) | null;
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
