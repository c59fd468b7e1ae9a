import {
  fa4Configuration,
  fragmentColumns,
  usesPolynomial,
  type Fa4Configuration,
} from '../../../kernels/index.js';
import type { FormatName } from '../../formats/index.js';
import { findTensorCoreArithmetic } from '../../hardware/index.js';
import { problemShape, type Problem } from '../../problem.js';
import { hardwareExp2Error, hardwareExp2Flush } from './exp2-hardware.js';
import { polynomialErrors } from './exp2-polynomial.js';
import type { KernelArithmetic, SumArithmetic } from './kernel-arithmetic.js';
import { hardwareLog2Error, hardwareReciprocalError } from './normalise.js';
import { scaleErrorOf } from './scale-error.js';
import { roundoff32 } from './sum-error.js';

/** Lanes of the four packed accumulators of the row sum, and the levels of their tree. */
const rowSumLanes = 8;
const rowSumTree = 3;

function tensorCoreSums(
  { architecture }: Fa4Configuration,
  format: FormatName,
): SumArithmetic & { readonly kind: 'fused' } {
  const { productsPerSum, alignedFractionBits, resultFractionBits } = findTensorCoreArithmetic({
    instruction: architecture === 'sm_90' ? 'wgmma' : 'tcgen05.mma',
    architecture,
    a: format as 'bf16' | 'fp16',
  });
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
 * with what `overrides` fixes. Sources: the order of operations in kernels/fa4/forward-plain-tile.ts,
 * units and tensor cores as in `fa4Evidence`.
 * @throws RequestError for a problem that the kernel does not take and a configuration out of range.
 */
export function fa4Arithmetic(
  problem: Problem,
  overrides: Partial<Fa4Configuration> = {},
): KernelArithmetic {
  const configuration = fa4Configuration(problem, problemShape(problem), overrides);
  const { exp2, rescaleThreshold, maxOffset, blockKeys, architecture } = configuration;
  const scaleError = scaleErrorOf(problem.scale * Math.LOG2E);
  const polynomial = polynomialErrors[exp2.degree];
  return {
    description: `fa4 (${architecture}, rescale threshold ${rescaleThreshold})`,
    scores: tensorCoreSums(configuration, problem.q.format),
    scaleError,
    exponent: {
      // One rounding of the fused multiply-add, and that of c.
      ofDistance: roundoff32 + Math.abs(scaleError),
      ofScore: 0,
      common: roundoff32,
      ofSoftcap: 0,
    },
    exponential: {
      hardware: hardwareExp2Error,
      polynomial: polynomial.largest,
      polynomialMean: polynomial.mean,
      polynomialColumns: polynomialColumns(configuration),
    },
    maximum: { kind: 'online', blockKeys, threshold: rescaleThreshold, offset: maxOffset },
    weightFormat: problem.v.format,
    values: tensorCoreSums(configuration, problem.v.format),
    rowSumAdditions: blockKeys / rowSumLanes + rowSumTree,
    rescales: true,
    finish: {
      normalise: hardwareReciprocalError + roundoff32,
      logarithm: hardwareLog2Error,
      elementwise: roundoff32,
    },
    outputFormat: problem.q.format,
    // Tensor cores and fp32 additions keep subnormals; the exponential does not.
    underflow: { weights: hardwareExp2Flush, sums: 2 ** -149 },
  };
}
