import type { RoundingDomain } from '../domains/index.js';
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
  const shares = new Map<string, number>();
  let [sampled, squares, unattributed] = [0, 0, 0];
  for (const at of sampleOf(known.length, most)) {
    const found = rounding.sharesOf(values[known[at]]);
    if (found === null) continue;
    sampled++;
    squares += found.error * found.error;
    let whole = 0;
    for (const [operation, part] of found.parts) {
      whole += part;
      const { site } = trace.operations[operation];
      shares.set(site, (shares.get(site) ?? 0) + part * found.error);
    }
    if (found.error !== 0)
      unattributed = Math.max(unattributed, Math.abs(whole - found.error) / Math.abs(found.error));
  }
  for (const [site, share] of shares) shares.set(site, squares === 0 ? 0 : share / squares);
  const rms = Math.sqrt(sum / finite);
  return { sampled, without, worst, worstElement, rms, largest, shares, unattributed };
}
