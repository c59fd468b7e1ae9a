import {
  formats,
  isBeyondFloat32,
  smallestSubnormal,
  unitRoundoff,
  type FormatName,
} from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { largestScore32, roundoff32, scaleErrorOf, type KernelArithmetic } from '../arithmetic.js';

/** Error of exp, tanh and log rounded once from fp64, whose own functions are within an ulp. */
const roundedOnce = roundoff32 * (1 + 2 ** -20);

/**
 * The arithmetic of the textbook kernel (kernels/naive): everything fp32, one operation after the
 * other, with scores and weights rounded to `intermediate` between the passes.
 * @throws RequestError for inputs that fp32 does not hold, which the kernel rounds
 */
export function naiveArithmetic(problem: Problem, intermediate: FormatName): KernelArithmetic {
  for (const name of ['q', 'k', 'v'] as const)
    if (isBeyondFloat32(problem[name]))
      throw new RequestError(
        `${name} is ${problem[name].scales === undefined ? problem[name].format : 'scaled by factors'}, which this kernel rounds to fp32: there are no bounds; give fp32 or shorter`,
      );
  if (problem.sink?.logits.format === 'fp64')
    throw new RequestError(
      'the sink is fp64, which this kernel rounds to fp32: there are no bounds; give fp32 or shorter',
    );
  const scaleError = scaleErrorOf(problem.scale);
  const isAdded = problem.bias !== undefined || problem.alibiSlopes !== undefined;
  const isRounded = intermediate !== 'fp32';
  const stored = isRounded ? unitRoundoff(formats[intermediate]) : 0;
  return {
    description: `textbook attention with ${intermediate} between its passes`,
    scores: { kind: 'sequential' },
    scaleError,
    // Well below the largest finite number, so that no error of a score reaches it.
    largestScore: Math.min(largestScore32, formats[intermediate].maxFinite * (1 - 2 ** -6)),
    scoreLimit: Infinity,
    exponent: {
      // The subtraction of the maximum.
      ofDistance: roundoff32,
      // The product with the scale, and the numbers written to memory before and after it; the sum with the addend, written
      // too.
      ofScore:
        (roundoff32 + Math.abs(scaleError) + 2 * stored + (isAdded ? roundoff32 + stored : 0)) *
        (1 + 2 ** -6),
      // Bias and ALiBi are rounded together.
      ofAddend: roundoff32 * (1 + 2 ** -6),
      common: 0,
      // A quotient, a tanh, a product, and the numbers written to memory; tanh has a slope of 1 at
      // most.
      ofSoftcap:
        problem.softcap === null
          ? 0
          : (3 * roundoff32 + scaleErrorBound(problem.softcap) + stored) * (1 + 2 ** -6),
      // Half a subnormal each time that a score is written: raw, scaled, capped, with the addend; and once for the
      // addend, in fp32.
      absolute:
        (Math.abs(problem.scale) + (problem.softcap === null ? 1 : 2) + (isAdded ? 2 : 0)) *
        (smallestSubnormal(formats[intermediate]) / 2) *
        Math.LOG2E *
        (1 + 2 ** -6),
    },
    exponential: {
      hardware: roundedOnce,
      polynomial: 0,
      polynomialMean: 0,
      polynomialColumns: [],
    },
    maximum: { kind: 'whole-row' },
    weightFormat: intermediate,
    overflow: 'fault',
    values: { kind: 'sequential' },
    rowSumAdditions: 0,
    rowSumAddition: roundoff32,
    rowSumRounded: false,
    partials: 0,
    finish: { normalise: roundoff32, logarithm: roundedOnce, elementwise: roundoff32 },
    // The factor is rounded once, and the product with it.
    ...(problem.dropout === undefined
      ? {}
      : { dropout: { roundings: 1, factor: 2 * roundoff32 * (1 + 2 ** -6) } }),
    outputFormat: problem.q.format,
    outputRounding: 'nearest',
    largestSum: 2 ** 126,
    underflow: { weights: 2 ** -149, sums: 2 ** -149 },
  };
}

/** A cap that is rounded to fp32 enters twice. */
function scaleErrorBound(cap: number): number {
  return 2 * Math.abs(scaleErrorOf(cap));
}
