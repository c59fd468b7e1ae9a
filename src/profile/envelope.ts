/** The smallest and largest error of some consecutive columns of a plot; ±∞ where there is none. */
export interface EnvelopeSlice {
  readonly firstColumn: number;
  readonly least: Float64Array;
  readonly most: Float64Array;
}

/** The smallest and largest error of every column of a plot; Infinity and −Infinity for no error. */
export interface Envelope {
  readonly least: Float64Array;
  readonly most: Float64Array;
}

/** An envelope without errors. */
export function emptyEnvelope(columns: number): Envelope {
  return {
    least: new Float64Array(columns).fill(Infinity),
    most: new Float64Array(columns).fill(-Infinity),
  };
}

/** Widens an envelope by the errors of a slice. */
export function widenEnvelope(envelope: Envelope, slice: EnvelopeSlice): void {
  slice.least.forEach((least, i) => {
    const column = slice.firstColumn + i;
    envelope.least[column] = Math.min(envelope.least[column], least);
    envelope.most[column] = Math.max(envelope.most[column], slice.most[i]);
  });
}

/**
 * The column of each ordinal: the index of the last boundary that is not above it; −1 before the
 * first, and the number of columns after the last boundary.
 */
export function columnOf(boundaries: readonly number[], ordinal: number): number {
  let [low, high] = [0, boundaries.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (boundaries[middle] <= ordinal) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Collects the envelope of a slice, which touches only some columns. */
export function createEnvelopeSlice(
  boundaries: readonly number[],
  first: number,
  last: number,
): EnvelopeSlice | null {
  const lowest = Math.max(columnOf(boundaries, first), 0);
  const highest = Math.min(columnOf(boundaries, last), boundaries.length - 2);
  if (highest < lowest) return null;
  const { least, most } = emptyEnvelope(highest - lowest + 1);
  return { firstColumn: lowest, least, most };
}
