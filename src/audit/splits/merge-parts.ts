/** Results of the splits of one problem, decoded: [splits, rows × dim] and [splits, rows]. */
export interface PartialResults {
  readonly splits: number;
  readonly rows: number;
  readonly dim: number;
  readonly out: Float64Array;
  /** Natural logarithms. */
  readonly lse: Float64Array;
  /** How rows are counted, [batch, heads, queries]; left out where nobody says it. */
  readonly layout?: { readonly heads: number; readonly queries: number };
}

/** The merge of parts, each value with its radius: |value − exact| ≤ radius. */
export interface MergedParts {
  /** [rows × dim]; 0 for a row whose parts all have no key. */
  readonly out: Float64Array;
  readonly outRadius: Float64Array;
  /** Σ w|O| of each element, by which errors of the weights are bounded. */
  readonly magnitude: Float64Array;
  /** [rows], natural logarithms; −∞ for a row whose parts all have no key. */
  readonly lse: Float64Array;
  readonly lseRadius: Float64Array;
}

/** The weight that a part has in a row, before it is divided by their sum; see `mergeParts`. */
export type PartWeight = (lse: number, largest: number, split: number) => number;

/** The unit roundoff of fp64, and the error of Math.exp and Math.log: within an ulp (fdlibm). */
const roundoff = 2 ** -53;
const functionError = 2 ** -52;
/** An upper bound of the loss of an exponential or a product below the normal numbers of fp64. */
const underflow = 2 ** -1070;

const exactWeight: PartWeight = (lse, largest) => Math.exp(lse - largest);

/** The largest LSE of a row's parts; NaN where one is. */
function largestLse(
  { splits, rows, lse }: Pick<PartialResults, 'splits' | 'rows' | 'lse'>,
  row: number,
): number {
  let largest = -Infinity;
  for (let split = 0; split < splits; split++) largest = Math.max(largest, lse[split * rows + row]);
  return largest;
}

/**
 * Merges parts in fp64: O = Σ e^(l_s − m) O_s / Σ e^(l_s − m), L = m + ln Σ e^(l_s − m), m the largest of the l_s. A part without
 * keys, whose l_s is −∞, has no weight, whatever its O_s; if no part has keys, they merge to (0, −∞).
 *
 * The radius: l_s − m has a relative error of 2^-53, so that its exponential has one of |l_s − m|·2^-53 + 2^-52 at most, which
 * counts where the weight is not negligible; the sums over n parts err by n·2^-53 of their terms' sizes, the quotient by another.
 * In O the weights stand above and below the bar, so that their errors count twice.
 *
 * @param weight the weight of a part; default: as above, else the radius is not proven
 * @param isDivided whether sums are divided by those of the weights; not, it is no merge
 */
export function mergeParts(
  { splits, rows, dim, out, lse }: PartialResults,
  weight: PartWeight = exactWeight,
  isDivided = true,
): MergedParts {
  const merged: MergedParts = {
    out: new Float64Array(rows * dim),
    outRadius: new Float64Array(rows * dim),
    magnitude: new Float64Array(rows * dim),
    lse: new Float64Array(rows),
    lseRadius: new Float64Array(rows),
  };
  const weights = new Float64Array(splits);
  for (let row = 0; row < rows; row++) {
    const largest = largestLse({ splits, rows, lse }, row);
    if (largest === -Infinity) {
      merged.lse[row] = -Infinity;
      continue;
    }
    let total = 0;
    let error = 0;
    for (let split = 0; split < splits; split++) {
      const own = lse[split * rows + row];
      weights[split] = own === -Infinity ? 0 : weight(own, largest, split);
      if (own === -Infinity) continue;
      total += weights[split];
      error += weights[split] * (Math.abs(own - largest) * roundoff + functionError) + underflow;
    }
    // Relative to the sum of the weights.
    const relative = error / total + (splits + 1) * roundoff;
    merged.lse[row] = largest + Math.log(total);
    merged.lseRadius[row] =
      relative + functionError * Math.log(splits) + 2 * roundoff * Math.abs(merged.lse[row]);
    const divisor = isDivided ? total : 1;
    for (let column = 0; column < dim; column++) {
      let sum = 0;
      let size = 0;
      let above = 0;
      for (let split = 0; split < splits; split++) {
        const own = lse[split * rows + row];
        if (own === -Infinity) continue;
        const x = out[(split * rows + row) * dim + column];
        const term = weights[split] * x;
        sum += term;
        size += Math.abs(term);
        above +=
          Math.abs(term) * (Math.abs(own - largest) * roundoff + functionError + roundoff) +
          Math.abs(x) * underflow;
      }
      const at = row * dim + column;
      merged.out[at] = sum / divisor;
      merged.magnitude[at] = size / divisor;
      merged.outRadius[at] =
        1.001 * (above / divisor + (relative + (splits + 1) * roundoff) * merged.magnitude[at]);
    }
  }
  return merged;
}
