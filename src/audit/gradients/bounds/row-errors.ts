import { decodeTensor, formats, unitRoundoff, type FormatName } from '../../../formats/index.js';
import { internalBound, KernelBound, outputRounding, type RowBound } from '../../bounds/index.js';
import { resolvePremises } from '../../premises/resolve-premises.js';
import { createLseErrors, orInfinite, type BoundedRows } from './lse-errors.js';
import { meanRounding, type PairArithmetic, type SumErrors } from './pair-arithmetic.js';
import { partialSquares } from './pairs/partial-sums.js';
import type { RowSums } from './pairs/row-sums.js';
import { createStoredMean, deltaFormats } from './stored-mean.js';
import type { RowErrors } from './pairs/weighed-pairs.js';

/** Makes the errors of rows: see `createRowErrors`. */
export interface RowErrorsOf {
  /** Whether `finish` needs the sums: D's error is known without them where it is made of an O that is given. */
  readonly needsSums: boolean;
  /** Errors before the keys are walked over: all that `weighPairs` needs. */
  readonly begin: (row: number, mean: RowMean) => RowErrors;
  /** Errors with the sums of the first walk over the keys. */
  readonly finish: (row: number, begun: RowErrors, sums: RowSums, dout: Float64Array) => RowErrors;
}

/** D of a row, with its radius. */
export interface RowMean {
  readonly value: number;
  readonly radius: number;
}

/** An error of D: at worst, the part that does not average out, the variance of the rest. */
interface MeanError {
  readonly worst: number;
  readonly typical: number;
  /** The part that is the same share of D in all rows. */
  readonly common: number;
  readonly variance: number;
}

/** Whichever is larger of each. */
function larger(a: MeanError, b: MeanError): MeanError {
  return {
    worst: Math.max(a.worst, b.worst),
    typical: Math.max(a.typical, b.typical),
    common: Math.max(a.common, b.common),
    variance: Math.max(a.variance, b.variance),
  };
}

/** The largest rounding of a number that is known to within an error; ∞ where it may be beyond the largest of the format. */
function roundingOf(format: FormatName, value: number, error: number): number {
  return Math.abs(value) + error < formats[format].maxFinite
    ? outputRounding(format, value, error)
    : Infinity;
}

/** `lse-input` and `delta`: the errors that all pairs of a row share. Theorems 2 and 3 of docs/theory/bounds-backward.md. */
export function createRowErrors(of: BoundedRows, arithmetic: PairArithmetic): RowErrorsOf {
  const { problem, reference, premises, given } = of;
  const { vDim } = reference.shape;
  const { out } = reference.quantities;
  const isWritten = unitRoundoff(formats[premises.scores]) > arithmetic.elementwise;
  const forward = new KernelBound(
    problem,
    reference,
    premises.o,
    resolvePremises(problem, premises.o, isWritten ? { scores: 'input' } : {}),
  );
  const isUsed = premises.delta === 'stored-output';
  const { elementwise, elementwiseVariance, products, overKeys, underflow } = arithmetic;
  const isApart = arithmetic.tellsApart;
  const lseErrors = createLseErrors(of, forward, arithmetic);
  const outFormat = formats[premises.o];
  const needsSums = !(isUsed && given.out !== null && lseErrors.isStored);

  const meanOfStored = createStoredMean(premises, arithmetic);
  const short = deltaFormats(premises);

  /** The variance of the parts of a sum that are cut off, beside the part that all sums share. */
  function ofCutting({ toZero }: SumErrors, largest: number): number {
    return isApart ? (toZero * largest) ** 2 / 12 : 0;
  }

  /**
   * The largest error of D from errors of the forward's weights: from norms, or from the errors of the weights of these pairs.
   */
  function ofWeightErrors({ weight }: RowBound, { size, scatter, weightErrors }: RowSums): number {
    const ofNorms = 2 * weight * size;
    // A sink's weight has an error of its own.
    if (problem.sink !== undefined || !(weightErrors < 0.5)) return ofNorms;
    return Math.min(ofNorms, scatter / (1 - weightErrors));
  }

  /** The error of dO·O for an O that is not known: any that a correct forward pass may have stored. */
  function ofAnyOutput(row: number, sums: RowSums, dout: Float64Array, mean: number): MeanError {
    const bound = forward.row(row);
    const u = bound.weightRounding;
    let worst = 0;
    let variance = 0;
    let sizes = 0;
    let floors = 0;
    let written = 0;
    for (let c = 0; c < vDim; c++) {
      const at = row * vDim + c;
      const value = out.values[at];
      const magnitude = out.magnitude[at];
      const size = Math.abs(dout[c]);
      if (size === 0) continue;
      const error = internalBound(bound, value, magnitude, 2 * magnitude) + out.radius[at];
      const half = outputRounding(premises.o, value, error);
      const sumsOnly = bound.accumulation * magnitude + bound.normalisation * Math.abs(value);
      worst += size * (sumsOnly + half + bound.floor + out.radius[at]);
      floors += size * bound.floor;
      const walk = (overKeys.walk * (magnitude + Math.abs(value))) / 2;
      variance += size ** 2 * (half ** 2 / 3 + walk ** 2 + 4 * elementwiseVariance * value ** 2);
      // The sum itself.
      worst += size * products.worst * (Math.abs(value) + error + half);
      sizes += size * Math.abs(value);
      if (short.products !== null)
        written += roundingOf(premises.deltaProducts, size * value, size * (error + half));
    }
    worst += u * sums.size + ofWeightErrors(bound, sums) + 2 ** 16 * underflow;
    // For an O that is not known these may all be alike.
    if (short.sums !== null) written += roundingOf(premises.deltaSums, mean, worst + written);
    const isRounded = unitRoundoff(outFormat) > elementwise;
    return {
      worst: worst + written,
      typical:
        written +
        sums.typicalScatter +
        Math.abs(sums.commonScatter) +
        (isApart ? 0 : overKeys.toZero + products.toZero + elementwise) * sizes +
        floors +
        2 ** 16 * underflow,
      common: isApart ? overKeys.toZero + products.toZero + elementwise : 0,
      variance:
        variance +
        ofCutting(overKeys, sizes) +
        ofCutting(products, sizes) +
        sums.scatterVariance +
        ((products.walk * (sizes + Math.abs(mean))) / 2) ** 2 +
        (isRounded ? meanRounding * u ** 2 : 0) * sums.squares,
    };
  }

  /** The error of Σ P dP from the kernel's own P and dP. */
  function ofWeights(
    sums: RowSums,
    { weight, typicalWeight, commonWeight, weightVariance, mean }: RowErrors,
  ): MeanError {
    const { commonProducts, weightRounding } = arithmetic;
    const partials = Math.min(
      ((sums.size + Math.abs(mean)) / 2) ** 2,
      partialSquares(sums.largestProduct, sums.squares),
    );
    const ofTerms = overKeys.worst + 4 * elementwise + weightRounding;
    // The error that all P share multiplies D.
    return {
      worst:
        (1 + weight) * (sums.errors + ofTerms * (sums.size + sums.errors)) +
        weight * Math.abs(mean) +
        2 ** 16 * underflow,
      typical:
        sums.typical +
        Math.abs(sums.commonErrors) +
        (typicalWeight + Math.abs(commonWeight)) * Math.abs(mean) +
        (isApart ? 0 : overKeys.toZero + elementwise) * sums.size +
        2 ** 16 * underflow,
      common: isApart ? commonProducts + overKeys.toZero + elementwise : 0,
      variance:
        sums.variance +
        weightVariance * mean * mean +
        (meanRounding * weightRounding ** 2 + 4 * elementwiseVariance) * sums.squares +
        overKeys.walk * overKeys.walk * partials +
        ofCutting(overKeys, sums.largestProduct),
    };
  }

  return {
    needsSums,
    begin: (row, { value: mean, radius }) => {
      return {
        denominator: reference.denominator[row],
        mean,
        ...lseErrors.ofNorms(row),
        meanShift: 0,
        worstMean: radius,
        typicalMean: radius,
        commonMean: 0,
        meanVariance: 0,
      };
    },
    finish: (row, walked, sums, dout) => {
      const { mean } = walked;
      const begun = needsSums ? { ...walked, ...lseErrors.refine(row, walked, sums) } : walked;
      const stored =
        given.out === null
          ? null
          : meanOfStored(dout, decodeTensor(given.out, row * vDim, (row + 1) * vDim), mean);
      if (isUsed && stored !== null)
        return {
          ...begun,
          // Nothing is known of a row whose O is infinite or NaN.
          meanShift: stored.shift,
          worstMean: begun.worstMean + stored.worst,
          typicalMean: begun.typicalMean + stored.typical,
          commonMean: stored.common * (mean + stored.shift),
          meanVariance: stored.variance,
        };
      const ofOutput =
        stored === null
          ? ofAnyOutput(row, sums, dout, mean)
          : {
              worst: orInfinite(Math.abs(stored.shift) + stored.worst),
              typical: orInfinite(Math.abs(stored.shift) + stored.typical),
              common: stored.common,
              variance: orInfinite(stored.variance),
            };
      const found =
        premises.delta === 'stored-output'
          ? ofOutput
          : premises.delta === 'weights'
            ? ofWeights(sums, begun)
            : larger(ofOutput, ofWeights(sums, begun));
      return {
        ...begun,
        worstMean: begun.worstMean + found.worst,
        typicalMean: begun.typicalMean + found.typical,
        commonMean: found.common * mean,
        meanVariance: found.variance,
      };
    },
  };
}
