import { describe, expect, it } from 'vitest';
import {
  createExp2PolynomialArray,
  polynomialErrors,
  type PolynomialDegree,
} from '../../../kernels/index.js';
import { createExp2Array, createLog2Array } from '../../../oracles/index.js';
import {
  createSpecialFunctionArrays,
  hardwareExp2Error,
  hardwareLog2Error,
  hardwareReciprocalError,
} from '../../../src/hardware/index.js';
import type { ArrayFunction } from '../../../src/simd/index.js';

const units = createSpecialFunctionArrays();
const exp2 = createExp2Array();
const log2 = createLog2Array();

const exactExp2 = (inputs: Float32Array) => {
  const values = new Float64Array(inputs.length);
  exp2(inputs, values, inputs.length);
  return values;
};
const exactLog2 = (inputs: Float32Array) => {
  const values = new Float64Array(inputs.length);
  log2(inputs, values, inputs.length);
  return values;
};

function evaluate(unit: ArrayFunction, inputs: Float32Array): Float32Array {
  const results = new Uint32Array(inputs.length);
  unit(new Uint32Array(inputs.buffer), results);
  return new Float32Array(results.buffer);
}

/** Every `stride`-th fp32 number from one to another of the same sign, by bit pattern. */
function float32Between(from: number, to: number, stride: number): Float32Array {
  const [first, last] = new Uint32Array(Float32Array.of(from, to).buffer);
  return new Float32Array(
    Uint32Array.from(
      { length: Math.floor((last - first) / stride) + 1 },
      (_, i) => first + i * stride,
    ).buffer,
  );
}

/** Errors of the unit, divided by what `unitOf` an exact result is. */
function errors(
  unit: ArrayFunction,
  inputs: Float32Array,
  exact: (inputs: Float32Array) => Float64Array,
  unitOf: (exact: number) => number,
): Float64Array {
  const got = evaluate(unit, inputs);
  return exact(inputs).map((x, i) => (got[i] - x) / unitOf(x));
}

const largest = (values: Float64Array) =>
  values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
const relative = (x: number) => Math.abs(x);

describe('ex2.approx.ftz.f32', () => {
  const unit = units['ex2.approx.ftz.f32'];
  it.each([
    ['negative', -(2 ** -60), -126],
    ['positive', 2 ** -60, 127],
  ])('is within its bound for %s exponents', (_, from, to) => {
    const inputs = float32Between(from, to, 4099);
    expect(largest(errors(unit, inputs, exactExp2, relative))).toBeLessThanOrEqual(
      hardwareExp2Error,
    );
  });

  it('nearly reaches it', () => {
    const error = largest(errors(unit, Float32Array.of(-0.9804694652557373), exactExp2, relative));
    expect(error).toBeLessThanOrEqual(hardwareExp2Error);
    expect(error).toBeGreaterThan(0.999 * hardwareExp2Error);
  });
});

/** The inputs in [−2, 0) with the largest errors, found by evaluating all of [−2, −1) and most below. */
const worstInputs: Readonly<Record<PolynomialDegree, number>> = {
  1: -1.0000001192092896,
  2: -0.8283858895301819,
  3: -0.8991528749465942,
  4: -0.9335159659385681,
  5: -0.2789306342601776,
};

describe.each([1, 2, 3, 4, 5] as const)('the polynomial of degree %i', (degree) => {
  const unit = createExp2PolynomialArray(degree);
  const bound = polynomialErrors[degree];

  it.each([
    ['negative', -(2 ** -60), -126],
    ['positive', 2 ** -60, 127 - 2 ** -10],
  ])('is within its bound for %s exponents', (_, from, to) => {
    const inputs = float32Between(from, to, 8191);
    expect(largest(errors(unit, inputs, exactExp2, relative))).toBeLessThanOrEqual(bound.largest);
  });

  it('nearly reaches it', () => {
    const error = largest(errors(unit, Float32Array.of(worstInputs[degree]), exactExp2, relative));
    expect(error).toBeLessThanOrEqual(bound.largest);
    expect(error).toBeGreaterThan(0.9999 * bound.largest);
  });

  it('has its mean over fractions spread evenly', () => {
    const points = 2 ** 18;
    const inputs = Float32Array.from({ length: points }, (_, i) => -2 + (i + 0.5) / points);
    const sum = errors(unit, inputs, exactExp2, relative).reduce((a, b) => a + b, 0);
    // Roundings of the results average out to less than 2^-25 / √points.
    expect(Math.abs(sum / points - bound.mean)).toBeLessThan(4e-4 * Math.abs(bound.mean) + 2e-10);
  });
});

describe('rcp.approx.ftz.f32', () => {
  const unit = units['rcp.approx.ftz.f32'];
  const reciprocal = (inputs: Float32Array) => Float64Array.from(inputs, (x) => 1 / x);
  it('is within its bound wherever the result is normal', () => {
    const inputs = float32Between(2 ** -126, 2 ** 126, 8191);
    expect(largest(errors(unit, inputs, reciprocal, relative))).toBeLessThanOrEqual(
      hardwareReciprocalError,
    );
  });

  it('nearly reaches it', () => {
    const error = largest(errors(unit, Float32Array.of(1.8515011072158813), reciprocal, relative));
    expect(error).toBeLessThanOrEqual(hardwareReciprocalError);
    expect(error).toBeGreaterThan(0.999 * hardwareReciprocalError);
  });
});

describe('lg2.approx.ftz.f32', () => {
  const unit = units['lg2.approx.ftz.f32'];
  const atLeastOne = (x: number) => Math.max(1, Math.abs(x));
  it('is within its bound for every normal number', () => {
    const inputs = float32Between(2 ** -126, 3.4e38, 8191);
    expect(largest(errors(unit, inputs, exactLog2, atLeastOne))).toBeLessThanOrEqual(
      hardwareLog2Error,
    );
  });

  it('comes within a tenth of it', () => {
    const error = largest(errors(unit, Float32Array.of(0.5288085341453552), exactLog2, atLeastOne));
    expect(error).toBeLessThanOrEqual(hardwareLog2Error);
    expect(error).toBeGreaterThan(0.9 * hardwareLog2Error);
  });
});
