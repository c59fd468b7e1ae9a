/** Where two arrays differ first, and how; null if they do not. Faster than a comparison by a matcher. */
export function firstDifference(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
): { readonly index: number; readonly actual: number; readonly expected: number } | null {
  const length = Math.max(actual.length, expected.length);
  for (let index = 0; index < length; index++)
    if (actual[index] !== expected[index])
      return { index, actual: actual[index], expected: expected[index] };
  return null;
}
