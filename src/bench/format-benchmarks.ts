import {
  decodeToFloat64,
  encodeFromFloat32,
  encodeFromFloat64,
  formats,
  type FormatName,
} from '../formats/index.js';
import { rateOf, type Benchmark } from './benchmark.js';
import { normalValues } from './random-values.js';

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
