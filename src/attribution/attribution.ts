import type { AttributedKernel, AttributedPiece, LargestWeights } from '../../kernels/index.js';
import { decodeTensor, type FormatName, formats, round } from '../formats/index.js';
import { type Problem, problemShape, type ProblemShape } from '../problem/index.js';
import {
  type ErrorMeasure,
  ErrorMeter,
  type ErrorUnits,
  type LseMeasure,
  LseMeter,
  Projection,
} from './error-measure.js';
import type { RunPlan } from './tile-errors.js';

/**
 * The contribution of one technique to the kernel's error. Shares are of the sum of squares of the error
 * in units of Σ p|v|; a share is the projection of the technique's part on the whole, below 0 where it
 * works against the rest.
 */
export interface TechniqueAttribution {
  readonly technique: string;
  /** The error with this technique emulated and all others exact. */
  readonly alone: ErrorMeasure;
  /** The error of the LSE in that run. */
  readonly lse: LseMeasure;
  /** Its part in the whole error. */
  readonly whole: TechniquePart;
  /**
   * Its part in the error before the output is rounded, where small errors do not drown in elements
   * that happen to be rounded the other way; null for `output-round` itself.
   */
  readonly beforeRounding: TechniquePart | null;
}

/** A technique's part in an error. */
export interface TechniquePart {
  /** The change of the error when this technique becomes emulated after all others. */
  readonly last: ErrorMeasure;
  /** The error that is left with this technique exact and all others emulated. */
  readonly without: ErrorMeasure;
  /** The share that it adds after the techniques before it in the kernel: these shares sum to 1. */
  readonly share: number;
  /** The share of the technique alone: with the `interaction` these shares sum to 1. */
  readonly shareAlone: number;
}

/** 1 − Σ shareAlone: the excess of the error over the sum of the techniques alone; below 0 if it is smaller. */
export interface Interaction {
  readonly whole: number;
  readonly beforeRounding: number;
}

/** The error of `p-round` alone, in two parts that sum to it, and the effect of the first on the whole. */
export interface WeightRounding {
  /** The part from the largest weight of each row: none where that is exactly 1, as without a lag. */
  readonly largestWeight: ErrorMeasure;
  readonly otherWeights: ErrorMeasure;
  /** The kernel's error if it left the largest weight of each row unrounded and all else as it is. */
  readonly largestUnrounded: ErrorMeasure;
}

/** The lag of the maxima in use behind the rows' largest scores when the last block is done. */
export interface MaximumLag {
  readonly rows: number;
  /** Rows whose maximum lags. */
  readonly lagging: number;
  /** Mean lag of the lagging rows, in log2: their largest weight is 2^lag instead of 1. */
  readonly mean: number;
  readonly max: number;
}

/** A kernel's error on a problem, shared out among its techniques. JSON keeps all of it. */
export interface Attribution {
  /** The kernel model's name. */
  readonly kernel: string;
  /** Every setting of it with its value. */
  readonly settings: AttributedKernel['settings'];
  readonly shape: ProblemShape;
  readonly outputFormat: FormatName;
  /** Largest magnitude of the exact output, where finite. */
  readonly largestOutput: number;
  /** The kernel's error: every technique emulated. */
  readonly total: ErrorMeasure;
  /** The error before the output is rounded. */
  readonly beforeRounding: ErrorMeasure;
  /** The error with every technique exact: that of the attribution itself. */
  readonly exact: ErrorMeasure;
  /** The techniques, in the order in which they act. */
  readonly techniques: readonly TechniqueAttribution[];
  readonly interaction: Interaction;
  /** The error of the LSE with every technique emulated, and with every one exact. */
  readonly lse: { readonly total: LseMeasure; readonly exact: LseMeasure };
  /** The rounding of weights; null for a kernel that does not round them. */
  readonly weightRounding: WeightRounding | null;
  /** The lag; null for a kernel whose maximum cannot lag, and without rows. */
  readonly lag: MaximumLag | null;
}

/** The technique's part in the error of the run `whole`, without it that of the run `without`. */
function createPartMeter(units: ErrorUnits, whole: number, without: number) {
  const [last, left] = [new ErrorMeter(units), new ErrorMeter(units)];
  const [share, shareAlone] = [new Projection(), new Projection()];
  return {
    /** Takes the element's value in every run, the technique's addition, and its error alone. */
    add: (element: number, values: Float64Array, added: number, alone: number): void => {
      const exact = units.exact[element];
      const unit = units.perMagnitude[element];
      const error = (values[whole] - exact) * unit;
      last.add(element, values[whole] - values[without]);
      left.add(element, values[without] - exact);
      share.add(added * unit, error);
      shareAlone.add(alone * unit, error);
    },
    result: (): TechniquePart => ({
      last: last.measure(),
      without: left.measure(),
      share: share.share(),
      shareAlone: shareAlone.share(),
    }),
  };
}

/** Measures the contribution of one technique to the errors, from the outputs of the planned runs. */
export function createTechniqueMeter(technique: string, plan: RunPlan, units: ErrorUnits) {
  const before = plan.techniques[plan.techniques.indexOf(technique) - 1];
  const previous = before === undefined ? plan.none : plan.upTo[before];
  const unrounded = plan.without['output-round'];
  const alone = new ErrorMeter(units);
  const lse = new LseMeter();
  const whole = createPartMeter(units, plan.all, plan.without[technique]);
  const beforeRounding =
    technique === 'output-round'
      ? null
      : createPartMeter(units, unrounded, plan.withoutUnrounded[technique]);
  return {
    /** Takes the element's value in every run. */
    add: (element: number, values: Float64Array): void => {
      const aloneError = values[plan.alone[technique]] - units.exact[element];
      const added = values[plan.upTo[technique]] - values[previous];
      alone.add(element, aloneError);
      whole.add(element, values, added, aloneError);
      beforeRounding?.add(element, values, added, aloneError);
    },
    /** Takes a row's LSE in the run in which the technique alone is emulated, and the exact one. */
    addLse: (aloneLse: number, exact: number): void => lse.add(aloneLse, exact),
    result: (): TechniqueAttribution => ({
      technique,
      alone: alone.measure(),
      lse: lse.measure(),
      whole: whole.result(),
      beforeRounding: beforeRounding?.result() ?? null,
    }),
  };
}

/** The part of the errors that the techniques alone do not explain. */
export function interactionOf(attributed: readonly TechniqueAttribution[]): Interaction {
  const rest = (shareOf: (part: TechniqueAttribution) => number): number =>
    1 - attributed.reduce((sum, part) => sum + shareOf(part), 0);
  return {
    whole: rest(({ whole }) => whole.shareAlone),
    beforeRounding: rest(({ beforeRounding }) => beforeRounding?.shareAlone ?? 0),
  };
}

/**
 * Splits the error of `p-round` alone into the effect of rounding each row's largest weight, (round(p) −
 * p)·v / l for its exact p and l, and the rest. Takes the former off the kernel's output too, before
 * that is rounded.
 */
export function createWeightRoundingMeter(
  problem: Problem,
  outFormat: FormatName,
  units: ErrorUnits,
  plan: RunPlan,
) {
  const { heads, kvHeads, groupSize, queries, keys, vDim } = problemShape(problem);
  const format = formats[outFormat];
  const [largest, others, unrounded] = Array.from({ length: 3 }, () => new ErrorMeter(units));
  const pRound: number | undefined = plan.alone['p-round'];
  const beforeRounding = plan.without['output-round'];
  const value = new Float64Array(vDim);

  function addRow(
    { outputs, firstRow }: AttributedPiece,
    { keys: largestKeys, weights, rounded, divisors }: LargestWeights,
    row: number,
    pRoundAlone: Float64Array,
  ): void {
    const key = largestKeys[row];
    let relative = 0;
    value.fill(0);
    if (key >= 0) {
      const head = Math.floor((firstRow + row) / queries);
      const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
      const at = (kv * keys + key) * vDim;
      decodeTensor(problem.v, at, at + vDim, value);
      relative = (rounded[row] - weights[row]) / divisors[plan.none][row];
    }
    for (let c = 0; c < vDim; c++) {
      const element = (firstRow + row) * vDim + c;
      const exact = units.exact[element];
      const error = relative * value[c];
      const whole = pRoundAlone[row * vDim + c] - exact;
      largest.add(element, error);
      others.add(element, whole - error);
      const mended = outputs[beforeRounding][row * vDim + c] - error;
      unrounded.add(element, round(format, mended) - exact);
    }
  }

  return {
    addPiece: (piece: AttributedPiece): void => {
      const { largestWeights } = piece;
      if (largestWeights === null || pRound === undefined) return;
      const alone = piece.outputs[pRound];
      for (let row = 0; row < piece.rows; row++) addRow(piece, largestWeights, row, alone);
    },
    /** The result; null for a kernel that does not round its weights. */
    result: (): WeightRounding | null =>
      pRound === undefined
        ? null
        : {
            largestWeight: largest.measure(),
            otherWeights: others.measure(),
            largestUnrounded: unrounded.measure(),
          },
  };
}

/** Summarises the lags of rows, 0 for a row that does not lag. */
export function summariseLags(lags: readonly Float64Array[]): MaximumLag {
  let [rows, lagging, sum, max] = [0, 0, 0, 0];
  for (const tile of lags)
    for (const lag of tile) {
      rows++;
      if (!(lag > 0)) continue;
      lagging++;
      sum += lag;
      max = Math.max(max, lag);
    }
  return { rows, lagging, mean: sum / Math.max(lagging, 1), max };
}
