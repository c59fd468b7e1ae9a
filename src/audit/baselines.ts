import { yardstickAttention } from '../../kernels/index.js';
import type { AttentionReference } from '../../oracles/index.js';
import { decodeToFloat64, encodeFromFloat64, formats, type FormatName } from '../formats/index.js';
import type { Problem } from '../problem/index.js';

/** Results of the usual checks on the same output. None of them takes part in the verdict. */
export interface Baselines {
  /** |out − oracle| ≤ 1e-2 + 1e-2·|oracle| everywhere, as torch.allclose(rtol=1e-2, atol=1e-2). */
  readonly allclose: { readonly pass: boolean; readonly violations: number };
  /**
   * FlashAttention's rule: max error at most twice (three times with a softcap) that of textbook
   * attention in the input format, plus twice the rounding of adding and subtracting 0.3.
   */
  readonly flashAttention: {
    readonly pass: boolean;
    readonly maxError: number;
    readonly lowPrecisionMaxError: number;
    readonly allowance: number;
  };
  /** Cosine similarity of output and oracle over all elements; the usual threshold is 0.999. */
  readonly cosine: { readonly pass: boolean; readonly similarity: number };
}

const tolerance = 1e-2;
const cosineThreshold = 0.999;

/** Largest |a − b|, with NaN (and equal infinities as no error) treated as the checks do. */
function maxError(a: Float64Array, b: Float64Array): number {
  let largest = 0;
  for (let i = 0; i < a.length; i++) {
    const error = a[i] === b[i] ? 0 : Math.abs(a[i] - b[i]);
    if (Number.isNaN(error)) return NaN;
    if (error > largest) largest = error;
  }
  return largest;
}

/** Textbook attention in the input format, with the rows that it covers. */
interface LowPrecision {
  readonly lowPrecision: Float64Array;
  /** Exact values and output of these rows; default: of all. */
  readonly reference?: AttentionReference;
  readonly out?: Float64Array;
}

/** Values that FlashAttention's rule compares an output with, and their format. */
interface RuleTerms {
  /** Textbook attention in the input format. */
  readonly lowPrecision: Float64Array;
  readonly format: FormatName;
  /** Additional error that is allowed; default: none. */
  readonly slack?: number;
}

/** Elements that the rule is applied to at a time, so that what it takes beside them is small. */
const pieceElements = 2 ** 14;

/** FlashAttention's rule for some elements: see `Baselines.flashAttention`. */
export function flashAttentionRule(
  { softcap }: Problem,
  exact: Float64Array,
  out: Float64Array,
  { lowPrecision, format: name, slack = 0 }: RuleTerms,
): Baselines['flashAttention'] {
  const format = formats[name];
  const inFormat = (values: Float64Array) =>
    decodeToFloat64(encodeFromFloat64(format, values), format);
  let [error, lowPrecisionMaxError, ofShaking] = [0, 0, 0];
  for (let first = 0; first < exact.length; first += pieceElements) {
    const piece = (values: Float64Array) => values.subarray(first, first + pieceElements);
    const rounded = inFormat(piece(exact));
    const shaken = inFormat(inFormat(rounded.map((x) => x + 0.3)).map((x) => x - 0.3));
    // A NaN stays one.
    error = Math.max(error, maxError(piece(out), rounded));
    lowPrecisionMaxError = Math.max(lowPrecisionMaxError, maxError(piece(lowPrecision), rounded));
    ofShaking = Math.max(ofShaking, maxError(shaken, rounded));
  }
  const factor = softcap === null ? 2 : 3;
  const allowance = factor * lowPrecisionMaxError + 2 * ofShaking + slack;
  return { pass: error <= allowance, maxError: error, lowPrecisionMaxError, allowance };
}

/**
 * Judges an output (decoded, [batch, heads, queries, vDim]) as the usual checks would.
 * @param textbook textbook attention; where it has only some of the rows, FlashAttention's rule covers only
 * these
 */
export function usualChecks(
  problem: Problem,
  reference: AttentionReference,
  out: Float64Array,
  outputFormat: FormatName,
  textbook: LowPrecision = { lowPrecision: yardstickAttention(problem, reference.shape) },
): Baselines {
  const { out: exactOut } = reference.quantities;
  let violations = 0;
  let cross = 0;
  let outSquares = 0;
  let oracleSquares = 0;
  for (let i = 0; i < out.length; i++) {
    const value = out[i];
    const exact = exactOut.values[i];
    const error = Math.abs(value - exact);
    // No finite value is close to an infinity, though its error is no more than a part of that.
    const close =
      value === exact || (error < Infinity && error <= tolerance + tolerance * Math.abs(exact));
    if (!close) violations++;
    cross += value * exact;
    outSquares += value * value;
    oracleSquares += exact * exact;
  }
  const similarity =
    outSquares === 0 && oracleSquares === 0 ? 1 : cross / Math.sqrt(outSquares * oracleSquares);
  const { lowPrecision, reference: compared = reference, out: given = out } = textbook;
  const { values: exact } = compared.quantities.out;
  return {
    allclose: { pass: violations === 0, violations },
    flashAttention: flashAttentionRule(problem, exact, given, {
      lowPrecision,
      format: outputFormat,
    }),
    cosine: { pass: similarity >= cosineThreshold, similarity },
  };
}
