import { type KernelModel, kernelModels } from '../../kernels/index.js';
import type { AttentionReference } from '../../oracles/index.js';
import { decodeToFloat64, encodeFromFloat64, type FormatName, formats } from '../formats/index.js';
import { type Problem, problemShape, type Tensor } from '../problem/index.js';
import { RequestError } from '../request-error.js';

/** Values written to a file in some format, for comparisons bit for bit. */
interface UnknownTensor {
  readonly format: FormatName;
  readonly values: Float64Array;
  /** The oracle rounded to the format. */
  readonly correct: Float64Array;
}

/** An output of unknown origin, with the data for comparisons. */
export interface UnknownOutput {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly out: UnknownTensor;
  /** The LSE; null if none was given. */
  readonly lse: UnknownTensor | null;
  /** The models of candidates, to look up by name. */
  readonly models: readonly KernelModel[];
}

/** Values rounded to a format, to nearest even, in fp64. */
export function roundedTo(format: FormatName, values: Float64Array): Float64Array {
  return decodeToFloat64(encodeFromFloat64(formats[format], values), formats[format]);
}

function readTensor({ format, data }: Tensor, exact: Float64Array): UnknownTensor {
  const values = decodeToFloat64(data, formats[format]);
  return { format, values, correct: roundedTo(format, exact) };
}

function count(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

/**
 * Takes an unknown output, and its LSE if there is one, along with the exact attention.
 * @throws RequestError when one of them does not have the problem's shape
 */
export function readUnknown(
  problem: Problem,
  reference: AttentionReference,
  out: Tensor,
  lse: Tensor | undefined,
  models: readonly KernelModel[] = kernelModels,
): UnknownOutput {
  return {
    problem,
    reference,
    out: readTensor(out, reference.quantities.out.values),
    lse: lse === undefined ? null : readTensor(lse, reference.quantities.lse.values),
    models,
  };
}

/**
 * Checks the shapes of an unknown output, and of its LSE, which may have further dimensions of 1 at the
 * end.
 * @throws RequestError when one of them is not that of the problem's results
 */
export function checkShapes(problem: Problem, out: Tensor, lse: Tensor | undefined): void {
  const { batch, heads, queries, vDim } = problemShape(problem);
  const expected = [batch, heads, queries, vDim];
  if (count(out.shape) !== count(expected) || out.shape.at(-1) !== vDim)
    throw new RequestError(
      `the output has shape [${out.shape.join(', ')}] but the problem makes [${expected.join(', ')}]; give the output of this problem`,
    );
  if (lse === undefined) return;
  const rows = expected.slice(0, -1);
  const dims = [...lse.shape];
  while (dims.length > 1 && dims.at(-1) === 1 && queries !== 1) dims.pop();
  if (count(dims) !== count(rows) || (queries !== 1 && dims.at(-1) !== queries))
    throw new RequestError(
      `the LSE has shape [${lse.shape.join(', ')}] but the problem makes [${rows.join(', ')}]; give the LSE of this problem`,
    );
}

/** The likeness of the unknown output to one of known origin, on the compared rows. */
export interface MatchMeasure {
  readonly elements: number;
  /** Elements with the same value: for outputs of one format, with the same bits but for NaNs. */
  readonly equal: number;
  /** Elements that are not correctly rounded in one of the two, and the number of those that are equal. */
  readonly misrounded: number;
  readonly equalMisrounded: number;
  /**
   * Number of elements that would be misrounded in both if each had as many as it has, independently of
   * the other.
   */
  readonly chance: number;
  /**
   * The share of equal ones among the elements that are not correctly rounded in either output: 1
   * for equal outputs. Correctly rounded outputs agree whatever their origin.
   */
  readonly likeness: number;
  /** Largest difference, over elements finite in both. */
  readonly largestDifference: number;
  /**
   * The correlation of output − oracle with the other's, in units of Σ p|v|. The rounding of the
   * output is part of both, and alike wherever they round alike.
   */
  readonly correlation: number | null;
  /**
   * The same with the oracle rounded to the format of the output: the correlation where the two are not
   * correctly rounded. Null if one of them is, throughout.
   */
  readonly correlationBeyondRounding: number | null;
  /** The likeness of the LSEs, by row; null if none was given. */
  readonly lse: LseMatch | null;
}

/** The likeness of the LSEs. */
export interface LseMatch {
  readonly rows: number;
  readonly equal: number;
  /** Largest difference, natural logarithm, over rows finite in both. */
  readonly largestDifference: number;
}

/** Whether all compared results are equal. */
export function isEqualThroughout({ elements, equal, lse }: MatchMeasure): boolean {
  return equal === elements && (lse === null || lse.equal === lse.rows);
}

/** Number of standard deviations beyond which chance is ruled out. */
export const significance = 3;

/** The likeness, 0 where chance alone would make as many misrounded elements equal now and then. */
export function significantLikeness({ likeness, equalMisrounded, chance }: MatchMeasure): number {
  return likeness === 1 || equalMisrounded > chance + significance * Math.sqrt(chance + 1)
    ? likeness
    : 0;
}

/**
 * The likelier first: equal throughout, then by likeness beyond chance, then by equal elements and LSEs.
 * Equal elements alone would favour correctly rounding candidates, likeness alone coincidences where
 * hardly any element is misrounded.
 */
export function byLikeness(a: MatchMeasure, b: MatchMeasure): number {
  return (
    Number(isEqualThroughout(b)) - Number(isEqualThroughout(a)) ||
    significantLikeness(b) - significantLikeness(a) ||
    b.equal - a.equal ||
    (b.lse?.equal ?? 0) - (a.lse?.equal ?? 0)
  );
}

/** Compares groups of rows, one after the other, with those of an unknown output. */
interface MatchMeter {
  /**
   * Takes rows from `firstRow` on: outputs [rows × vDim] and LSEs [rows] of known origin, in the formats
   * of the unknown ones.
   */
  readonly add: (firstRow: number, out: Float64Array, lse: Float64Array) => void;
  readonly measure: () => MatchMeasure;
}

/** A meter of the likeness of outputs to the unknown one. */
export function createMatchMeter({ reference, out: unknown, lse }: UnknownOutput): MatchMeter {
  const [whole, beyond] = [new ResidualCorrelation(), new ResidualCorrelation()];
  const { out: exactOut } = reference.quantities;
  const { vDim } = reference.shape;
  let [elements, equal, equalMisrounded, largestDifference] = [0, 0, 0, 0];
  let [misrounded, misroundedUnknown, misroundedOther] = [0, 0, 0];
  let [rows, equalRows, largestLseDifference] = [0, 0, 0];

  function addElement(i: number, b: number): void {
    const [a, correct, exact] = [unknown.values[i], unknown.correct[i], exactOut.values[i]];
    const isEqual = Object.is(a, b);
    const isMisrounded = !(Object.is(a, correct) && Object.is(b, correct));
    elements++;
    if (isEqual) equal++;
    if (isMisrounded) misrounded++;
    if (!Object.is(a, correct)) misroundedUnknown++;
    if (!Object.is(b, correct)) misroundedOther++;
    if (isEqual && isMisrounded) equalMisrounded++;
    const difference = Math.abs(a - b);
    if (Number.isFinite(difference)) largestDifference = Math.max(largestDifference, difference);
    const magnitude = exactOut.magnitude[i];
    const unit = magnitude === 0 ? 0 : 1 / magnitude;
    whole.add((a - exact) * unit, (b - exact) * unit);
    beyond.add((a - correct) * unit, (b - correct) * unit);
  }

  return {
    add: (firstRow, out, lses) => {
      for (let i = 0; i < out.length; i++) addElement(firstRow * vDim + i, out[i]);
      if (lse === null) return;
      for (let row = 0; row < lses.length; row++) {
        const [a, b] = [lse.values[firstRow + row], lses[row]];
        rows++;
        if (Object.is(a, b)) equalRows++;
        const difference = Math.abs(a - b);
        if (Number.isFinite(difference))
          largestLseDifference = Math.max(largestLseDifference, difference);
      }
    },
    measure: () => ({
      elements,
      equal,
      misrounded,
      equalMisrounded,
      largestDifference,
      chance: (misroundedUnknown * misroundedOther) / Math.max(elements, 1),
      likeness: misrounded === 0 ? 1 : equalMisrounded / misrounded,
      correlation: whole.value(),
      correlationBeyondRounding: beyond.value(),
      lse:
        lse === null ? null : { rows, equal: equalRows, largestDifference: largestLseDifference },
    }),
  };
}

/**
 * The correlation of two residuals about zero, Σ ab / √(Σ a² Σ b²): 1 for proportional ones, about 0
 * for independent ones, with a standard deviation of 1/√n for n elements. Elements that are not finite
 * are left out.
 */
class ResidualCorrelation {
  #cross = 0;
  #squaresA = 0;
  #squaresB = 0;

  add(a: number, b: number): void {
    if (!Number.isFinite(a) || !Number.isFinite(b)) return;
    this.#cross += a * b;
    this.#squaresA += a * a;
    this.#squaresB += b * b;
  }

  /** The correlation; null where one of the residuals is zero throughout. */
  value(): number | null {
    const { sqrt } = Math;
    if (this.#squaresA === 0 || this.#squaresB === 0) return null;
    return this.#cross / (sqrt(this.#squaresA) * sqrt(this.#squaresB));
  }
}
