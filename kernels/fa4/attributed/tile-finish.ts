import { decodeToFloat64, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import type { Fa4OutFormat } from '../forward-formats.js';
import { emulatedNormalise, exactNormalise } from './normalise.js';
import type { LogSumExp } from './log-sum-exp.js';
import type { EmulatedTechniques } from './techniques.js';

/** Divides O [rows × columns] by the row sums: the outputs [rows × vDim] without the padding. */
export function normalisedOutput(
  sums: Float64Array,
  rowSums: Float64Array,
  size: { readonly rows: number; readonly columns: number; readonly vDim: number },
  emulated: EmulatedTechniques,
): Float64Array {
  const { rows, columns, vDim } = size;
  const normalise = emulated.has('normalise') ? emulatedNormalise : exactNormalise;
  const out = new Float64Array(rows * vDim);
  for (let row = 0; row < rows; row++) {
    const of = out.subarray(row * vDim, (row + 1) * vDim);
    of.set(sums.subarray(row * columns, row * columns + vDim));
    normalise(of, rowSums[row]);
  }
  return out;
}

/** The outputs rounded once to the format, to nearest even. */
export function roundedOutput(out: Float64Array, format: Fa4OutFormat): Float64Array {
  return decodeToFloat64(encodeFromFloat64(formats[format], out), formats[format]);
}

/** The LSEs of a tile's rows. */
export function rowLogSumExps(
  maxima: Float64Array,
  rowSums: Float64Array,
  rows: number,
  logSumExp: LogSumExp,
): Float64Array {
  return Float64Array.from({ length: rows }, (_, row) => logSumExp(maxima[row], rowSums[row]));
}
