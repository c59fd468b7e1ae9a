const smallestExponent = -1074;
const powers = new Float64Array(2098);
powers[0] = Number.MIN_VALUE;
for (let i = 1; i < powers.length; i++) powers[i] = 2 * powers[i - 1];

/**
 * 2^exponent for an integer exponent, exact; 0 below −1074 and Infinity above 1023. (ECMAScript lets
 * `2 ** exponent` be approximate.)
 */
export function powerOfTwo(exponent: number): number {
  if (exponent < smallestExponent) return 0;
  return powers[exponent - smallestExponent] ?? Infinity;
}
