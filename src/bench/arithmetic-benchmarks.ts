import {
  addFloat32,
  type Float32Options,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
} from '../arith/index.js';
import { type Benchmark, rateOf } from './benchmark.js';
import { normalValues } from './normal-problem.js';
import {
  decodeToFloat64,
  encodeFromFloat32,
  encodeFromFloat64,
  type FormatName,
  formats,
} from '../formats/index.js';

const operationCount = 1e7;
const quickOperationCount = 1e4;

type Operation = (a: number, b: number, c: number, options?: Float32Options) => number;

const operations: readonly { readonly name: string; readonly operation: Operation }[] = [
  { name: 'add', operation: (a, b, _, options) => addFloat32(a, b, options) },
  { name: 'mul', operation: (a, b, _, options) => multiplyFloat32(a, b, options) },
  { name: 'fma', operation: fusedMultiplyAddFloat32 },
];

const modes: readonly { readonly name: string; readonly options?: Float32Options }[] = [
  { name: 'rn' },
  { name: 'rm.ftz', options: { rounding: 'down', flushToZero: true } },
];

/** fp32 operations one by one, named as in PTX, on normal numbers. */
export const arithmeticBenchmarks: readonly Benchmark[] = operations.flatMap(
  ({ name, operation }) =>
    modes.map((mode): Benchmark => ({
      quantities: [{ name: `${name}.${mode.name}.f32`, unit: 'operations/s', better: 'higher' }],
      prepare: (quick) => {
        const count = quick ? quickOperationCount : operationCount;
        const [a, b, c] = [1, 2, 3].map((seed) => Float32Array.from(normalValues(count, seed)));
        const results = new Float32Array(count);
        return rateOf(count, () => {
          for (let i = 0; i < count; i++) results[i] = operation(a[i], b[i], c[i], mode.options);
        });
      },
    })),
);

const elements = 1e7;
const quickElements = 1e4;

const names = Object.keys(formats) as FormatName[];
const convertedNames = names.filter((name) => name !== 'fp64' && name !== 'fp32');

function perElement(name: string, prepare: (values: Float64Array) => () => void): Benchmark {
  return {
    quantities: [{ name, unit: 'elements/s', better: 'higher' }],
    prepare: (quick) => {
      const count = quick ? quickElements : elements;
      return rateOf(count, prepare(normalValues(count, 1)));
    },
  };
}

function decoding(name: FormatName): Benchmark {
  return perElement(`decode ${name} to fp64`, (values) => {
    const stored = encodeFromFloat64(formats[name], values);
    return () => void decodeToFloat64(stored, formats[name], values);
  });
}

function encoding(name: FormatName): Benchmark {
  return perElement(`encode fp64 as ${name}`, (values) => {
    return () => void encodeFromFloat64(formats[name], values);
  });
}

function conversion(name: FormatName): Benchmark {
  return perElement(`convert fp32 to ${name}`, (values) => {
    const singles = Float32Array.from(values);
    return () => void encodeFromFloat32(formats[name], singles);
  });
}

/** Whole arrays of 10^7 normal numbers: decoded to fp64, encoded from it, converted from fp32. */
export const formatBenchmarks: readonly Benchmark[] = [
  ...names.map(decoding),
  ...names.map(encoding),
  ...convertedNames.map(conversion),
];
