import { exp2Coefficients, type PolynomialDegree } from '../../../kernels/index.js';
import {
  type ErrorAt,
  errorExtremes,
  largestRelativeError,
  type Minimax,
  minimaxExp2,
} from '../minimax.js';
import type { ArrayFunction } from '../../simd/index.js';
import {
  type CandidateName,
  createCandidates,
  degreeName,
  evidenceOf,
  polynomialDegrees,
  referenceReport,
} from '../functions.js';
import { reportCorners } from '../corners.js';
import type { Measure } from '../error-plan.js';
import { reportDomains } from '../error-report.js';
import { sweepErrors } from '../error-sweep.js';
import { valueOfBits } from '../float32-order.js';
import { exp2Cells, exp2Domains, softmaxDomain } from './input-cells.js';
import {
  type FunctionErrorProfile,
  type ProfileOptions,
  linearPanel,
  type Panel,
  plotsOf,
} from './profile.js';

/** The comparison of FlashAttention-4's polynomial of a degree with the best one. */
export interface MinimaxComparison {
  readonly degree: PolynomialDegree;
  /** The best polynomial with c0 = 1, as in FlashAttention-4's, and with c0 free. */
  readonly best: Minimax;
  readonly bestFree: Minimax;
  /** The largest relative error on [0, 1] of FlashAttention-4's coefficients in exact arithmetic. */
  readonly largestError: ErrorAt;
  readonly extremes: readonly ErrorAt[];
  /** The relative excess of FlashAttention-4's error over the best one. */
  readonly excess: number;
  /** The largest relative error in fp32 that the sweep found on [−126, 0]; null when not swept. */
  readonly float32Error: number | null;
  /** The part of that error that the polynomial does not explain: the rounding of the reduction and of the sums. */
  readonly rounding: number | null;
}

/**
 * The comparison for a degree.
 * @param float32Error the largest relative error of the fp32 results, if known
 */
export function compareWithMinimax(
  degree: PolynomialDegree,
  float32Error: number | null,
): MinimaxComparison {
  const coefficients = exp2Coefficients[degree];
  const best = minimaxExp2(degree, 'c0 = 1');
  const largestError = largestRelativeError(coefficients);
  const size = Math.abs(largestError.error);
  return {
    degree,
    best,
    bestFree: minimaxExp2(degree, 'free'),
    largestError,
    extremes: errorExtremes(coefficients),
    excess: size / best.largestError - 1,
    float32Error,
    rounding: float32Error === null ? null : float32Error - size,
  };
}

/** The exp2 instructions of the hardware; FlashAttention-4 runs the first, and the others are compared with it. */
export const hardwareExp2: readonly CandidateName[] = ['ex2.approx.ftz.f32', 'ex2.approx.f32'];

/** The formats, with their conversions, in which results of an exp2 are measured. */
export const exp2Measures: readonly Measure[] = [
  { rounding: { format: 'fp32', overflow: 'overflow' }, error: 'relative' },
  { rounding: { format: 'bf16', overflow: 'overflow' }, error: 'relative' },
  { rounding: { format: 'fp16', overflow: 'overflow' }, error: 'relative' },
  { rounding: { format: 'e4m3', overflow: 'saturate' }, error: 'relative' },
];

/** Number of exact results of a function at the integers from −126 to 127. */
interface IntegerResults {
  readonly name: CandidateName;
  readonly integers: number;
  readonly exact: number;
}

/** The profile of FlashAttention-4's exp2 beside the hardware's. */
export interface Exp2Profile extends FunctionErrorProfile {
  readonly technique: 'exp2';
  readonly integers: readonly IntegerResults[];
  readonly minimax: readonly MinimaxComparison[];
}

function exp2Panels({ from = -127, to = 128 }: { from?: number; to?: number }): Panel[] {
  const [low, high] = [Math.max(from, -127), Math.min(to, 128)];
  const whole = linearPanel('x', low, high);
  const hasOctave = low < -1 && high >= 0;
  return hasOctave ? [whole, linearPanel('x, one octave', -1, 0)] : [whole];
}

function integerResults(name: CandidateName, evaluate: ArrayFunction): IntegerResults {
  const integers = Float32Array.from({ length: 254 }, (_, i) => i - 126);
  const results = new Uint32Array(integers.length);
  evaluate(new Uint32Array(integers.buffer), results);
  const exact = [...results].filter((bits, i) => valueOfBits(bits) === 2 ** integers[i]).length;
  return { name, integers: integers.length, exact };
}

/**
 * Profiles FlashAttention-4's software exp2 in the requested degrees and the hardware's, at every fp32
 * input of the range.
 * @throws RequestError for a range without an input in (−127, 128)
 */
export async function profileExp2(options: ProfileOptions = {}): Promise<Exp2Profile> {
  const { degrees = polynomialDegrees, range = {}, architecture } = options;
  const candidates = [...hardwareExp2, ...degrees.map(degreeName)];
  const panels = exp2Panels(range);
  const draft = {
    candidates,
    reference: 'exp2',
    measures: exp2Measures,
    increasing: true,
    panels: panels.map(({ boundaries }) => boundaries),
  } as const;
  const sweep = await sweepErrors(draft, exp2Cells, range, options);
  const functions = createCandidates();
  const domains = reportDomains(sweep, exp2Domains, functions);
  const softmax = domains.find(({ label }) => label === softmaxDomain.label);
  const float32Error = (degree: PolynomialDegree): number | null => {
    const found = softmax?.functions.find(({ name }) => name === degreeName(degree));
    return found?.measures[0].largest[0]?.error ?? null;
  };
  return {
    technique: 'exp2',
    title: "2^x: FlashAttention-4's polynomials and the special function unit",
    range,
    functions: candidates.map((name) => evidenceOf(name, architecture)),
    reference: referenceReport('exp2'),
    domains,
    corners: reportCorners(sweep),
    integers: candidates.map((name) => integerResults(name, functions.get(name)!)),
    minimax: degrees.map((degree) => compareWithMinimax(degree, float32Error(degree))),
    plots: plotsOf(sweep, panels, 'relative error in fp32'),
    notes: [],
  };
}
