import { exp2PolynomialBits, createExp2PolynomialArray } from '../../kernels/index.js';
import { exp2Rounded, log2Rounded } from '../../oracles/index.js';
import { formats } from '../formats/index.js';
import {
  createConversionArray,
  createSpecialFunctionArrays,
  specialFunctions,
  type Float32SpecialFunctionName,
} from '../hardware/index.js';
import { rateOf, type Benchmark } from './benchmark.js';
import { normalValues } from './normal-problem.js';

const elements = 1e7;
const plainElements = 1e6;
const quickElements = 1e4;

/** Functions of the unit, with the sign of the inputs that attention gives them. */
const measured: readonly { readonly name: Float32SpecialFunctionName; readonly sign: 1 | -1 }[] = [
  { name: 'ex2.approx.ftz.f32', sign: -1 },
  { name: 'rcp.approx.ftz.f32', sign: 1 },
  { name: 'lg2.approx.ftz.f32', sign: 1 },
];

/** Magnitudes of normal numbers of standard deviation 4, all of one sign. */
function inputsOf(count: number, sign: 1 | -1): Float32Array {
  return Float32Array.from(normalValues(count, 1), (x) => sign * 4 * Math.abs(x));
}

function benchmark(
  name: string,
  elements: number,
  sign: 1 | -1,
  prepare: (inputs: Float32Array) => () => void,
): Benchmark {
  return {
    quantities: [{ name, unit: 'results/s', better: 'higher' }],
    prepare: (quick) => {
      const count = quick ? quickElements : elements;
      return rateOf(count, prepare(inputsOf(count, sign)));
    },
  };
}

/** A function on an array of bit patterns. */
function onArray(create: () => (inputs: Uint32Array, results: Uint32Array) => void) {
  return (inputs: Float32Array) => {
    const evaluate = create();
    const bits = new Uint32Array(inputs.buffer);
    const results = new Uint32Array(bits.length);
    return () => evaluate(bits, results);
  };
}

/** A function of one number or bit pattern, called for each. */
function oneByOne<T extends Float32Array | Uint32Array>(
  view: (inputs: Float32Array) => T,
  evaluate: (input: number) => number,
) {
  return (inputs: Float32Array) => {
    const values = view(inputs);
    const results = new Float64Array(values.length);
    return () => {
      for (let i = 0; i < values.length; i++) results[i] = evaluate(values[i]);
    };
  };
}

const bitsOf = (inputs: Float32Array): Uint32Array => new Uint32Array(inputs.buffer);
const valuesOf = (inputs: Float32Array): Float32Array => inputs;

/**
 * Benchmarks of the scalar instructions, in WebAssembly on arrays and by their definition, one by
 * one; and of the correctly rounded functions that they are measured against.
 */
export const scalarBenchmarks: readonly Benchmark[] = [
  ...measured.map(({ name, sign }) =>
    benchmark(
      name,
      elements,
      sign,
      onArray(() => createSpecialFunctionArrays()[name]),
    ),
  ),
  benchmark(
    'cvt.rn.bf16x2.f32',
    elements,
    1,
    onArray(() => createConversionArray('cvt.rn.bf16x2.f32')),
  ),
  benchmark(
    'fa4_ex2_poly3',
    elements,
    -1,
    onArray(() => createExp2PolynomialArray()),
  ),
  ...measured.map(({ name, sign }) =>
    benchmark(
      `${name} one by one`,
      plainElements,
      sign,
      oneByOne(bitsOf, specialFunctions[name].evaluate),
    ),
  ),
  benchmark(
    'fa4_ex2_poly3 one by one',
    plainElements,
    -1,
    oneByOne(valuesOf, (x) => exp2PolynomialBits(x)),
  ),
  benchmark(
    'exp2 rounded to fp32',
    plainElements,
    -1,
    oneByOne(valuesOf, (x) => exp2Rounded(x, formats.fp32)),
  ),
  benchmark(
    'log2 rounded to fp32',
    plainElements,
    1,
    oneByOne(valuesOf, (x) => log2Rounded(x, formats.fp32)),
  ),
];
