import {
  exponentScale,
  fa4Configuration,
  fa4TensorCore,
  fragmentColumns,
  usesPolynomial,
  type Fa4Configuration,
  type Fa4Format,
} from '../../../kernels/index.js';
import type { FormatName } from '../../formats/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { hardwareExp2Error, hardwareExp2Flush } from './exp2-hardware.js';
import { polynomialErrors } from './exp2-polynomial.js';
import type { KernelArithmetic, SumArithmetic } from './kernel-arithmetic.js';
import { hardwareLog2Error, hardwareReciprocalError } from './normalise.js';
import { largestScore32 } from '../premises.js';
import { roundoff32 } from './sum-error.js';

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

/** Which columns of a block the polynomial computes. */
function polynomialColumns({ exp2, blockKeys }: Fa4Configuration): boolean[] {
  const fragments = blockKeys / fragmentColumns;
  return Array.from({ length: blockKeys }, (_, j) =>
    usesPolynomial(exp2, Math.floor(j / fragmentColumns), j % fragmentColumns, fragments),
  );
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
