import { describeProblem } from '../../../properties/index.js';
import {
  attentionGradients,
  levels,
  type Accuracy,
  type Gradient,
  type GradientOracleOptions,
} from '../../../oracles/index.js';
import { formats, ulp } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import type { Mpfr } from '../mpfr.js';
import { withReferenceGradients, type ReferenceGradient } from './reference-gradients.js';

/** Errors as shares of their radii, and radii in 2^-53 of what terms add up to, by gradient. */
export class GradientUse {
  readonly #shares = new Map<string, number[]>();
  readonly #widths = new Map<string, number[]>();
  readonly #levels = new Map<string, number>();

  add(name: string, share: number, width: number): void {
    const push = (map: Map<string, number[]>, value: number) =>
      map.set(name, [...(map.get(name) ?? []), value]);
    push(this.#shares, share);
    push(this.#widths, width);
  }

  countRow(level: string): void {
    this.#levels.set(level, (this.#levels.get(level) ?? 0) + 1);
  }

  get levels(): Record<string, number> {
    return Object.fromEntries(this.#levels);
  }

  summary(): Record<string, { elements: number; largest: number; median: number; width: number }> {
    const middle = (values: readonly number[]) =>
      Float64Array.from(values).sort()[values.length >> 1] ?? 0;
    return Object.fromEntries(
      Array.from(this.#shares, ([name, shares]) => [
        name,
        {
          elements: shares.length,
          largest: shares.reduce((a, b) => Math.max(a, b), 0),
          median: middle(shares),
          width: middle(this.#widths.get(name) ?? []),
        },
      ]),
    );
  }
}

function check(
  name: string,
  gradient: Gradient,
  reference: ReferenceGradient,
  use: GradientUse,
): void {
  if (gradient.values.length !== reference.length)
    throw new Error(`${name} has ${gradient.values.length} elements for ${reference.length}`);
  const largest = gradient.magnitude.reduce((most, x) => Math.max(most, x), 0);
  for (let at = 0; at < reference.length; at++) {
    const [value, radius] = [gradient.values[at], gradient.radius[at]];
    if (!reference.isTouched(at) && (value !== 0 || radius !== 0))
      throw new Error(`${name}[${at}] = ${value} ± ${radius}, but nothing adds to it`);
    const distance = reference.distance(at, value);
    const ofReference = 2 ** -330 * reference.magnitude(at);
    if (!(distance <= radius + ofReference))
      throw new Error(
        `${name}[${at}] = ${value} is off by ${distance}, radius ${radius}, exact ${reference.value(at)}`,
      );
    const exact = reference.magnitude(at);
    const negligible = 2 ** -160 * largest + 2 ** -900;
    if (!(Math.abs(gradient.magnitude[at] - exact) <= 2 ** -30 * exact + 8 * radius + negligible))
      throw new Error(
        `the magnitude of ${name}[${at}] is ${gradient.magnitude[at]}, exact ${exact}`,
      );
    if (radius > ofReference)
      use.add(name, distance / radius, radius / (2 ** -53 * (reference.terms(at) + 2 ** -900)));
  }
}

/** Throws unless radii are as small as they were asked to be, but for what counts as underflow. */
function checkAccuracy(
  name: string,
  { values, radius, magnitude }: Gradient,
  wanted: Accuracy,
): void {
  const largest = magnitude.reduce((most, x) => Math.max(most, x), 0);
  const negligible = 2 ** -160 * largest + 2 ** -900;
  const format = formats[wanted.outputFormat];
  radius.forEach((r, at) => {
    const size = Math.abs(values[at]);
    const allowed = Math.max(
      wanted.ulpFraction * ulp(format, Math.min(size, format.maxFinite)),
      wanted.magnitudeFraction * magnitude[at],
      2 ** -52 * size,
      2 ** -1040,
    );
    if (!(r <= allowed * (1 + 2 ** -10) + negligible))
      throw new Error(`${name}[${at}] = ${values[at]} has radius ${r}, wanted ${allowed}`);
  });
}

/** Throws unless every gradient that the oracle finds is within its radius of MPFR's. */
export function assertGradients(
  mpfr: Mpfr,
  problem: Problem,
  dout: Tensor,
  options: GradientOracleOptions,
  use: GradientUse,
): void {
  const found = attentionGradients(problem, dout, options);
  const { accuracy } = options;
  if (accuracy !== undefined)
    for (const name of ['dq', 'dk', 'dv'] as const)
      if (found[name] !== null) checkAccuracy(name, found[name], accuracy);
  found.level.forEach((level) => use.countRow(levels[level]));
  withReferenceGradients(mpfr, problem, dout, (reference) => {
    for (const name of ['dq', 'dk', 'dv', 'dbias', 'dsink', 'mean'] as const) {
      const gradient = found[name];
      if (gradient === null) continue;
      try {
        check(name, gradient, reference[name], use);
      } catch (error) {
        throw new Error(`${String(error)}\n${describeProblem(problem)}`);
      }
    }
  });
}
