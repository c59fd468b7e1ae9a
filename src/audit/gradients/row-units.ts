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

/**
 * Numbers rows by the errors that they may share: rows whose exact values agree to 12 significant bits are sums of
 * terms that may round alike, like those of equal queries or of keys with equal weights.
 * @param exact rows of `columns` values
 */
export function gradientUnits(exact: Float64Array, columns: number): GradientUnits {
  const rows = columns === 0 ? 0 : exact.length / columns;
  const coarse = new Uint32Array(Float32Array.from(exact).buffer).map(
    (bits) => (bits + (1 << (droppedBits - 1))) >>> droppedBits,
  );
  const numbers = new Map<string, number>();
  const unit = new Int32Array(rows);
  const counts = new Int32Array(rows);
  for (let row = 0; row < rows; row++) {
    const key = coarse.subarray(row * columns, (row + 1) * columns).join();
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    unit[row] = number;
    counts[number]++;
  }
  return { unit, isShared: Uint8Array.from(unit, (number) => (counts[number] > 1 ? 1 : 0)) };
}
