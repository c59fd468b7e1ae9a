import type { RoundingDomain, RoundingShares } from '../domains/index.js';
import { decidedValue, type Trace } from '../trace/index.js';
import type { OutputValues } from './output-values.js';

/** An output's error, and the places of the program that made it. */
export interface RoundingProfile {
  /** Elements whose error was attributed, and elements that were not, since their bits or real values are not finite. */
  readonly sampled: number;
  readonly without: number;
  /** The largest |bits − real value| of all elements, its element, and the root of the mean square. */
  readonly worst: number;
  readonly worstElement: number;
  readonly rms: number;
  /** The largest |real value|. */
  readonly largest: number;
  /** Σ part · error ÷ Σ error² over the sample, by place; the shares sum to 1. */
  readonly shares: ReadonlyMap<string, number>;
  /** The largest |sum of the parts − error| ÷ |error| of the sample. */
  readonly unattributed: number;
}

/** (√5 − 1) ÷ 2, whose multiples modulo 1 are spread as evenly as can be, across rows and columns alike. */
const golden = (Math.sqrt(5) - 1) / 2;

/** Numbers of elements to attribute: all, or up to `most` that are spread over all. */
function sampleOf(count: number, most: number): readonly number[] {
  if (count <= most) return Array.from({ length: count }, (_, i) => i);
  const places = Array.from({ length: most }, (_, i) =>
    Math.floor((((i + 0.5) * golden) % 1) * count),
  );
  return [...new Set(places)];
}

/** Errors of this many operands are passed on for values one by one; the rest of a sample shares what its values have in common. */
const mostPasses = 2 ** 24;

/** Σ part · error ÷ Σ error² over values, by place, and what of an error is left over. */
function attribute(
  trace: Trace,
  rounding: RoundingDomain,
  values: readonly number[],
): Pick<RoundingProfile, 'shares' | 'unattributed'> {
  const shares = new Map<string, number>();
  let [squares, unattributed] = [0, 0];
  const take = ({ error, parts }: RoundingShares, times: number): void => {
    squares += times * error;
    let whole = 0;
    for (const [operation, part] of parts) {
      whole += part;
      const { site } = trace.operations[operation];
      shares.set(site, (shares.get(site) ?? 0) + part * times);
    }
    if (error !== 0)
      unattributed = Math.max(unattributed, Math.abs(whole - error) / Math.abs(error));
  };
  const end = rounding.passes + mostPasses;
  let at = 0;
  for (; at < values.length && rounding.passes < end; at++) {
    const found = rounding.sharesOf(values[at]);
    if (found !== null) take(found, found.error);
  }
  const rest = values.slice(at);
  const errors = rest.map((value) => rounding.errorOf(value));
  take(rounding.sharesOfSum(rest, errors), 1);
  for (const [site, share] of shares) shares.set(site, squares === 0 ? 0 : share / squares);
  return { shares, unattributed };
}

/**
 * The rounding error of an output, by the places of the program that made it; null where no element has an error.
 *
 * @param most elements whose error is attributed
 */
export function profileRounding(
  trace: Trace,
  rounding: RoundingDomain,
  { values }: OutputValues,
  most: number,
): RoundingProfile | null {
  // Copies of inputs have no error, and elements that are not written are such.
  const isMade = (value: number) =>
    value > decidedValue && trace.operationOf(value).origin !== 'input';
  const known = [...values.keys()].filter((i) => isMade(values[i]));
  let [worst, worstElement, sum, largest, without] = [0, -1, 0, 0, 0];
  for (const i of known) {
    const error = Math.abs(rounding.errorOf(values[i]));
    if (!Number.isFinite(error)) {
      without++;
      continue;
    }
    if (error > worst) [worst, worstElement] = [error, i];
    sum += error * error;
    largest = Math.max(largest, Math.abs(trace.numberOf(values[i])));
  }
  const finite = known.length - without;
  if (finite === 0) return null;
  const sample = sampleOf(known.length, most)
    .map((at) => values[known[at]])
    .filter((value) => Number.isFinite(rounding.errorOf(value)));
  const rms = Math.sqrt(sum / finite);
  const attributed = attribute(trace, rounding, sample);
  return { sampled: sample.length, without, worst, worstElement, rms, largest, ...attributed };
}
