import {
  addFloat32,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  type Float32Options,
} from '../arith/index.js';
import { rateOf, type Benchmark } from './benchmark.js';
import { normalValues } from './random-values.js';

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
