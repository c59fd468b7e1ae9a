/** Three significant digits, without an exponent where that reads well. */
export function formatNumber(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e5 ? String(Number(value.toPrecision(3))) : value.toExponential(2);
}

/**
 * Two numbers in as many digits as it takes to tell them apart: two of their difference, and three of
 * the larger at least.
 */
export function formatApart(a: number, b: number): readonly [string, string] {
  const difference = Math.abs(a - b);
  const leading = Math.floor(Math.log10(Math.max(Math.abs(a), Math.abs(b))));
  const digits = leading - Math.floor(Math.log10(difference)) + 2;
  if (!(Number.isFinite(difference) && difference > 0 && digits > 3))
    return [formatNumber(a), formatNumber(b)];
  const show = (value: number) =>
    leading >= -3 && leading < 5
      ? value.toFixed(Math.min(Math.max(digits - 1 - leading, 0), 20))
      : value.toExponential(Math.min(digits, 17) - 1);
  return [show(a), show(b)];
}

/** Two significant digits, as of numbers that are compared by their size. */
export function formatRoughly(value: number): string {
  return String(Number(value.toPrecision(2)));
}
