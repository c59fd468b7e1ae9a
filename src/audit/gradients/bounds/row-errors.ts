import type { AttentionReference } from '../../../../oracles/index.js';
import { decodeTensor, formats, unitRoundoff } from '../../../formats/index.js';
import type { Problem, Tensor } from '../../../problem/index.js';
import { internalBound, KernelBound, outputRounding, type RowBound } from '../../bounds/index.js';
import { resolvePremises } from '../../premises/resolve-premises.js';
import type { GradientPremises } from './gradient-premises.js';
import type { StoredForward } from './group-bounds.js';
import type { PairArithmetic } from './pair-arithmetic.js';
import { meanRounding, type Pair, type RowErrors } from './pair-errors.js';

/** Sums over the keys of a row that its errors follow from. */
export interface RowSums {
  /** Σ P|dP| and Σ P²dP². */
  size: number;
  squares: number;
  /** Σ of what P and dP may be off by, times the other: at worst, and what of it does not average out. */
  errors: number;
  typical: number;
}

/** Sums of nothing. */
export function emptyRowSums(): RowSums {
  return { size: 0, squares: 0, errors: 0, typical: 0 };
}

/** Adds a pair that is weighed. */
export function addToRow(sums: RowSums, pair: Pair): void {
  const { weight, weightError, derivativeError } = pair;
  const size = Math.abs(pair.derivative);
  sums.size += weight * size;
  sums.squares += (weight * size) ** 2;
  sums.errors += weightError * (size + derivativeError) + weight * derivativeError;
  sums.typical += pair.typicalWeight * size + weight * pair.typicalDerivative;
}

/** What makes the errors of rows: see `createRowErrors`. */
export interface RowErrorsOf {
  /** Whether `finish` needs the sums: D's error is known without them where it is made of an O that is given. */
  readonly needsSums: boolean;
  /** Before the keys are walked over: all that `weighPair` needs. */
  readonly begin: (row: number, numbers: RowNumbers) => RowErrors;
  /** With what the first walk over the keys has summed. */
  readonly finish: (row: number, begun: RowErrors, sums: RowSums, dout: Float64Array) => RowErrors;
}

/** What is known of a row from its operands and from the oracle. */
export interface RowNumbers {
  readonly queryNorm: number;
  readonly doutNorm: number;
  /** D with its radius. */
  readonly mean: number;
  readonly meanRadius: number;
}

/** An error of D: at worst, what of it does not average out, the variance of the rest. */
interface MeanError {
  readonly worst: number;
  readonly typical: number;
  readonly variance: number;
}

/** Whichever is larger of each. */
function larger(a: MeanError, b: MeanError): MeanError {
  return {
    worst: Math.max(a.worst, b.worst),
    typical: Math.max(a.typical, b.typical),
    variance: Math.max(a.variance, b.variance),
  };
}

/** NaN, of what is not to be known, is as bad as ∞. */
function orInfinite(x: number): number {
  return Number.isNaN(x) ? Infinity : x;
}

/** `lse-input` and `delta`: the errors that all pairs of a row share. Theorems 2 and 3 of docs/bounds-backward.md. */
export function createRowErrors(
  {
    problem,
    reference,
    premises,
    given,
  }: {
    readonly problem: Problem;
    readonly reference: AttentionReference;
    readonly premises: GradientPremises;
    readonly given: StoredForward;
  },
  arithmetic: PairArithmetic,
): RowErrorsOf {
  const { vDim } = reference.shape;
  const { lse, out } = reference.quantities;
  const isWritten = arithmetic.scoreRounding > 0;
  const forward = new KernelBound(
    problem,
    reference,
    premises.o,
    resolvePremises(problem, premises.o, isWritten ? { scores: 'input' } : {}),
  );
  const isLseOfAll = problem.sink === undefined || problem.sink.inLse;
  const storedLse = given.lse !== null && isLseOfAll ? decodeTensor(given.lse) : null;
  const isUsed = premises.delta === 'stored-output';
  const { elementwise, products, typicalProducts, overKeys, underflow, exponential } = arithmetic;
  const outFormat = formats[premises.o];

  /** The sum dO·O of the stored O: what it is off D by, and its own error. */
  function ofStored(stored: Tensor, row: number, dout: Float64Array, mean: number) {
    const values = decodeTensor(stored, row * vDim, (row + 1) * vDim);
    let sum = 0;
    let size = 0;
    for (let c = 0; c < vDim; c++) {
      sum += dout[c] * values[c];
      size += Math.abs(dout[c] * values[c]);
    }
    return {
      shift: sum - mean,
      worst: products * size + 2 ** 16 * underflow,
      typical: typicalProducts * size + 2 ** 16 * underflow,
    };
  }

  /** dO·O of an O that is not known: what any correct forward pass may have stored. */
  function ofAnyOutput(row: number, sums: RowSums, dout: Float64Array): MeanError {
    const bound = forward.row(row);
    const u = bound.weightRounding;
    let worst = 0;
    let typical = 0;
    let variance = 0;
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
      typical += size * ((overKeys + 4 * elementwise) * Math.abs(value) + bound.floor);
      variance += (size * half) ** 2 / 3;
      // The sum itself.
      worst += size * products * (Math.abs(value) + error + half);
      typical += size * typicalProducts * Math.abs(value);
    }
    const isRounded = unitRoundoff(outFormat) > elementwise;
    return {
      worst: worst + (u + 2 * bound.weight) * sums.size + 2 ** 16 * underflow,
      typical: typical + 2 * (bound.typicalWeight - exponential) * sums.size + 2 ** 16 * underflow,
      variance:
        variance +
        (isRounded ? meanRounding * u ** 2 : 0) * sums.squares +
        exponential ** 2 * sums.squares,
    };
  }

  /** Σ P dP of the kernel's own P and dP. */
  function ofWeights(sums: RowSums, { weight, typicalWeight }: RowErrors): MeanError {
    const { weightRounding, productRounding } = arithmetic;
    const ofSum = overKeys + 4 * elementwise;
    const ofTypicalSum = Math.sqrt(reference.shape.keys) * premises.accumulation + 4 * elementwise;
    const random = meanRounding * (weightRounding ** 2 + productRounding ** 2) + exponential ** 2;
    return {
      worst:
        sums.errors +
        (weight + ofSum + weightRounding) * (sums.size + sums.errors) +
        2 ** 16 * underflow,
      typical: sums.typical + (typicalWeight + ofTypicalSum) * sums.size + 2 ** 16 * underflow,
      variance: random * sums.squares,
    };
  }

  /**
   * What of the LSE's bound is systematic: the exponentials' errors average out over the keys, and those of the dot products and of
   * the row sum's additions walk at random.
   */
  function typicalLse({ lse, weight, typicalWeight, keys, addition }: RowBound): number {
    const ofAdditions = (keys - Math.sqrt(keys)) * addition;
    return Math.max(0, lse - weight + typicalWeight - exponential - ofAdditions);
  }

  return {
    needsSums: !(isUsed && given.out !== null),
    begin: (row, { queryNorm, doutNorm, mean, meanRadius }) => {
      const bound = forward.row(row);
      const exact = lse.values[row];
      const ofForward = orInfinite(Math.expm1(Math.min(bound.lse, 700)));
      const ofTypical = orInfinite(Math.expm1(Math.min(typicalLse(bound), 700)));
      const shift =
        storedLse === null ? 0 : orInfinite(Math.expm1(Math.min(exact - storedLse[row], 700)));
      const isKnown = storedLse !== null && isUsed && shift < Infinity;
      const ofStoredLse = shift === Infinity ? Infinity : Math.abs(shift);
      return {
        queryNorm,
        doutNorm,
        denominator: reference.denominator[row],
        mean,
        weightShift: isKnown ? shift : 0,
        meanShift: 0,
        weight: isKnown ? 2 * lse.radius[row] : Math.max(ofForward, ofStoredLse),
        typicalWeight: isKnown ? 2 * lse.radius[row] : Math.max(ofTypical, ofStoredLse),
        worstMean: meanRadius,
        typicalMean: meanRadius,
        meanVariance: 0,
      };
    },
    finish: (row, begun, sums, dout) => {
      const { mean } = begun;
      const stored = given.out === null ? null : ofStored(given.out, row, dout, mean);
      if (isUsed && stored !== null)
        return {
          ...begun,
          // Nothing is known of a row whose O is infinite or NaN.
          meanShift: stored.shift,
          worstMean: begun.worstMean + stored.worst,
          typicalMean: begun.typicalMean + stored.typical,
        };
      const ofOutput =
        stored === null
          ? ofAnyOutput(row, sums, dout)
          : {
              worst: orInfinite(Math.abs(stored.shift) + stored.worst),
              typical: orInfinite(Math.abs(stored.shift) + stored.typical),
              variance: 0,
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
        meanVariance: found.variance,
      };
    },
  };
}
