/**
 * How far a value is from simple: 0, then 1, small whole numbers, powers of two, whole numbers, any
 * number, infinities, NaN; negative ones a little farther than positive ones.
 */
export function valueComplexity(x: number): number {
  if (Number.isNaN(x)) return 9;
  const size = Math.abs(x);
  const sign = x < 0 || Object.is(x, -0) ? 2 ** -10 : 0;
  if (size === 0) return sign;
  if (size === Infinity) return 8 + sign;
  if (size === 1) return 1 + sign;
  const exponent = Math.log2(size);
  if (Number.isInteger(size) && size <= 8) return 2 + size / 16 + sign;
  if (Number.isInteger(exponent)) return 3 + Math.abs(exponent) / 2048 + sign;
  return (Number.isInteger(size) ? 4 : 5) + sign;
}

type Simplification = (x: number) => number;

/** Half the exponent; of a number that is no power of two, first the power of two below it. */
function towardOne(x: number): number {
  if (x === 0 || !Number.isFinite(x)) return Math.sign(x) || 0;
  const exponent = Math.log2(Math.abs(x));
  const power = Number.isInteger(exponent) ? Math.trunc(exponent / 2) : Math.floor(exponent);
  return Math.sign(x) * 2 ** power;
}

/**
 * Ways to a simpler value, boldest first. Each yields a number that every format holds, given one
 * that it holds: none adds significant bits or leaves the range between the value and 1.
 */
const simplifications: readonly Simplification[] = [
  () => 0,
  () => 1,
  (x) => Math.sign(x) || 0,
  Math.abs,
  (x) => (Math.abs(x) <= 8 ? Math.trunc(x / 2) : x),
  Math.trunc,
  towardOne,
];

function total(values: Float64Array): number {
  return values.reduce((sum, x) => sum + valueComplexity(x), 0);
}

/** Tensors longer than this are simplified as a whole only. */
const longestByElement = 64;

/** Simpler versions of a tensor, boldest first: all elements alike, then one at a time. */
export function* simplerValues(values: Float64Array): Generator<Float64Array> {
  const complexity = total(values);
  for (const simplify of simplifications) {
    const candidate = values.map((x) => {
      const simpler = simplify(x);
      return valueComplexity(simpler) < valueComplexity(x) ? simpler : x;
    });
    if (total(candidate) < complexity) yield candidate;
  }
  if (values.length > longestByElement) return;
  for (let i = 0; i < values.length; i++) {
    const seen = new Set([values[i]!]);
    for (const simplify of simplifications) {
      const simpler = simplify(values[i]!);
      if (seen.has(simpler) || valueComplexity(simpler) >= valueComplexity(values[i]!)) continue;
      seen.add(simpler);
      yield values.with(i, simpler);
    }
  }
}
