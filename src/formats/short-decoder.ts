import { createAllocator, instantiator, lazily } from '../reuse.js';
import { firstSpecialMagnitude, type NumberFormat } from './format.js';
import { binary } from './short-formats.generated.js';

/** The loops; addresses are of their memory, counts multiples of 8. Their source documents them. */
interface ShortKernels {
  readonly memory: WebAssembly.Memory;
  widenBfloat16(source: number, target: number, count: number): void;
  widenHalf(source: number, target: number, count: number): void;
  largestPattern(source: number, count: number): number;
  measureRows(
    patterns: number,
    values: number,
    rows: number,
    dim: number,
    squares: number,
    magnitudes: number,
  ): void;
}

const instantiate = instantiator<ShortKernels>(binary, 'the formats of 16 bits');

/** Elements that are decoded at once: their values stay in the second-level cache. */
const chunk = 2 ** 13;
/** Elements that are measured at once, at most, and their rows and columns. */
const mostElements = 2 ** 15;
const mostRows = 64;
const mostColumns = 2 ** 10;
/** Elements that a loop may go on to behind the last: of three rows, or of a vector. */
const slack = 3 * mostColumns;

/** Measures of some rows of a tensor: views of memory that the next measurement overwrites. */
export interface RowMeasures {
  /** Σ x² of each row, in the order of its columns. */
  readonly squares: Float64Array;
  /** The largest magnitude of each row, the least, and the least that is not 0; 0 for a row of zeros. */
  readonly largest: Float64Array;
  readonly least: Float64Array;
  readonly smallest: Float64Array;
  /** The largest magnitude of each column. */
  readonly columns: Float64Array;
}

/** The loops with room for a chunk of elements and the measures of its rows. */
class ShortDecoder {
  readonly #kernels = instantiate();
  readonly #source: Block<Uint16Array>;
  readonly #values: Block<Float64Array>;
  readonly #squares: Block<Float64Array>;
  /** Patterns of magnitudes: three of each row, as `RowMeasures` has them, and one of each column; and their values. */
  readonly #patterns: Block<Uint16Array>;
  readonly #magnitudes: Block<Float64Array>;

  constructor() {
    const { memory } = this.#kernels;
    const measures = 3 * mostRows + mostColumns;
    const elements = mostElements + slack;
    const numbers = elements + mostRows + measures;
    const { allocate } = createAllocator(memory, 8 * numbers + 2 * (elements + measures));
    const shorts = (length: number) => {
      const address = allocate(2 * length);
      return { address, view: new Uint16Array(memory.buffer, address, length) };
    };
    const doubles = (length: number) => {
      const address = allocate(8 * length);
      return { address, view: new Float64Array(memory.buffer, address, length) };
    };
    this.#source = shorts(elements);
    this.#values = doubles(elements);
    this.#squares = doubles(mostRows);
    this.#patterns = shorts(measures);
    this.#magnitudes = doubles(measures);
  }

  /** Decodes patterns [start, end) to the beginning of `values`; whether all are finite. */
  decode(format: NumberFormat, bits: Uint16Array, range: Range, values: Float64Array): boolean {
    let most = 0;
    for (let first = range.start; first < range.end; first += chunk) {
      const count = Math.min(chunk, range.end - first);
      most = Math.max(most, this.#load(format, bits, first, count));
      values.set(this.#values.view.subarray(0, count), first - range.start);
    }
    return most < firstSpecialMagnitude(format);
  }

  /** Decodes rows of `dim` patterns, one after the other from `start` on, and measures them; null where not all are finite. */
  measure(
    format: NumberFormat,
    bits: Uint16Array,
    range: Range,
    dim: number,
    values: Float64Array,
  ): RowMeasures | null {
    const count = range.end - range.start;
    const rows = count / dim;
    const most = this.#load(format, bits, range.start, count);
    values.set(this.#values.view.subarray(0, count));
    if (most >= firstSpecialMagnitude(format)) return null;
    const patterns = this.#patterns.address;
    const from = [this.#source.address, this.#values.address] as const;
    this.#kernels.measureRows(...from, rows, dim, this.#squares.address, patterns);
    this.#widen(format, patterns, this.#magnitudes.address, 3 * mostRows + dim);
    const ofRows = (i: number) => this.#magnitudes.view.subarray(i * mostRows, i * mostRows + rows);
    return {
      squares: this.#squares.view.subarray(0, rows),
      largest: ofRows(0),
      least: ofRows(1),
      smallest: ofRows(2),
      columns: this.#magnitudes.view.subarray(3 * mostRows, 3 * mostRows + dim),
    };
  }

  /** Decodes a chunk into the memory; the pattern of its largest magnitude. */
  #load(format: NumberFormat, bits: Uint16Array, first: number, count: number): number {
    const { address, view } = this.#source;
    view.set(bits.subarray(first, first + count));
    if (count % 8 !== 0) view.fill(0, count, count + 8);
    this.#widen(format, address, this.#values.address, count);
    return this.#kernels.largestPattern(address, count);
  }

  #widen({ name }: NumberFormat, source: number, target: number, count: number): void {
    if (name === 'bf16') this.#kernels.widenBfloat16(source, target, count);
    else this.#kernels.widenHalf(source, target, count);
  }
}

/** A block of the memory. */
interface Block<View> {
  readonly address: number;
  readonly view: View;
}

/** Elements [start, end) of a tensor. */
interface Range {
  readonly start: number;
  readonly end: number;
}

const decoder = lazily(() => new ShortDecoder());

/** Whether a format is one of those of 16 bits, which the loops take. */
export function isShort({ name }: NumberFormat): boolean {
  return name === 'bf16' || name === 'fp16';
}

/**
 * Decodes elements [start, end) of an array of patterns of a format of 16 bits to the beginning of `values`.
 * @returns whether all of them are finite
 */
export function decodeShort(
  format: NumberFormat,
  bits: Uint16Array,
  range: Range,
  values: Float64Array,
): boolean {
  return decoder().decode(format, bits, range, values);
}

/**
 * Decodes rows of `dim` elements as `decodeShort` does, and measures them.
 * @returns null where an element is not finite, or where the loops do not take so many rows or columns: `values` may be anything then
 */
export function measureShort(
  format: NumberFormat,
  bits: Uint16Array,
  range: Range,
  dim: number,
  values: Float64Array,
): RowMeasures | null {
  const count = range.end - range.start;
  const isTaken = dim % 8 === 0 && dim > 0 && dim <= mostColumns && count % dim === 0;
  if (!isTaken || count > mostElements || count > mostRows * dim || count === 0) return null;
  return decoder().measure(format, bits, range, dim, values);
}
