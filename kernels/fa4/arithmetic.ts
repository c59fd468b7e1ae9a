import {
  hardwareExp2Error,
  hardwareExp2Flush,
  hardwareLog2Error,
  hardwareReciprocalError,
} from '../../src/hardware/index.js';
import type { FormatName } from '../../src/formats/index.js';
import { problemShape, type Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import {
  largestScore32,
  roundoff32,
  type KernelArithmetic,
  type SumArithmetic,
} from '../arithmetic.js';
import type { PremiseDeclaration } from '../premise-declaration.js';
import type { PolynomialDegree } from '../online-softmax/exp2-polynomial.js';
import { polynomialColumns } from './exp2-tuning.js';
import {
  exponentScale,
  fa4Configuration,
  fa4TensorCore,
  type Fa4Configuration,
} from './configuration.js';
import type { Fa4Format } from './formats.js';

/** The error of FlashAttention-4's software exp2 of one degree, relative to 2^x. */
export interface PolynomialError {
  /** Largest magnitude. */
  readonly largest: number;
  /** Mean over all fractions of x, signed. */
  readonly mean: number;
}

/**
 * By degree: the largest error over all fp32 numbers of [−126, 0] (`flashproof profile exp2`, rounded
 * up), and the mean of p(f)/2^f − 1 over f in [0, 1]. An exponent above 0 has the fraction of one below,
 * and so its error, up to 127, where the kernel's contract ends.
 */
export const polynomialErrors: Readonly<Record<PolynomialDegree, PolynomialError>> = {
  1: { largest: 3.87515e-2, mean: 1.593e-2 },
  2: { largest: 2.07558e-3, mean: -8.983e-8 },
  3: { largest: 8.76876e-5, mean: 8.237e-6 },
  4: { largest: 3.04866e-6, mean: -3.167e-8 },
  5: { largest: 1.55674e-7, mean: 3.36e-9 },
};

/** Lanes of the four packed accumulators of the row sum, and the levels of their tree. */
const rowSumLanes = 8;
const rowSumTree = 3;

function tensorCoreSums(
  { architecture }: Fa4Configuration,
  format: FormatName,
): SumArithmetic & { readonly kind: 'fused' } {
  const { productsPerSum, alignedFractionBits, resultFractionBits } = fa4TensorCore(
    architecture,
    format as Fa4Format,
  );
  return { kind: 'fused', productsPerSum, alignedFractionBits, resultFractionBits };
}

/**
 * The arithmetic of FlashAttention-4's forward in the configuration that it would run the problem in,
 * with what `overrides` fixes. Sources: the order of operations in kernels/online-softmax/plain/plain-tile.ts,
 * units and tensor cores as in `fa4Evidence`.
 * @throws RequestError for a problem that the kernel does not take and a configuration out of range.
 */
export function fa4Arithmetic(
  problem: Problem,
  overrides: Partial<Fa4Configuration> = {},
): KernelArithmetic {
  const configuration = fa4Configuration(problem, problemShape(problem), overrides);
  const { exp2, rescaleThreshold, maxOffset, blockKeys, architecture } = configuration;
  if (configuration.splits > 1)
    throw new RequestError(
      `splits is ${configuration.splits}; there are no bounds for a combine yet: leave it at 1`,
    );
  for (const [name, value] of Object.entries(configuration.descale))
    if (value !== 1)
      throw new RequestError(
        `descale.${name} is ${value}; bounds are for the inputs as they are: leave it at 1`,
      );
  const exactScale = problem.scale * Math.LOG2E;
  const scaleError =
    exactScale === 0 ? 0 : exponentScale(problem.scale, configuration) / exactScale - 1;
  const polynomial = polynomialErrors[exp2.degree];
  return {
    description: `fa4 (${architecture}, rescale threshold ${rescaleThreshold})`,
    scores: tensorCoreSums(configuration, problem.q.format),
    scaleError,
    largestScore: largestScore32,
    scoreLimit: Infinity,
    exponent: {
      // One rounding of the fused multiply-add, and that of c.
      ofDistance: roundoff32 + Math.abs(scaleError),
      ofScore: 0,
      common: roundoff32,
      ofSoftcap: 0,
      absolute: 0,
    },
    exponential: {
      hardware: hardwareExp2Error,
      polynomial: polynomial.largest,
      polynomialMean: polynomial.mean,
      polynomialColumns: polynomialColumns(configuration),
    },
    maximum: { kind: 'online', blockKeys, threshold: rescaleThreshold, offset: maxOffset },
    weightFormat: problem.v.format,
    overflow: 'bounded',
    values: tensorCoreSums(configuration, problem.v.format),
    rowSumAdditions: blockKeys / rowSumLanes + rowSumTree,
    rowSumAddition: roundoff32,
    rowSumRounded: false,
    partials: 0,
    finish: {
      normalise: hardwareReciprocalError + roundoff32,
      logarithm: hardwareLog2Error,
      elementwise: roundoff32,
    },
    outputFormat: configuration.outFormat,
    outputRounding: 'nearest',
    largestSum: 2 ** 126,
    // Tensor cores and fp32 additions keep subnormals; the exponential does not.
    underflow: { weights: hardwareExp2Flush, sums: 2 ** -149 },
  };
}

/** What the model declares beside its arithmetic: an exponential that is worse than any kernel's may be. */
export function fa4Premises(settings: ReadonlyMap<string, string>): PremiseDeclaration {
  const degree = settings.get('exp2.degree') ?? '3';
  const known = Object.entries(polynomialErrors).find(([name]) => name === degree);
  // Degrees from 3 on are as good as any kernel's.
  return known === undefined || known[1].largest <= 2 ** -13.4
    ? {}
    : { exponential: known[1].largest };
}
