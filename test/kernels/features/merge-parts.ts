const { fround } = Math;

/** What a row has summed over some of its keys. */
export interface RowPart {
  /** The largest score; −∞ for none. */
  max: number;
  /** Σ e^(score − max); 0 for no keys. */
  sum: number;
  /** Σ e^(score − max)·v. */
  readonly out: Float64Array;
}

/** A part as kernels store it, normalised, with its LSE: its maximum is the LSE and its sum 1; no keys stay no keys. */
export function storedPart({ max, sum, out }: RowPart): RowPart {
  if (sum === 0) return { max: -Infinity, sum: 0, out: out.map(() => 0) };
  return {
    max: fround(max + fround(Math.log(sum))),
    sum: 1,
    out: out.map((x) => fround(x / sum)),
  };
}

/** One part of several, every operation rounded to fp32; parts without keys are not read. */
export function mergedParts(parts: readonly RowPart[]): RowPart {
  const full = parts.filter(({ sum }) => sum !== 0);
  if (full.length <= 1) return full[0] ?? parts[0];
  const max = full.reduce((largest, part) => (part.max > largest ? part.max : largest), -Infinity);
  const merged: RowPart = { max, sum: 0, out: new Float64Array(parts[0].out.length) };
  for (const part of full) {
    const factor = fround(Math.exp(fround(part.max - max)));
    merged.sum = fround(merged.sum + fround(part.sum * factor));
    part.out.forEach((x, c) => {
      merged.out[c] = fround(merged.out[c] + fround(x * factor));
    });
  }
  return merged;
}
