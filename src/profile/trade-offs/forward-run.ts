import { fa4Model } from '../../../kernels/index.js';
import { decodeToFloat64, type FormatName, formats, storageOf } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import type { Problem } from '../../problem/index.js';
import { scoreProblem } from '../../../properties/index.js';
import { attentionOracle, type AttentionReference } from '../../../oracles/index.js';

/** Results of FlashAttention-4's forward on a problem. */
export interface ForwardRun {
  /** [batch, heads, queries, vDim], decoded. */
  readonly out: Float64Array;
  readonly outFormat: FormatName;
  /** [batch, heads, queries], natural logarithm. */
  readonly lse: Float32Array;
  /** The model's counters, summed over its tiles. */
  readonly counters: Readonly<Record<string, number>>;
  /** Every setting of the model with its value. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  readonly evidence: readonly string[];
}

/** A setting in the form that the model reads: an infinite number is `inf`. */
function settingText(value: string | number): string {
  return value === Infinity ? 'inf' : String(value);
}

/**
 * Runs FlashAttention-4's forward on a problem, bit for bit, on this thread.
 * @param settings settings that differ from FlashAttention-4's own, by the model's keys
 * @throws RequestError for a problem that the model does not support and for settings out of range
 */
export function runForward(
  problem: Problem,
  settings: Readonly<Record<string, string | number>>,
): ForwardRun {
  const texts = Object.entries(settings).map(([key, value]) => [key, settingText(value)] as const);
  const kernel = fa4Model.prepare(problem, new Map(texts));
  const { shape, outFormat, pieces, evidence } = kernel;
  const format = formats[outFormat];
  const rows = shape.batch * shape.heads * shape.queries;
  const out = new Float64Array(rows * shape.vDim);
  const lse = new Float32Array(rows);
  const counters: Record<string, number> = {};
  for (let i = 0; i < pieces; i++) {
    const piece = kernel.run(i);
    out.set(decodeToFloat64(storageOf(format, piece.out), format), piece.firstRow * shape.vDim);
    lse.set(piece.lse, piece.firstRow);
    for (const [name, count] of Object.entries(piece.counters))
      counters[name] = (counters[name] ?? 0) + count;
  }
  return { out, outFormat, lse, counters, settings: kernel.settings, evidence };
}

/** Input formats of attention kernels. */
const inputFormats: readonly FormatName[] = ['bf16', 'fp16', 'e4m3', 'e5m2'];

/** The formats that FlashAttention-4's model supports, found by trying each. */
export function modelledFormats(): FormatName[] {
  return inputFormats.filter((format) => {
    const sizes = { queries: 1, keys: 1, dim: 16 };
    try {
      fa4Model.prepare(scoreProblem('normal-1', { ...sizes, format, seed: 0 }), new Map());
      return true;
    } catch (error) {
      if (error instanceof RequestError) return false;
      throw error;
    }
  });
}

/** Distance of a forward from exact attention, over the elements where both are finite; null where none is. */
export interface ForwardErrors {
  /** max |error| / max |O|. */
  readonly largest: number | null;
  /** Errors in units of each element's Σ p|v| / Σ p: the largest magnitude and the root mean square. */
  readonly largestRelative: number | null;
  readonly rootMeanSquare: number | null;
  /** The error of the LSE, in natural units: the largest magnitude, and the signed mean. */
  readonly largestLse: number | null;
  readonly meanLse: number | null;
  /** Number of elements of O and LSEs that are not finite although the exact ones are. */
  readonly notFinite: number;
}

/** Accuracy far below the rounding of an output, so that the reference's radius shows in no error. */
const oracleAccuracy = {
  outputFormat: 'fp16',
  ulpFraction: 2 ** -10,
  magnitudeFraction: 2 ** -24,
} as const;

/** Exact attention, each element to within 2^-24 of Σ p|v| / Σ p or 2^-10 ulp of fp16. */
export function exactAttention(problem: Problem): AttentionReference {
  return attentionOracle(problem, { accuracy: oracleAccuracy });
}

/** The errors of a run against exact attention of the same problem. */
export function forwardErrors(
  { out, lse }: Pick<ForwardRun, 'out' | 'lse'>,
  reference: AttentionReference,
): ForwardErrors {
  const { out: exactOut, lse: exactLse } = reference.quantities;
  let [largest, largestOutput, largestRelative, squares, elements] = [0, 0, 0, 0, 0];
  let notFinite = 0;
  out.forEach((value, i) => {
    const exact = exactOut.values[i];
    if (!Number.isFinite(exact)) return;
    largestOutput = Math.max(largestOutput, Math.abs(exact));
    if (!Number.isFinite(value)) {
      notFinite++;
      return;
    }
    const error = Math.abs(value - exact);
    const relative = error === 0 ? 0 : error / exactOut.magnitude[i];
    largest = Math.max(largest, error);
    largestRelative = Math.max(largestRelative, relative);
    squares += relative * relative;
    elements++;
  });
  let [largestLse, sumLse, rows] = [0, 0, 0];
  lse.forEach((value, row) => {
    const exact = exactLse.values[row];
    if (!Number.isFinite(exact)) return;
    if (!Number.isFinite(value)) {
      notFinite++;
      return;
    }
    largestLse = Math.max(largestLse, Math.abs(value - exact));
    sumLse += value - exact;
    rows++;
  });
  const ofElements = (value: number): number | null => (elements === 0 ? null : value);
  const ofRows = (value: number): number | null => (rows === 0 ? null : value);
  return {
    largest: ofElements(largest === 0 ? 0 : largest / largestOutput),
    largestRelative: ofElements(largestRelative),
    rootMeanSquare: ofElements(Math.sqrt(squares / elements)),
    largestLse: ofRows(largestLse),
    meanLse: ofRows(sumLse / rows),
    notFinite,
  };
}

/** An error as a multiple of another; null where one is missing or both are 0. */
export function errorRatio(error: number | null, baseline: number | null): number | null {
  if (error === null || baseline === null) return null;
  if (baseline === 0) return error === 0 ? null : Infinity;
  return error / baseline;
}
