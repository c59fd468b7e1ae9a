/** Significant bits to which the elements of two rows have to agree for the rows to err alike. */
const alikeBits = 12;

/** The bits of an fp32 number that are beyond {@link alikeBits}. */
const droppedBits = 24 - alikeBits;

/** The rows of a gradient that may err alike. */
export interface GradientUnits {
  /** Rows of one number may err alike, others err independently. */
  readonly unit: Int32Array;
  /** 1 where another row has the same number. */
  readonly isShared: Uint8Array;
}

/** A number that rows of the same words have in common, and others seldom (FNV-1a, a word at a time). */
function hashOf(words: Uint32Array, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ words[i], 0x01000193);
  return hash;
}

/**
 * Numbers rows by the errors that they may share: rows whose exact values agree to 12 significant bits are sums of
 * terms that may round alike, like those of equal queries or of keys with equal weights.
 * @param exact rows of `columns` values
 */
export function gradientUnits(exact: Float64Array, columns: number): GradientUnits {
  const rows = columns === 0 ? 0 : exact.length / columns;
  const coarse = new Uint32Array(Float32Array.from(exact).buffer);
  for (let i = 0; i < coarse.length; i++)
    coarse[i] = (coarse[i] + (1 << (droppedBits - 1))) >>> droppedBits;
  const isSame = (a: number, b: number) => {
    for (let i = 0; i < columns; i++)
      if (coarse[a * columns + i] !== coarse[b * columns + i]) return false;
    return true;
  };
  // By their hash, the first row of each number.
  const first = new Map<number, number[]>();
  const unit = new Int32Array(rows);
  const counts = new Int32Array(rows);
  let numbers = 0;
  for (let row = 0; row < rows; row++) {
    const hash = hashOf(coarse, row * columns, (row + 1) * columns);
    const alike = first.get(hash) ?? [];
    const same = alike.find((other) => isSame(other, row));
    if (same === undefined) first.set(hash, [...alike, row]);
    unit[row] = same === undefined ? numbers++ : unit[same];
    counts[unit[row]]++;
  }
  return { unit, isShared: Uint8Array.from(unit, (number) => (counts[number] > 1 ? 1 : 0)) };
}
