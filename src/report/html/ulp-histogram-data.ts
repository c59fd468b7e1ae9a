import { createUlpScale, type JudgedElements } from '../../audit/index.js';

/** Elements whose error in ulps of the output format is above `low` and at most `high`. */
export interface UlpBin {
  readonly low: number;
  readonly high: number;
  readonly count: number;
}

/** How many elements err by how many ulps, over the elements finite in output and oracle. */
export interface UlpHistogram {
  /** Elements whose output is the exact value, which no format gives but by chance. */
  readonly exact: number;
  /** Half an octave each, but for the first, which begins at 0; none beyond the largest error. */
  readonly bins: readonly UlpBin[];
}

/** Upper ends of the first and the last bin, in half octaves: errors below the first are all alike. */
const [lowest, highest] = [-16, 2 * 1100];

/** Counts errors in ulps of the output format, as the error profile takes them. */
export function createUlpHistogram({ reference, out, outputFormat }: JudgedElements): UlpHistogram {
  const { out: exactOut } = reference.quantities;
  const ulpAt = createUlpScale(reference, outputFormat);
  const counts = new Float64Array(highest - lowest + 1);
  let exact = 0;
  let last = -1;
  for (let i = 0; i < out.length; i++) {
    const size = Math.abs(out[i] - exactOut.values[i]);
    if (!Number.isFinite(size)) continue;
    if (size === 0) {
      exact++;
      continue;
    }
    const ulps = size / ulpAt(i);
    const octaves = Math.ceil(2 * Math.log2(ulps));
    const bin = Math.min(Math.max(octaves, lowest), highest) - lowest;
    counts[bin]++;
    last = Math.max(last, bin);
  }
  const bins = Array.from({ length: last + 1 }, (_, bin) => ({
    low: bin === 0 ? 0 : 2 ** ((bin + lowest - 1) / 2),
    high: 2 ** ((bin + lowest) / 2),
    count: counts[bin],
  }));
  return { exact, bins };
}
