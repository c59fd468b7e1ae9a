const largest = (values: Float64Array) =>
  values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);

/**
 * Errors of a pattern of which a statistic uses some share of its limit. Statistics are proportional to errors; a NaN
 * is there beyond the limit, and not below it.
 * @param use how much of its limit the statistic uses under some errors
 */
export function faultAt(
  pattern: Float64Array,
  use: (errors: Float64Array) => number,
): (share: number) => Float64Array {
  const most = largest(pattern);
  if (Number.isNaN(most)) return (share) => pattern.map((x) => (share > 1 ? x : 0));
  // So small that no element is beyond its worst case, where the spread would say nothing of it.
  const unit = pattern.map((x) => (x / most) * 2 ** -24);
  const ofUnit = use(unit);
  return (share) => unit.map((x) => (x * share) / ofUnit);
}
