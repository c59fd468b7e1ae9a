import { formats, round } from '../../../src/formats/index.js';

/** Numbers of fp16 over many octaves, of both signs, with zeros and subnormals among them. */
export function drawNumbers(count: number, seed: number): Float64Array {
  let state = seed;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  return Float64Array.from({ length: count }, () => {
    const exponent = Math.floor(uniform() * 28) - 22;
    const value = uniform() < 0.05 ? 0 : (uniform() - 0.5) * 2 ** exponent;
    return round(formats.fp16, value);
  });
}
