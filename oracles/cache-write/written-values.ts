import { cachePartShape, type CachePart, type Prologue } from '../../src/problem/index.js';
import {
  decodeTensor,
  formats,
  smallestNormal,
  smallestSubnormal,
  unitRoundoff,
  type Tensor,
} from '../../src/formats/index.js';
import { createRotation } from '../../src/problem/index.js';

/** Spans of numbers, [tokens, heads, columns]: what a kernel has before it stores them. One array where all are exact. */
export interface Spans {
  readonly low: Float64Array;
  readonly high: Float64Array;
}

/** Unit roundoff of fp32, in which kernels sum. */
const unit = unitRoundoff(formats.fp32);

/** Room for products of errors and for the fp64 arithmetic here, whose errors are 2^-29 of those of fp32. */
const room = 1.01;

/** The absolute error of an operation whose result is tiny: fp32 and bf16 may be flushed, fp16 is not. */
function tinyError({ rounding }: Prologue): number {
  return rounding === 'fp16' ? smallestSubnormal(formats.fp16) : smallestNormal(formats.fp32);
}

/** The gains of heads, [heads, columns]. */
function gainsOf(
  gain: Tensor | null,
  heads: number,
  columns: number,
  offset: number,
): Float64Array {
  if (gain === null) return new Float64Array(heads * columns).fill(1);
  const given = decodeTensor(gain);
  return Float64Array.from({ length: heads * columns }, (_, i) => given[i % given.length] + offset);
}

/**
 * The relative error of a normed number in fp32. The sum of n squares errs by n units, in any order; the mean by two, the sum with
 * ε by one, and squares that are flushed by 2^-126 each; the root halves that. A reciprocal root errs by 2^-22 (of
 * rsqrt.approx.ftz.f32 the PTX ISA says 2^-22.9), and the sum and the products with it and with the gain by one unit each.
 */
function normError(columns: number, mean: number): number {
  return room * (((columns + 3) * unit + 2 ** -126 / mean) / 2 + 2 ** -22 + 3 * unit);
}

/** Norms a vector in place, and gives the radius of each number. */
function normed(
  vector: Float64Array,
  gains: Float64Array,
  { norm, rounding }: Prologue,
  tiny: number,
): Float64Array {
  const columns = vector.length;
  if (norm === null) return new Float64Array(columns);
  let sum = 0;
  for (const x of vector) sum += x * x;
  const mean = sum / columns + norm.epsilon;
  // Formats other than fp32 round the number before the gain and behind it.
  const coarse = rounding === 'fp32' ? 0 : 2 * room * unitRoundoff(formats[rounding]);
  const error = normError(columns, mean) + coarse;
  const root = Math.sqrt(mean);
  return vector.map((x, i, all) => {
    all[i] = (x / root) * gains[i];
    return Math.abs(all[i]) * error + 2 * tiny * (1 + Math.abs(gains[i]));
  });
}

/**
 * The numbers that a right kernel may have before it divides and stores them, from its input: exact without a prologue. A rotation
 * rounds two products and a sum, with or without fused multiply-add: 2 units of the sizes of both products.
 */
export function writtenValues(part: CachePart): Spans {
  const values = decodeTensor(part.input);
  const { prologue } = part;
  if (prologue === null) return { low: values, high: values };
  const { heads, columns } = cachePartShape(part);
  const { norm, rotary, rounding } = prologue;
  const tiny = tinyError(prologue);
  const gains = gainsOf(norm?.gain ?? null, heads, columns, norm?.offset ?? 0);
  const rotation = rotary === null ? null : createRotation(rotary.tables, columns);
  const turnError = 2 * room * unitRoundoff(formats[rounding]);
  const [low, high] = [new Float64Array(values.length), new Float64Array(values.length)];
  for (let row = 0; row * columns < values.length; row++) {
    const at = row * columns;
    const head = row % heads;
    let vector: Float64Array = values.slice(at, at + columns);
    let radius = normed(
      vector,
      gains.subarray(head * columns, (head + 1) * columns),
      prologue,
      tiny,
    );
    if (rotation !== null && rotary !== null) {
      const position = rotary.positions[Math.floor(row / heads)];
      const bounded = vector.map((x, i) => Math.abs(x) + radius[i]);
      const sizes = rotation.sizes(bounded, position, rotary.layout);
      const carried = rotation.sizes(radius, position, rotary.layout);
      const turned = rotation.turn(vector, position, rotary.layout, 1);
      radius = turned.map((_, i) =>
        // A column that is not rotated stays as it is.
        i < 2 * rotation.pairs ? carried[i] + turnError * sizes[i] + 3 * tiny : radius[i],
      );
      vector = turned;
    }
    for (let i = 0; i < columns; i++) {
      low[at + i] = vector[i] - radius[i];
      high[at + i] = vector[i] + radius[i];
    }
  }
  return { low, high };
}
