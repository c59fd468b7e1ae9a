import {
  createExp2Array,
  createLog2Array,
  exp2ArrayError,
  exp2Rounded,
  log2ArrayError,
  log2Rounded,
  reciprocalRounded,
  reciprocalSquareRootError,
  reciprocalSquareRootRounded,
  type Float64ArrayFunction,
} from '../../oracles/index.js';
import { round, unitRoundoff, formats, type NumberFormat } from '../formats/index.js';

/** The exact functions that results are compared with. */
export type ReferenceName = 'exp2' | 'log2' | 'reciprocal' | 'reciprocal square root' | 'identity';

/** An exact function, by an fp64 approximation with a proven error and by correct rounding. */
export interface Reference {
  /** As a formula of x. */
  readonly formula: string;
  /** A bound on the relative error of the fp64 values. */
  readonly relativeError: number;
  /** A function for the fp64 values; one per thread. */
  readonly create: () => Float64ArrayFunction;
  /** The exact value rounded once to nearest, ties to even; beyond the range to infinity or NaN. */
  readonly rounded: (x: number, format: NumberFormat) => number;
}

const elementwise =
  (evaluate: (x: number) => number): (() => Float64ArrayFunction) =>
  () =>
  (inputs, values, count) => {
    for (let i = 0; i < count; i++) values[i] = evaluate(inputs[i]);
  };

/** The exact functions; none of them knows an instruction model. */
export const references: Readonly<Record<ReferenceName, Reference>> = {
  exp2: {
    formula: '2^x',
    relativeError: exp2ArrayError,
    create: createExp2Array,
    rounded: exp2Rounded,
  },
  log2: {
    formula: 'log2 x',
    relativeError: log2ArrayError,
    create: createLog2Array,
    rounded: log2Rounded,
  },
  reciprocal: {
    formula: '1/x',
    relativeError: unitRoundoff(formats.fp64),
    create: elementwise((x) => 1 / x),
    rounded: reciprocalRounded,
  },
  'reciprocal square root': {
    formula: '1/√x',
    relativeError: reciprocalSquareRootError,
    create: elementwise((x) => 1 / Math.sqrt(x)),
    rounded: reciprocalSquareRootRounded,
  },
  identity: {
    formula: 'the number itself',
    relativeError: 0,
    create: elementwise((x) => x),
    rounded: (x, format) => round(format, x),
  },
};
