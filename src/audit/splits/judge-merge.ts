import type { OutputRounding } from '../../../kernels/index.js';
import type { GivenQuantity } from '../kernel-outputs.js';
import { outputRounding } from '../bounds/index.js';
import {
  mergeParts,
  type MergedParts,
  type PartialResults,
  type PartWeight,
} from './merge-parts.js';

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
function weightError({ splits, rows, lse }: PartialResults, row: number): number {
  let largest = 0;
  for (let split = 0; split < splits; split++) {
    const size = Math.abs(lse[split * rows + row]);
    if (size < Infinity) largest = Math.max(largest, size);
  }
  return 8 * roundoff * (2 * largest + 1) + 2 * functionError + (splits + 4) * roundoff;
}

function share(error: number, allowed: number): number {
  return error === 0 ? 0 : Number.isNaN(error) ? Infinity : error / allowed;
}

/** |x − y|, 0 for the same special value. */
function distance(x: number, y: number): number {
  return Object.is(x, y) || x === y ? 0 : Math.abs(x - y);
}

/** The largest share that an element uses of the error bound of a merge in fp32. */
function outUsed(
  parts: PartialResults,
  merged: MergedParts,
  { format, values }: GivenQuantity,
  rounding: OutputRounding,
) {
  let used = 0;
  for (let row = 0; row < parts.rows; row++) {
    const error = weightError(parts, row);
    for (let i = row * parts.dim; i < (row + 1) * parts.dim; i++) {
      const lost = (parts.splits + 2) * underflow;
      const inner = error * merged.magnitude[i] + merged.outRadius[i] + lost;
      const exact = merged.out[i];
      const allowed = inner + outputRounding(format, exact, inner, rounding);
      used = Math.max(used, share(distance(values[i], exact), allowed));
    }
  }
  return used;
}

function lseUsed(parts: PartialResults, merged: MergedParts, { format, values }: GivenQuantity) {
  let used = 0;
  for (let row = 0; row < parts.rows; row++) {
    const exact = merged.lse[row];
    const inner =
      weightError(parts, row) + 4 * roundoff * Math.abs(exact || 0) + merged.lseRadius[row];
    const allowed = inner + outputRounding(format, exact, inner, 'nearest');
    used = Math.max(used, share(distance(values[row], exact), allowed));
  }
  return used;
}

/** Another way to weigh parts, which a kernel may have taken. */
interface OtherMerge {
  readonly words: string;
  readonly weight: PartWeight;
}

function otherMerges(splits: number): readonly OtherMerge[] {
  const natural = (lse: number, largest: number) => Math.exp(lse - largest);
  const of = (factor: (split: number) => number): PartWeight => {
    return (lse, largest, split) => factor(split) * natural(lse, largest);
  };
  const each = Array.from({ length: splits }, (_, split) => split);
  return [
    {
      words: 'the parts were merged with weights 2^LSE, as of LSEs in base 2',
      weight: (lse, largest) => 2 ** (lse - largest),
    },
    {
      words:
        'the parts were merged with weights e^(LSE·log2 e), as of LSEs that were multiplied by log2 e already',
      weight: (lse, largest) => Math.exp((lse - largest) * Math.LOG2E),
    },
    { words: 'the parts were merged with equal weights', weight: () => 1 },
    ...each.map((left) => ({
      words: `part ${left} was left out of the merge`,
      weight: of((split) => (split === left ? 0 : 1)),
    })),
    ...each.map((twice) => ({
      words: `part ${twice} was counted twice in the merge`,
      weight: of((split) => (split === twice ? 2 : 1)),
    })),
  ];
}

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
  const used = outUsed(parts, mergeParts(parts), out, rounding);
  const ofLse = lse === null ? null : lseUsed(lseParts, mergeParts(lseParts), lse);
  const pass = used <= 1 && (ofLse ?? 0) <= 1;
  const causes =
    used <= 1
      ? []
      : otherMerges(parts.splits)
          .filter(({ weight }) => outUsed(parts, mergeParts(parts, weight), out, rounding) <= 1)
          .map(({ words }) => words);
  return { pass, used, lseUsed: ofLse, causes };
}
