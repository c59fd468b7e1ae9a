import type { ProjectionFormat } from '../../../oracles/index.js';
import { formats, type FormatName } from '../../formats/index.js';
import { NearlyEqual } from './error-pool.js';

/** Query rows per tile in the tile scope. */
export const structureTileRows = 128;

/** Query rows that a walk over the weights is at work on at once. */
export const walkRows = 64;

/** The most steps of an octave that weights are told apart by, in bits. */
const finestWeights = 7;

/**
 * Weights within an ulp of the format that P is rounded to, or within 2^-7, are taken to round alike;
 * below 2^-40 all of them.
 */
export function weightGroups(format: FormatName): NearlyEqual {
  return new NearlyEqual(Math.min(formats[format].precision - 1, finestWeights), -40, 0);
}

/** The most significant bits of a format beside whose roundings those of fp32 are nothing. */
const mostOfCoarse = 12;

/**
 * What the projections of values are computed in. Roundings of P and of outputs to so few bits are some 2^12 times as large as what
 * fp32 leaves out: the roundings of P times projections off by 2^-17 of Σ|X||v|, beside those of outputs, which are of Σ|X||O|.
 */
export function projectionFormat(weights: FormatName, outputs: FormatName): ProjectionFormat {
  const isCoarse = (name: FormatName) => formats[name].precision <= mostOfCoarse;
  return isCoarse(weights) && isCoarse(outputs) ? 'fp32' : 'fp64';
}

/** Outputs that agree to an eighth of an ulp are taken to round alike. */
export function outputGroups(format: FormatName): NearlyEqual {
  return new NearlyEqual(Math.min(formats[format].precision + 2, 13), -40, 20);
}

/**
 * z such that a sub-Gaussian statistic exceeds z standard deviations with probability at most
 * `falseAlarmRate` in any of `count` tests (2·exp(−z²/2) each).
 */
export function alarmDeviations(count: number, falseAlarmRate: number): number {
  return Math.sqrt(2 * Math.log((2 * Math.max(count, 1)) / falseAlarmRate));
}
