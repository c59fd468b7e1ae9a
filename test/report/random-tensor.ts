import { encodeFromFloat64, formats, type FormatName } from '../../src/formats/index.js';
import type { Tensor } from '../../src/problem/index.js';

/** A tensor of values by index, rounded to the format. */
export function tensor(
  format: FormatName,
  shape: readonly number[],
  value: (index: number) => number,
): Tensor {
  const size = shape.reduce((a, b) => a * b, 1);
  const values = Float64Array.from({ length: size }, (_, index) => value(index));
  return { format, shape, data: encodeFromFloat64(formats[format], values) };
}

/** Pseudorandom numbers in [−1, 1) by a multiplicative congruential generator. */
export function pseudorandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return (2 * state) / 2147483647 - 1;
  };
}
