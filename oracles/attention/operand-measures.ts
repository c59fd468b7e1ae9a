import type { RowMeasures } from '../../src/formats/index.js';

/** Keys per tile of the fp64 level; operand statistics are kept per tile of this many rows. */
export const tileRows = 64;

/** What the error analysis needs of a tile: the largest norm, the largest magnitude and the least lowestBit of its rows. */
export interface TileMeasures {
  readonly norm: number;
  readonly largest: number;
  readonly lowestBit: number;
}

/** The exponent field of fp64, from the high word of a number. */
function exponentFieldOf(highWord: number): number {
  return (highWord >>> 20) & 0x7ff;
}

/** The `bit` of 2^bit, a divisor of a finite nonzero number as of all numbers of its format with its exponent. */
export function lowestBit(highWord: number, precision: number): number {
  const field = exponentFieldOf(highWord);
  return field === 0 ? -1074 : field - 1022 - precision;
}

/** What a pass over an operand finds, by row, by tile and by column. */
export interface Measures {
  readonly special: Uint8Array;
  readonly norm: Float64Array;
  readonly largest: Float64Array;
  readonly lowestBit: Float64Array;
  readonly columnLargest: Float64Array;
  /** By tile; undefined for one that is not measured yet. */
  readonly tiles: (TileMeasures | undefined)[];
}

/** The measures of an operand of which no tile is measured yet. */
export function emptyMeasures(rows: number, dim: number): Measures {
  return {
    special: new Uint8Array(rows),
    norm: new Float64Array(rows),
    largest: new Float64Array(rows),
    lowestBit: new Float64Array(rows),
    columnLargest: new Float64Array(dim),
    tiles: new Array<undefined>(Math.ceil(rows / tileRows)),
  };
}

/** Takes the measures of a tile whose rows were measured as they were decoded: those of `measureTile`. */
export function takeMeasures(
  found: RowMeasures,
  tile: number,
  dim: number,
  precision: number,
  measures: Measures,
): void {
  const { norm, largest, lowestBit: lowest, columnLargest } = measures;
  const first = tile * tileRows;
  const { buffer, byteOffset, length } = found.smallest;
  const words = new Uint32Array(buffer, byteOffset, 2 * length);
  for (let i = 0; i < length; i++) {
    norm[first + i] = normOfSquares(found.squares[i], dim);
    largest[first + i] = found.largest[i];
    lowest[first + i] = found.smallest[i] === 0 ? Infinity : lowestBit(words[2 * i + 1], precision);
  }
  for (let c = 0; c < dim; c++)
    if (found.columns[c] > columnLargest[c]) columnLargest[c] = found.columns[c];
}

/** An upper bound of the norm of `dim` numbers: the sum of their squares and its root, each rounded up by far more than it can be off. */
function normOfSquares(sum: number, dim: number): number {
  return Math.sqrt(sum) * (1 + 2 ** -40) + dim * 2 ** -530;
}

/** Measures the rows of a tile, and replaces non-finite elements by 0. */
export function measureTile(
  values: Float64Array,
  tile: number,
  dim: number,
  precision: number,
  measures: Measures,
): void {
  const { special, norm, largest, columnLargest } = measures;
  const words = new Uint32Array(values.buffer, values.byteOffset, 2 * values.length);
  for (let start = 0, row = tile * tileRows; start < values.length; start += dim, row++) {
    let sumOfSquares = 0;
    let magnitude = 0;
    let least = Infinity;
    let leastAt = start;
    for (let at = start, column = 0; column < dim; at++, column++) {
      const size = Math.abs(values[at]);
      if (!(size < Infinity)) {
        special[row] = 1;
        values[at] = 0;
        continue;
      }
      sumOfSquares += size * size;
      if (size > magnitude) magnitude = size;
      if (size > columnLargest[column]) columnLargest[column] = size;
      if (size < least && size > 0) {
        least = size;
        leastAt = at;
      }
    }
    norm[row] = normOfSquares(sumOfSquares, dim);
    largest[row] = magnitude;
    // The smaller a number is, the lower is the last bit that its format has for it.
    const bit = least === Infinity ? Infinity : lowestBit(words[2 * leastAt + 1], precision);
    measures.lowestBit[row] = bit;
  }
}

/** The measures of a tile of rows [first, end). */
export function tileOf(measures: Measures, first: number, end: number): TileMeasures {
  let [norm, largest, lowestBit] = [0, 0, Infinity];
  for (let row = first; row < end; row++) {
    norm = Math.max(norm, measures.norm[row]);
    largest = Math.max(largest, measures.largest[row]);
    lowestBit = Math.min(lowestBit, measures.lowestBit[row]);
  }
  return { norm, largest, lowestBit };
}
