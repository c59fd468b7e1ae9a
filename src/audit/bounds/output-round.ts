import { formats, ulp, type FormatName } from '../../formats/index.js';

/** Half an ulp of `format` at a value known to within `error`: the rounding of an output. */
export function outputRounding(format: FormatName, value: number, error: number): number {
  const table = formats[format];
  return ulp(table, Math.min(Math.abs(value) + error, table.maxFinite)) / 2;
}
