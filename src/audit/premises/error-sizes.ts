/** Errors of sampled rows: of O element by element, beside the exact O, and of the LSE. */
export interface Errors {
  readonly out: Float64Array;
  readonly exact: Float64Array;
  readonly lse: Float64Array;
}

/** Sizes of errors: root mean squares over elements and rows, and the LSE's mean. */
export interface ErrorSizes {
  readonly out: number;
  readonly lse: number;
  readonly lseMean: number;
  /** The regression slope of O's errors on the exact O, and its standard error for random errors. */
  readonly slope: number;
  readonly slopeError: number;
}

/** The sizes of errors; the slope is 0 where O is. */
export function sizesOf({ out, exact, lse }: Errors): ErrorSizes {
  const squares = (values: Float64Array) => values.reduce((sum, x) => sum + x * x, 0);
  const ofOut = Math.sqrt(squares(out) / Math.max(out.length, 1));
  const norm = squares(exact);
  return {
    out: ofOut,
    slope: norm === 0 ? 0 : out.reduce((sum, x, i) => sum + x * exact[i], 0) / norm,
    slopeError: norm === 0 ? Infinity : ofOut / Math.sqrt(norm),
    lse: Math.sqrt(squares(lse) / Math.max(lse.length, 1)),
    lseMean: lse.reduce((sum, x) => sum + x, 0) / Math.max(lse.length, 1),
  };
}

/** The correlation of a and b, each without a common part; 1 where b is no more than `noise`. */
export function correlation(
  a: Float64Array,
  b: Float64Array,
  common: Float64Array,
  noise: number,
): number {
  let products = 0;
  let ofA = 0;
  let ofB = 0;
  for (let i = 0; i < a.length; i++) {
    const x = a[i] - common[i];
    const y = b[i] - common[i];
    products += x * y;
    ofA += x * x;
    ofB += y * y;
  }
  if (ofB <= noise * noise * b.length) return 1;
  return products / Math.sqrt(ofA * ofB);
}

/** Whether a size is that expected, up to a factor either way. */
export function isWithin(found: number, expected: number, factor: number): boolean {
  return found <= factor * expected && found * factor >= expected;
}
