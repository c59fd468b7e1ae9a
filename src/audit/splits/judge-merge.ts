import type { OutputRounding } from '../../../kernels/index.js';
import type { GivenQuantity } from '../kernel-outputs.js';
import { formats, type FormatName } from '../../formats/index.js';
import { outputRounding } from '../bounds/index.js';
import { factorFaults, mergeFaults, type MergeFault, type WrongMerge } from './merge-faults.js';
import { mergeParts, type MergedParts, type PartialResults } from './merge-parts.js';

/** A merged O as a kernel stored it, which may have been multiplied by a factor before. */
export interface StoredMerge extends Pick<GivenQuantity, 'format' | 'values'> {
  readonly rounding: OutputRounding;
  /** What the merge is multiplied by before it is rounded, and the parts are not; default: 1. */
  readonly factor?: number;
}

/** Outputs that were merged from parts. */
export interface MergedOutputs {
  readonly out: GivenQuantity;
  readonly lse: GivenQuantity | null;
}

/** The result of a comparison of outputs with the merge of their parts. */
export interface MergeJudgement {
  readonly pass: boolean;
  /** The largest share that an element uses of the error bound of a merge, for the output and for the LSE. */
  readonly used: number;
  readonly lseUsed: number | null;
  /** Other merges of the parts that give this very output, a clause each. */
  readonly causes: readonly string[];
}

/** The unit roundoff of fp32, and the error of its exponential and logarithm by hardware: some ulps. */
const roundoff = 2 ** -24;
const functionError = 2 ** -21;
/** The largest loss of an fp32 operation whose result is subnormal, and flushed to zero. */
const underflow = 2 ** -126;

/**
 * The largest error of the weights of a row in fp32: l_s·log2 e and m·log2 e round, their difference rounds, and so do the
 * factors of both, each within 2^-24 of |l_s| or |m|; the exponential errs by some ulps. Relative, and doubled, since weights
 * stand above and below the bar; the sums over the parts and the quotient are a roundoff for each part.
 */
export function weightError({ splits, rows, lse }: PartialResults, row: number): number {
  let largest = 0;
  for (let split = 0; split < splits; split++) {
    const size = Math.abs(lse[split * rows + row]);
    if (size < Infinity) largest = Math.max(largest, size);
  }
  return 8 * roundoff * (2 * largest + 1) + 2 * functionError + (splits + 4) * roundoff;
}

/** The relative error of a factor: it may be a reciprocal in fp32, and the product rounds; doubled for terms of second order. */
const factorError = 4 * roundoff;

/** The largest number that a merge is cut off at: conversions to fp8 saturate (cvt.satfinite, which PTX has alone); else ∞. */
function limitOf(format: FormatName): number {
  return format === 'e4m3' || format === 'e5m2' ? formats[format].maxFinite : Infinity;
}

function share(error: number, allowed: number): number {
  return error === 0 ? 0 : Number.isNaN(error) ? Infinity : error / allowed;
}

/** |x − y|, 0 for the same special value. */
function distance(x: number, y: number): number {
  return Object.is(x, y) || x === y ? 0 : Math.abs(x - y);
}

/**
 * The largest share that an element of each row uses of the error bound of a merge in fp32. A factor multiplies values, magnitudes and
 * errors alike, and adds an error of its own. What lies beyond the largest of fp8 is that, errors and all: the ends of the span are cut off.
 */
export function outShares(
  parts: PartialResults,
  merged: MergedParts,
  { format, values, rounding, factor = 1 }: StoredMerge,
): Float64Array {
  const used = new Float64Array(parts.rows);
  const limit = limitOf(format);
  const cut = (x: number) => Math.min(limit, Math.max(-limit, x));
  const size = Math.abs(factor);
  const ofFactor =
    factor === 1 ? { relative: 0, lost: 0 } : { relative: factorError, lost: underflow };
  for (let row = 0; row < parts.rows; row++) {
    const error = weightError(parts, row) + ofFactor.relative;
    for (let i = row * parts.dim; i < (row + 1) * parts.dim; i++) {
      const lost = (parts.splits + 2) * underflow;
      const whole =
        size * (error * merged.magnitude[i] + merged.outRadius[i] + lost) + ofFactor.lost;
      const scaled = factor * merged.out[i];
      const exact = cut(scaled);
      const inner =
        limit === Infinity
          ? whole
          : Math.max(cut(scaled + whole) - exact, exact - cut(scaled - whole));
      const allowed = inner + outputRounding(format, exact, inner, rounding);
      used[row] = Math.max(used[row], share(distance(values[i], exact), allowed));
    }
  }
  return used;
}

/** The share that the LSE of each row uses of the error bound of a merge in fp32. */
export function lseShares(
  parts: PartialResults,
  merged: Pick<MergedParts, 'lse' | 'lseRadius'>,
  { format, values }: Pick<GivenQuantity, 'format' | 'values'>,
): Float64Array {
  const used = new Float64Array(parts.rows);
  for (let row = 0; row < parts.rows; row++) {
    const exact = merged.lse[row];
    const inner =
      weightError(parts, row) + 4 * roundoff * Math.abs(exact || 0) + merged.lseRadius[row];
    const allowed = inner + outputRounding(format, exact, inner, 'nearest');
    used[row] = share(distance(values[row], exact), allowed);
  }
  return used;
}

const largestOf = (shares: Float64Array) => shares.reduce((a, b) => Math.max(a, b), 0);

/**
 * Compares outputs with the exact merge of their parts, by the error bound of a merge in fp32. Where it fails, it
 * looks for another merge that gives this output on every element.
 * @param lseParts the parts that the LSE is merged from
 * @param rounding the rounding of the output that the kernel declares
 */
export function judgeMerge(
  parts: PartialResults,
  { out, lse }: MergedOutputs,
  lseParts: PartialResults,
  rounding: OutputRounding,
): MergeJudgement {
  const stored = { ...out, rounding };
  const used = largestOf(outShares(parts, mergeParts(parts), stored));
  const ofLse = lse === null ? null : largestOf(lseShares(lseParts, mergeParts(lseParts), lse));
  const pass = used <= 1 && (ofLse ?? 0) <= 1;
  const causes = used <= 1 ? [] : explainingFaults(parts, stored);
  return { pass, used, lseUsed: ofLse, causes: causes.map(({ sentence }) => sentence) };
}

/** What a merge with a mistake gives. */
function wronglyMerged({ parts, weight, isDivided, emptyRows = 0 }: WrongMerge): MergedParts {
  const merged = mergeParts(parts, weight, isDivided);
  merged.lse.forEach((lse, row) => {
    if (lse === -Infinity) merged.out.fill(emptyRows, row * parts.dim, (row + 1) * parts.dim);
  });
  return merged;
}

/** The mistakes of a merge that give this output on every element, those of its factor among them. */
export function explainingFaults(
  parts: PartialResults,
  stored: StoredMerge,
): readonly MergeFault[] {
  const { factor = 1 } = stored;
  return [...factorFaults(factor), ...mergeFaults(parts.splits)].filter(({ apply }) => {
    const wrong = apply(parts);
    if (wrong === null) return false;
    const other = { ...stored, factor: wrong.factor ?? factor };
    return outShares(wrong.parts, wronglyMerged(wrong), other).every((used) => used <= 1);
  });
}
