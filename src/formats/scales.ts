import { RequestError } from '../request-error.js';
import { checkRequest, decodeTold, decodeToFloat64 } from './decode-array.js';
import { formats, smallestNormal } from './format.js';
import { isShort, measureShort, type RowMeasures } from './short-decoder.js';
import {
  allocateStorage,
  patternsOf,
  storageOf,
  type ScaleFactors,
  type Tensor,
  type TensorScales,
} from './tensor.js';

/** The width of a finite number's significand, from its first to its last bit that is set. */
function significandBits(x: number): number {
  if (x === 0) return 0;
  let bits = 0;
  for (let rest = x / 2 ** Math.floor(Math.log2(x)); rest !== 0; bits++) {
    const one = Math.floor(rest);
    rest = (rest - one) * 2;
  }
  return bits;
}

/** Most significand bits that a factor adds to a product: a power of two adds none. */
function addedBits(values: Float64Array): number {
  let most = 0;
  for (const x of values) most = Math.max(most, significandBits(x));
  return most <= 1 ? 0 : most;
}

/** Significand bits that fp64 holds. */
const exactBits = 53;

/**
 * The scales of a tensor, from the factors that its elements are multiplied by.
 * @throws RequestError for factors that are not finite or are negative, whose blocks do not cover the tensor, or
 * whose products with the elements fp64 does not hold exactly
 */
export function tensorScales(
  { format, shape }: Pick<Tensor, 'format' | 'shape'>,
  factors: readonly ScaleFactors[],
): TensorScales {
  let [precision, largest] = [0, 1];
  for (const { name, values, shape: counts, blocks } of factors) {
    // An axis without elements may have a factor.
    const covers = (size: number, axis: number) =>
      counts[axis] === Math.ceil(size / blocks[axis]) || (size === 0 && counts[axis] === 1);
    const fits =
      counts.length === shape.length &&
      blocks.length === shape.length &&
      shape.every(covers) &&
      values.length === counts.reduce((product, count) => product * count, 1);
    if (!fits)
      throw new RequestError(
        `${name} has ${values.length} factors of shape [${counts.join(', ')}] for blocks of [${blocks.join(', ')}] elements; that does not cover [${shape.join(', ')}]`,
      );
    const wrong = values.findIndex((x) => !(x >= 0 && x < Infinity));
    if (wrong >= 0)
      throw new RequestError(
        `${name} has ${values[wrong]} at element ${wrong}; give finite factors that are not negative`,
      );
    precision += addedBits(values);
    largest *= values.reduce((most, x) => Math.max(most, x), 0);
  }
  if (formats[format].precision + precision > exactBits)
    throw new RequestError(
      `${format} elements with ${factors.map(({ name }) => name).join(' and ')} have more than ${exactBits} significant bits; multiply them before`,
    );
  return { factors, precision, largest };
}

/** Index of the first factor of one row of the last axis. */
function firstFactor(
  { shape: counts, blocks }: ScaleFactors,
  shape: readonly number[],
  row: number,
) {
  let [rest, stride, at] = [row, counts[counts.length - 1], 0];
  for (let axis = shape.length - 2; axis >= 0; axis--) {
    at += Math.floor((rest % shape[axis]) / blocks[axis]) * stride;
    rest = Math.floor(rest / shape[axis]);
    stride *= counts[axis];
  }
  return at;
}

/**
 * Multiplies the values of consecutive elements, from element `first` (of all, row-major), by their factors, in
 * place; without scales it does nothing.
 */
export function multiplyByScales(
  { shape, scales }: Pick<Tensor, 'shape' | 'scales'>,
  values: Float64Array | Float32Array,
  first: number,
  end: number,
): void {
  const width = shape.at(-1) ?? 0;
  for (const factors of scales?.factors ?? []) {
    const block = factors.blocks[shape.length - 1];
    for (let from = first; from < end;) {
      const row = Math.floor(from / width);
      const origin = firstFactor(factors, shape, row);
      const last = Math.min(end, (row + 1) * width);
      while (from < last) {
        const index = Math.floor((from - row * width) / block);
        const factor = factors.values[origin + index];
        const until = Math.min(last, row * width + (index + 1) * block);
        for (let i = from; i < until; i++) values[i - first] *= factor;
        from = until;
      }
    }
  }
}

/**
 * The exact values of elements `first` to `end` (exclusive) of a tensor in row-major order, by default all, times
 * their scales; written from the beginning of `out` (default a new array) and returned in it. All numbers of a
 * problem are read with this function alone.
 * @throws RequestError as {@link decodeToFloat64}
 */
export function decodeTensor(
  tensor: Tensor,
  first = 0,
  end = tensor.data.length,
  out?: Float64Array,
): Float64Array {
  const values = decodeToFloat64(tensor.data, formats[tensor.format], out, first, end);
  multiplyByScales(tensor, values, first, end);
  return values;
}

/** Whether one of the first `count` numbers is an infinity or a NaN. */
function hasSpecial(values: Float64Array, count: number): boolean {
  // x − x is 0 for finite numbers and NaN for others; four sums, since one would wait for each of its additions.
  let [a, b, c, d] = [0, 0, 0, 0];
  let at = 0;
  for (; at + 4 <= count; at += 4) {
    a += values[at] - values[at];
    b += values[at + 1] - values[at + 1];
    c += values[at + 2] - values[at + 2];
    d += values[at + 3] - values[at + 3];
  }
  for (; at < count; at++) a += values[at] - values[at];
  return Number.isNaN(a + b + c + d);
}

/** As {@link decodeTensor}, with 0 in place of infinities and NaNs. */
export function decodeFinite(
  tensor: Tensor,
  first: number,
  end: number,
  out?: Float64Array,
): Float64Array {
  const count = end - first;
  const values = out ?? new Float64Array(count);
  const isKnownFinite = decodeTold(tensor.data, formats[tensor.format], values, first, end);
  multiplyByScales(tensor, values, first, end);
  if (!isKnownFinite && hasSpecial(values, count))
    for (let at = 0; at < count; at++) if (!Number.isFinite(values[at])) values[at] = 0;
  return values;
}

/**
 * Decodes elements `first` to `end` of a tensor, rows of `dim` elements, to the beginning of `out`, and measures the rows on the way.
 * @returns the measures; null where an element is not finite or the loops do not take the tensor: `out` may be anything then
 */
export function decodeMeasured(
  tensor: Tensor,
  first: number,
  end: number,
  dim: number,
  out: Float64Array,
): RowMeasures | null {
  const format = formats[tensor.format];
  if (!isShort(format) || tensor.scales !== undefined) return null;
  checkRequest(tensor.data, format, out, first, end);
  const bits = patternsOf(tensor.data, format) as Uint16Array;
  return measureShort(format, bits, { start: first, end }, dim, out);
}

/** Significand bits that hold every element of a tensor, scales included. */
export function tensorPrecision({ format, scales }: Pick<Tensor, 'format' | 'scales'>): number {
  return formats[format].precision + (scales?.precision ?? 0);
}

/**
 * An upper bound of the value of a tensor's smallest number with a full significand: below it, elements have fewer
 * bits than their format.
 */
export function smallestNormalOf({ format, scales }: Pick<Tensor, 'format' | 'scales'>): number {
  return smallestNormal(formats[format]) * (scales?.largest ?? 1);
}

/** Whether fp32 cannot hold some of a tensor's numbers: a kernel that works in fp32 rounds them. */
export function isBeyondFloat32(tensor: Pick<Tensor, 'format' | 'scales'>): boolean {
  return tensorPrecision(tensor) > formats.fp32.precision;
}

/** The scales of a tensor made of some rows of another: row i is row `rowAt(i)`, counted over all leading axes. */
export function scalesOfRows(
  { shape, scales }: Pick<Tensor, 'shape' | 'scales'>,
  leading: readonly number[],
  rowAt: (index: number) => number,
): TensorScales | undefined {
  if (scales === undefined) return undefined;
  const count = leading.reduce((product, size) => product * size, 1);
  const factors = scales.factors.map((all): ScaleFactors => {
    const columns = all.shape[shape.length - 1];
    const block = all.blocks[shape.length - 1];
    const origins = Int32Array.from({ length: count }, (_, i) => firstFactor(all, shape, rowAt(i)));
    const isShared = origins.every((origin) => origin === origins[0]);
    const kept = isShared ? origins.subarray(0, 1) : origins;
    const values = new Float64Array(kept.length * columns);
    kept.forEach((origin, i) =>
      values.set(all.values.subarray(origin, origin + columns), i * columns),
    );
    return {
      ...all,
      values,
      shape: [...leading.map((size) => (isShared ? Math.min(size, 1) : size)), columns],
      blocks: [...leading.map((size) => (isShared ? Math.max(size, 1) : 1)), block],
    };
  });
  return { ...scales, factors };
}

/** The first columns of a tensor, their factors too. Elements are copied. */
export function firstColumns(tensor: Tensor, columns: number): Tensor {
  const { format, shape, data, scales } = tensor;
  const dim = shape.at(-1) ?? 0;
  const words = patternsOf(data, formats[format]);
  const perElement = words.length / Math.max(1, data.length);
  const [from, to] = [dim * perElement, columns * perElement];
  const rows = dim === 0 ? 0 : data.length / dim;
  const kept = patternsOf(allocateStorage(formats[format], rows * columns), formats[format]);
  for (let row = 0; row < rows; row++)
    kept.set(words.subarray(row * from, row * from + to), row * to);
  const plain: Tensor = {
    format,
    shape: [...shape.slice(0, -1), columns],
    data: storageOf(formats[format], kept),
  };
  if (scales === undefined) return plain;
  const last = shape.length - 1;
  const factors = scales.factors.map((all): ScaleFactors => {
    const block = Math.min(all.blocks[last], Math.max(columns, 1));
    const [count, left] = [all.shape[last], Math.ceil(columns / block)];
    return {
      ...all,
      values: all.values.filter((_, i) => i % count < left),
      shape: [...all.shape.slice(0, -1), left],
      blocks: [...all.blocks.slice(0, -1), block],
    };
  });
  return { ...plain, scales: { ...scales, factors } };
}

/** Rows [first, first + rows) of a tensor, as [1, 1, rows, dim]; shares memory with it. */
export function sliceRows(tensor: Tensor, first: number, rows: number): Tensor {
  const dim = tensor.shape.at(-1) ?? 0;
  const data = tensor.data.subarray(first * dim, (first + rows) * dim);
  const scales = scalesOfRows(tensor, [1, 1, rows], (row) => first + row);
  const shape = [1, 1, rows, dim];
  return { format: tensor.format, shape, data, ...(scales !== undefined && { scales }) };
}
