import type { WorkingMemories } from '../../../oracles/index.js';
import type { ErrorPoolState, PooledErrors } from './error-pool.js';
import { smoothPlaces, weightFamilies } from './row-tolerance.js';
import { instrumentCount } from './structure-entries.js';
import { instantiateLoops } from './structure-loops.js';
import { walkRows } from './structure-statistic.js';

/** A factor that weights may have before they are rounded: a family's factor times 2^shift. */
export interface OtherFactor {
  readonly family: number;
  readonly shift: number;
}

/** The largest number of such factors: sinks' and dropout's. */
const mostFactors = 6;

/** The layout of a row's record, in fp64 numbers from its beginning: assembly/rows.ts has it in bytes. */
const record = {
  toLargest: 0,
  exponents: 1,
  own: 4,
  applied: 8,
  appliedSquares: 9,
  moments: 10,
  products: 14,
  last: 18,
  first: 22,
  lost: 26,
  absolute: 30,
  weightSquares: 35,
  drift: 36,
  variance: 37,
  otherwise: 38,
  mass: 62,
  pool: 414,
  coherent: 418,
  independent: 422,
  mixed: 426,
  difference: 430,
  smooth: 434,
  squares: 562,
  end: 690,
} as const;

/** Number of elements of a tile of weights, and of its blocks: weights, factors of values, projections. */
const tileLength = walkRows * walkRows;
const tileBlocks = 2 + instrumentCount;

/** The most tiles that are kept before their weights are added, of 192 kB each: those of 2048 keys. */
const mostTiles = 32;

const tileBytes = 8 * tileLength * tileBlocks;

/** Bytes of the parameters: see assembly/rows.ts. */
const parameterBytes = 160 + 8 * walkRows;

/** The largest number of groups that a row's pool has room for from the start. */
const mostGroups = 256;

/** Bytes of a group in a pool: two slots, its number, its sums and squares. */
const groupBytes = 16 + 4 + 2 * 8 * (instrumentCount + 1);

/** The first address beyond the data of the compiler; and the bytes of a page. */
const firstUsed = 65536;
const pageBytes = 65536;

/**
 * Number of cells of a table of equal weights for each key, so that few share one by chance; and the largest number, for long
 * rows.
 */
const cellsPerKey = 16;
const mostCells = 2 ** 16;

/** Rules by which weights are summed up. */
export interface RowRules {
  /** Number of keys of the longest row. */
  readonly keys: number;
  /** Groups of weights that round alike: see `NearlyEqual`. */
  readonly groups: { readonly size: number; readonly shift: number; readonly lowest: number };
  /** The smallest normal weight, the largest loss of rounding a smaller one, and the number of roundings of a weight. */
  readonly smallest: number;
  readonly mostLost: number;
  readonly roundings: number;
  /** Number of places of an octave. */
  readonly places: number;
  /** The relative error of rounding P by place; null where that is as fine as fp32. */
  readonly roundingErrors: Float64Array | null;
  /** Whether equal weights are counted, which are added to the row sum with one error. */
  readonly countsEqual: boolean;
  readonly factors: readonly OtherFactor[];
}

/** The sums over one row's weights: views of the memory, valid until rows are begun again. */
export interface RowSums extends PooledErrors {
  readonly toLargest: number;
  /** log2 of each family's factor of the weights. */
  readonly exponents: Float64Array;
  /** O·X per instrument. */
  readonly own: Float64Array;
  /** Σ p and Σ p² of the weights that reach V. */
  readonly applied: number;
  readonly appliedSquares: number;
  /** Σ w², and per instrument Σ (w·X·v)² and Σ w·(w·X·v). */
  readonly weightSquares: number;
  readonly moments: Float64Array;
  readonly products: Float64Array;
  /** Σ of the largest loss of rounding a subnormal weight, times |X·v|, per instrument. */
  readonly lost: Float64Array;
  /** Σ of P's rounding errors where the division by the row sum comes last, and where it comes first. */
  readonly last: Float64Array;
  readonly first: Float64Array;
  /** The same relative to the other factors that weights may have: per factor, per instrument. */
  readonly otherwise: Float64Array;
  /** Σ w by coarse place, per family. */
  readonly mass: Float64Array;
  /** Σ w·X·(v − O) and Σ (w·X·v)² by coarse place relative to the largest weight, per instrument. */
  readonly smooth: Float64Array;
  readonly squares: Float64Array;
  /**
   * The error of adding the row's weights one after the other, in roundings of the row sum: the largest, from weights with many
   * alike; and the square mean of the others, Σ m² over groups of m alike (docs/theory/bounds.md, "Sums over keys"). Only where equal
   * weights are counted.
   */
  readonly drift: number;
  readonly variance: number;
  /** Three times the variance of Σ (x_j − own·w_j) e_j of an instrument, all groups coherent. */
  readonly difference: (instrument: number) => number;
}

/**
 * Sums over the weights of up to 64 rows: a record and a pool of groups for each row, in WebAssembly memory, which grows with the
 * groups that occur. Tiles are kept, and then added row by row: the pools of all rows do not fit a cache that one row's does.
 */
export class RowMemory {
  readonly kernels = instantiateLoops();
  #next = firstUsed;
  #rules: RowRules | null = null;
  #addresses = { rows: 0, tile: 0, parameters: 0, phases: 0, roundingErrors: 0, equal: 0 };
  #equalBytes = 0;
  #records: readonly Float64Array[] = [];
  #rows: readonly RowSums[] = [];
  #tiles: readonly (readonly Float64Array[])[] = [];
  #tileCount = 0;
  /** The numbers of keys of the tiles that are kept. */
  #kept: number[] = [];
  #phases = new Float64Array(0);

  /** Makes the memory, which is all 0, ready for the rows of a problem. */
  prepare(rules: RowRules): void {
    const { keys, places, roundingErrors, countsEqual, groups } = rules;
    this.#rules = rules;
    this.#next = firstUsed;
    this.#phases = new Float64Array(0);
    this.#kept = [];
    this.#tileCount = Math.max(1, Math.min(Math.ceil(keys / walkRows), mostTiles));
    const cells = Math.min(cellsPerKey * Math.max(keys, 2), mostCells);
    const equalBits = countsEqual ? Math.ceil(Math.log2(cells)) : 0;
    this.#equalBytes = countsEqual ? 2 ** equalBits : 0;
    this.#addresses = {
      rows: this.#allocate(8 * record.end * walkRows),
      tile: this.#allocate(this.#tileCount * tileBytes),
      parameters: this.#allocate(parameterBytes),
      phases: this.#allocate(8 * weightFamilies * places * instrumentCount),
      roundingErrors: this.#allocate(8 * (roundingErrors?.length ?? 0)),
      equal: this.#allocate(this.#equalBytes * walkRows),
    };
    const capacity =
      2 ** Math.ceil(Math.log2(Math.max(Math.min(keys, groups.size, mostGroups), 8)));
    for (let i = 0; i < walkRows; i++) this.#enlargePool(i, capacity);
    this.#view();
    const { buffer } = this.kernels.memory;
    const header = new Int32Array(buffer, this.#addresses.rows);
    for (let i = 0; i < walkRows; i++)
      header[2 * (i * record.end + record.pool) + 6] = this.#addresses.equal + i * this.#equalBytes;
    if (roundingErrors !== null)
      new Float64Array(buffer, this.#addresses.roundingErrors).set(roundingErrors);
    this.#writeParameters(rules, equalBits);
  }

  /** Begins one of the rows: its sums are 0. `toLargest` is the factor that makes weights relative to the largest. */
  begin(i: number, toLargest: number, exponents: readonly number[]): void {
    const numbers = this.#records[i];
    this.kernels.clearRow(this.#row(i), this.#equalBytes);
    numbers[record.toLargest] = toLargest;
    numbers.set(exponents, record.exponents);
  }

  /** The 64 × 64 weights of the next tile, the factors of values, and the projections: to be filled. */
  get tile(): readonly Float64Array[] {
    return this.#tiles[this.#kept.length];
  }

  /** Keeps the tile that was filled, of which `keys` keys count. Returns whether there is no room for another. */
  keep(keys: number): boolean {
    this.#kept.push(keys);
    return this.#kept.length === this.#tileCount;
  }

  /** Adds the weights of the tiles that are kept to the rows that `isUsed` has as 1. */
  addKept(isUsed: ArrayLike<number>): void {
    for (let i = 0; i < isUsed.length; i++)
      if (isUsed[i] === 1) this.#kept.forEach((keys, tile) => this.#add(i, tile, keys));
    this.#kept = [];
  }

  #add(i: number, tile: number, keys: number): void {
    const { parameters } = this.#addresses;
    const weights = this.#addresses.tile + tile * tileBytes + 8 * walkRows * i;
    let from = 0;
    while ((from = this.kernels.addWeights(this.#row(i), weights, keys, from, parameters)) < keys) {
      const capacity = new Int32Array(this.kernels.memory.buffer, this.#pool(i), 1)[0];
      this.#enlargePool(i, 2 * capacity);
      this.#view();
    }
  }

  /** The sums over the weights of a row. `own` must be filled before. */
  sums(i: number): RowSums {
    this.kernels.summarise(this.#row(i));
    return this.#rows[i];
  }

  /** Adds Σ w·X·v of all rows since the last call to sums by instrument, family and place. */
  takePhases(to: Float64Array): void {
    const all = to.length / instrumentCount;
    const phases = this.#phases;
    for (let d = 0; d < instrumentCount; d++)
      for (let at = 0; at < all; at++) to[d * all + at] += phases[at * instrumentCount + d];
    phases.fill(0);
  }

  /** O·X of a row per instrument: to be filled. */
  own(i: number): Float64Array {
    return this.#rows[i].own;
  }

  #row(i: number): number {
    return this.#addresses.rows + 8 * record.end * i;
  }

  #pool(i: number): number {
    return this.#row(i) + 8 * record.pool;
  }

  /** The address of that many more bytes, which are 0; earlier views may no longer be of the memory. */
  #allocate(bytes: number): number {
    const { memory } = this.kernels;
    const address = this.#next;
    this.#next = Math.ceil((address + bytes) / 16) * 16;
    const missing = this.#next - memory.buffer.byteLength;
    // By an eighth more than asked for, so that it grows seldom.
    if (missing > 0) memory.grow(Math.ceil((missing + memory.buffer.byteLength / 8) / pageBytes));
    return address;
  }

  #enlargePool(i: number, capacity: number): void {
    const slots = this.#allocate(capacity * groupBytes);
    const groups = slots + 16 * capacity;
    const sums = groups + 4 * capacity;
    const squares = sums + 8 * (instrumentCount + 1) * capacity;
    this.kernels.movePool(this.#row(i), capacity, slots, groups, sums, squares);
  }

  #writeParameters({ groups, ...rules }: RowRules, equalBits: number): void {
    const { roundingErrors, phases, parameters } = this.#addresses;
    const { buffer } = this.kernels.memory;
    const hasErrors = rules.roundingErrors !== null;
    const numbers = new Float64Array(buffer, parameters);
    const integers = new Int32Array(buffer, parameters);
    numbers.set([rules.smallest, rules.mostLost, rules.roundings]);
    integers.set([rules.places, groups.shift, groups.lowest, groups.size], 6);
    integers.set([hasErrors ? roundingErrors : 0, phases], 10);
    integers.set([equalBits === 0 ? 0 : 32 - equalBits, rules.factors.length], 12);
    if (rules.factors.length > mostFactors) throw new Error('more factors than there is room for');
    rules.factors.forEach(({ family, shift }, f) => {
      integers[14 + 4 * f] = family;
      numbers[8 + 2 * f] = shift;
    });
  }

  /** Makes the views again, since the memory may have grown. */
  #view(): void {
    const { buffer } = this.kernels.memory;
    if (this.#phases.buffer === buffer) return;
    const { tile, phases } = this.#addresses;
    this.#tiles = Array.from({ length: this.#tileCount }, (_, index) =>
      Array.from({ length: tileBlocks }, (_, block) => {
        const address = tile + index * tileBytes + 8 * tileLength * block;
        return new Float64Array(buffer, address, tileLength);
      }),
    );
    const places = weightFamilies * this.#rules!.places * instrumentCount;
    this.#phases = new Float64Array(buffer, phases, places);
    const ofRow = (_: unknown, i: number) => new Float64Array(buffer, this.#row(i), record.end);
    this.#records = Array.from({ length: walkRows }, ofRow);
    this.#rows = this.#records.map(rowSums);
  }
}

/** A row's record, seen as its sums. */
function rowSums(numbers: Float64Array): RowSums {
  const part = (from: number, length: number = instrumentCount) =>
    numbers.subarray(from, from + length);
  const perInstrument = instrumentCount * smoothPlaces;
  const header = new Int32Array(numbers.buffer, numbers.byteOffset + 8 * record.pool, 8);
  const view = (): ErrorPoolState => {
    const [, count, , groups, sums, squares] = header;
    const channels = instrumentCount + 1;
    const of = (address: number) => new Float64Array(numbers.buffer, address, count * channels);
    return {
      channels,
      groups: new Int32Array(numbers.buffer, groups, count),
      sums: of(sums),
      squares: of(squares),
      absolute: part(record.absolute, channels),
    };
  };
  return {
    get toLargest() {
      return numbers[record.toLargest];
    },
    get applied() {
      return numbers[record.applied];
    },
    get appliedSquares() {
      return numbers[record.appliedSquares];
    },
    get weightSquares() {
      return numbers[record.weightSquares];
    },
    get drift() {
      return numbers[record.drift];
    },
    get variance() {
      return numbers[record.variance];
    },
    exponents: part(record.exponents, weightFamilies),
    own: part(record.own),
    moments: part(record.moments),
    products: part(record.products),
    lost: part(record.lost),
    last: part(record.last),
    first: part(record.first),
    otherwise: part(record.otherwise, mostFactors * instrumentCount),
    mass: part(record.mass, weightFamilies * smoothPlaces),
    smooth: part(record.smooth, perInstrument),
    squares: part(record.squares, perInstrument),
    absolute: (channel) => numbers[record.absolute + channel],
    coherent: (channel) => numbers[record.coherent + channel],
    independent: (channel) => numbers[record.independent + channel],
    squared: (channel) => numbers[record.mixed + channel],
    difference: (instrument) => numbers[record.difference + instrument],
    view,
  };
}

/** Calls `work` with a memory for rows of a problem, taken from memories that are used again; returns its result. */
export function withRowMemory<Result>(
  memories: WorkingMemories,
  rules: RowRules,
  work: (memory: RowMemory) => Result,
): Result {
  const create = () => new RowMemory();
  return memories.lend('structure', create, (memory) => {
    memory.prepare(rules);
    return work(memory);
  });
}
