/** The most dimensions a tensor may have. Attention uses at most five. */
export const maxRank = 32;

/**
 * The number of elements of a shape whose dimensions are non-negative safe integers: their product,
 * 1 for a scalar. Null when the product of the dimensions other than zero is no safe integer.
 */
export function elementCount(shape: readonly number[]): number | null {
  let product = 1;
  let empty = false;
  for (const dimension of shape) {
    if (dimension === 0) empty = true;
    else product *= dimension;
    if (product > Number.MAX_SAFE_INTEGER) return null;
  }
  return empty ? 0 : product;
}

/**
 * A dimension as a file spells it: digits without sign, fraction or exponent, whose value is a safe
 * integer. Null for everything else.
 */
export function dimensionOf(spelling: string): number | null {
  if (!/^(0|[1-9][0-9]*)$/.test(spelling)) return null;
  const value = Number(spelling);
  return Number.isSafeInteger(value) ? value : null;
}
