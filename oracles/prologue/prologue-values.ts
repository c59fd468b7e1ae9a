import {
  createRotation,
  type CachePart,
  type NormFormat,
  type Prologue,
  type RootMeanSquareNorm,
} from '../../src/problem/index.js';
import {
  decodeTensor,
  formats,
  round,
  smallestNormal,
  smallestSubnormal,
  unitRoundoff,
  type Tensor,
} from '../../src/formats/index.js';

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

/** A vector with the radius of each of its numbers. */
interface Ball {
  readonly values: Float64Array;
  readonly radius: Float64Array;
}

/**
 * A vector whose numbers are rounded to nearest: rounding is monotone, so that the ends of each span round to the ends of its image.
 * A span with an end beyond the format has no bound.
 */
function stored({ values, radius }: Ball, format: NormFormat): Ball {
  const ends = ([1, -1] as const).map((side) =>
    values.map((x, i) => round(formats[format], x + side * radius[i])),
  );
  const [high, low] = ends;
  const isBounded = (i: number) => Number.isFinite(high[i] - low[i]);
  return {
    values: values.map((x, i) => (isBounded(i) ? (low[i] + high[i]) / 2 : x)),
    radius: values.map((_, i) => (isBounded(i) ? (high[i] - low[i]) / 2 : Infinity)),
  };
}

/** The root that a norm divides by: with ε under it, or, of a kernel with that fault, beside it. */
function rootOf(sum: number, columns: number, { epsilon, form }: RootMeanSquareNorm): number {
  const mean = form === 'sum' ? sum : sum / columns;
  return form === 'epsilon-outside' ? Math.sqrt(mean) + epsilon : Math.sqrt(mean + epsilon);
}

/**
 * A norm of numbers within radii. The root is at most the quadratic mean ρ of the radii off, so that a quotient x / r is off by
 * |δ| / r + |x| ρ / (r (r − ρ)).
 */
function normed(
  { values, radius }: Ball,
  gains: Float64Array,
  { norm, rounding }: Prologue,
  tiny: number,
): Ball {
  if (norm === null) return { values, radius };
  const columns = values.length;
  const mean = values.reduce((total, x) => total + x, 0) / columns;
  const centred = norm.form === 'centred' ? values.map((x) => x - mean) : values;
  const sum = norm.squares ?? centred.reduce((total, x) => total + x * x, 0);
  const root = rootOf(sum, columns, norm);
  const carried = Math.sqrt(radius.reduce((total, x) => total + x * x, 0) / columns);
  // Formats other than fp32 round the number before the gain and behind it.
  const coarse = rounding === 'fp32' ? 0 : 2 * room * unitRoundoff(formats[rounding]);
  const error = normError(columns, root * root) + coarse;
  const least = root - carried;
  const made = {
    values: centred.map((x, i) => (x / root) * gains[i]),
    radius: centred.map((x, i) => {
      const gain = Math.abs(gains[i]);
      const given = radius[i] / root + (Math.abs(x) * carried) / (root * least);
      const off = carried === 0 ? 0 : least > 0 ? given * gain : Infinity;
      return off + ((Math.abs(x) / root) * gain + off) * error + 2 * tiny * (1 + gain);
    }),
  };
  return norm.format === undefined ? made : stored(made, norm.format);
}

/**
 * Rotates numbers within radii. Two products and a sum are rounded, with or without fused multiply-add: 2 units of the sizes of both
 * products; tables that a kernel makes itself are off by their own radii besides.
 */
function createTurn({ rotary, rounding }: Prologue, columns: number, tiny: number) {
  if (rotary === null) return (ball: Ball) => ball;
  const first = rotary.first ?? 0;
  const rotation = createRotation(rotary.tables, columns - first);
  const error = 2 * room * unitRoundoff(formats[rounding]);
  const { errors } = rotary;
  // Tables of radii rotate as tables do: |x| · rcos + |y| · rsin.
  const ofErrors =
    errors === undefined
      ? null
      : createRotation(
          {
            cos: { ...rotary.tables.cos, format: 'fp64', data: errors.cos },
            sin: { ...rotary.tables.sin, format: 'fp64', data: errors.sin },
          },
          columns - first,
        );
  return ({ values, radius }: Ball, token: number): Ball => {
    const row = rotary.positions[token];
    const [x, r] = [values.slice(first), radius.slice(first)];
    const bounded = x.map((one, i) => Math.abs(one) + r[i]);
    const sizes = rotation.sizes(bounded, row, rotary.layout);
    const carried = rotation.sizes(r, row, rotary.layout);
    const ofTables = ofErrors?.sizes(bounded, row, rotary.layout);
    const turned = rotation.turn(x, row, rotary.layout, rotary.times ?? 1);
    const [all, off] = [values.slice(), radius.slice()];
    // A column that is not rotated stays as it is.
    for (let i = 0; i < 2 * rotation.pairs; i++) {
      all[first + i] = turned[i];
      off[first + i] =
        carried[i] + error * sizes[i] + 3 * tiny + (ofTables?.[i] ?? 0) * (1 + error);
    }
    return { values: all, radius: off };
  };
}

/** Numbers times a factor that a kernel has in fp32: one rounding of it, and one of the product. */
function createFactor({ factor = 1, rounding }: Prologue, tiny: number): (ball: Ball) => Ball {
  if (factor === 1) return (ball) => ball;
  const error = room * (unit + unitRoundoff(formats[rounding]));
  return ({ values, radius }) => ({
    values: values.map((x) => x * factor),
    radius: radius.map((r, i) => (r + (Math.abs(values[i]) + r) * error) * Math.abs(factor) + tiny),
  });
}

/** Squares of all heads of a token, for a kernel whose norm is over them; null for one that is over a head. */
function squaresOfTokens(values: Float64Array, heads: number, columns: number): Float64Array {
  const sums = new Float64Array(values.length / Math.max(1, heads * columns));
  values.forEach((x, i) => (sums[Math.floor(i / (heads * columns))] += (x * x) / heads));
  return sums;
}

/**
 * The numbers that a right kernel may have behind a norm, a rotation and a factor: exact numbers, and the roundings of its arithmetic
 * around them. Exact where there is none of these.
 * @param input [tokens, heads, columns]
 */
export function prologueValues(input: Tensor, prologue: Prologue | null): Spans {
  const values = decodeTensor(input);
  if (prologue === null) return { low: values, high: values };
  const [, heads, columns] = input.shape;
  const { norm, order } = prologue;
  const tiny = tinyError(prologue);
  const gains = gainsOf(norm?.gain ?? null, heads, columns, norm?.offset ?? 0);
  const turn = createTurn(prologue, columns, tiny);
  const scale = createFactor(prologue, tiny);
  const squares = norm?.form === 'token' ? squaresOfTokens(values, heads, columns) : null;
  const [low, high] = [new Float64Array(values.length), new Float64Array(values.length)];
  for (let row = 0; row * columns < values.length; row++) {
    const at = row * columns;
    const [token, head] = [Math.floor(row / heads), row % heads];
    const ofToken =
      norm === null || squares === null
        ? prologue
        : { ...prologue, norm: { ...norm, squares: squares[token] } };
    const own = gains.subarray(head * columns, (head + 1) * columns);
    const normOf = (ball: Ball) => normed(ball, own, ofToken, tiny);
    const given = { values: values.slice(at, at + columns), radius: new Float64Array(columns) };
    const made = order === 'rope-norm' ? normOf(turn(given, token)) : turn(normOf(given), token);
    const ball = scale(made);
    for (let i = 0; i < columns; i++) {
      low[at + i] = ball.values[i] - ball.radius[i];
      high[at + i] = ball.values[i] + ball.radius[i];
    }
  }
  return { low, high };
}

/** The numbers that a right kernel may have before it divides and stores them, from the input of a part. */
export function writtenValues({ input, prologue }: Pick<CachePart, 'input' | 'prologue'>): Spans {
  return prologueValues(input, prologue);
}
