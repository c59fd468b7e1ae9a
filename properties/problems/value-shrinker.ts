/**
 * The complexity of a value, in ascending order: 0, then 1, small whole numbers, powers of two, whole
 * numbers, any number, infinities, NaN; negative ones a little farther than positive ones.
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

/** Half the exponent; of a number that is no power of two, first the power of two below it; 0 of 0. */
function towardOne(x: number): number {
  if (!Number.isFinite(x)) return Math.sign(x) || 0;
  const exponent = Math.log2(Math.abs(x));
  const power = Number.isInteger(exponent) ? Math.trunc(exponent / 2) : Math.floor(exponent);
  return Math.sign(x) * 2 ** power;
}

/**
 * Ways to a simpler value, boldest first. Each yields a number that every format holds, given one
 * that it holds: none adds significant bits or leaves the range between the value and 1, but for whole
 * numbers up to 8, which every format has.
 */
const simplifications: readonly Simplification[] = [
  () => 0,
  () => 1,
  (x) => Math.sign(x) || 0,
  Math.abs,
  (x) => (Math.abs(x) <= 8 ? Math.trunc(x / 2) : x),
  Math.trunc,
  towardOne,
  (x) => (Math.abs(x) < 8 ? Math.sign(x) * Math.ceil(Math.abs(x)) : x),
];

function total(values: Float64Array): number {
  return values.reduce((sum, x) => sum + valueComplexity(x), 0);
}

/** A simpler tensor, and its place in the order of the search. */
export interface SimplerValues {
  readonly values: Float64Array;
  readonly position: number;
}

/** The values with those from `begin` to `end` simplified where that makes them simpler. */
function simplified(
  values: Float64Array,
  simplify: Simplification,
  begin: number,
  end: number,
): Float64Array {
  const out = values.slice();
  for (let i = begin; i < end; i++) {
    const simpler = simplify(values[i]);
    if (valueComplexity(simpler) < valueComplexity(values[i])) out[i] = simpler;
  }
  return out;
}

/** Simpler versions of a tensor with all elements treated alike, boldest first. */
export function* simplerTensors(values: Float64Array): Generator<SimplerValues> {
  const complexity = total(values);
  for (const simplify of simplifications) {
    const candidate = simplified(values, simplify, 0, values.length);
    if (total(candidate) < complexity) yield { values: candidate, position: 0 };
  }
}

/** Simplifications tried on runs of rows; single numbers have the others. */
const runSimplifications: readonly Simplification[] = [() => 0, () => 1];

/** The most runs of one length that are tried. */
const mostRuns = 256;

/** Runs of rows: halves, quarters, and so on, to single rows unless these are very many. */
function rowRuns(rows: number): (readonly [begin: number, end: number])[] {
  const runs: (readonly [number, number])[] = [];
  for (let length = Math.ceil(rows / 2); rows > 1; length = Math.ceil(length / 2)) {
    if (rows / length > mostRuns) break;
    for (let row = 0; row < rows; row += length) runs.push([row, Math.min(row + length, rows)]);
    if (length === 1) break;
  }
  return runs;
}

/** The numbers below `count` from `from` on, then those before it. */
function* around(count: number, from: number): Generator<number> {
  for (let i = 0; i < count; i++) yield (from + i) % count;
}

/**
 * Simpler versions of a tensor with a run of rows set to 0 or 1, long runs first.
 * @param dim elements of a row
 * @param from the position of the last success, where the search goes on
 */
export function* simplerRows(
  values: Float64Array,
  dim: number,
  from: number,
): Generator<SimplerValues> {
  const runs = rowRuns(values.length / dim);
  for (const position of around(runs.length, from)) {
    const [begin, end] = runs[position];
    const before = total(values.subarray(begin * dim, end * dim));
    for (const simplify of runSimplifications) {
      const candidate = simplified(values, simplify, begin * dim, end * dim);
      if (total(candidate.subarray(begin * dim, end * dim)) < before)
        yield { values: candidate, position };
    }
  }
}

/** The most elements, neither 0 nor 1, of tensors that are simplified one by one. */
const mostByElement = 64;

/**
 * Simpler versions of a tensor with one element changed, boldest first for each.
 * @param from the position of the last success, where the search goes on
 */
export function* simplerElements(values: Float64Array, from: number): Generator<SimplerValues> {
  if (values.filter((x) => x !== 0 && x !== 1).length > mostByElement) return;
  for (const position of around(values.length, from)) {
    const value = values[position];
    const seen = new Set([value]);
    for (const simplify of simplifications) {
      const simpler = simplify(value);
      if (seen.has(simpler) || valueComplexity(simpler) >= valueComplexity(value)) continue;
      seen.add(simpler);
      yield { values: values.with(position, simpler), position };
    }
  }
}
