import type { AttentionReference, WorkingMemories } from '../../../oracles/index.js';
import { formats, smallestNormal, type FormatName } from '../../formats/index.js';
import { createAllocator } from '../../reuse.js';
import { outputPlaces } from './common-offset.js';
import type { ErrorPoolState, NearlyEqual, PooledErrors } from './error-pool.js';
import { instrumentCount } from './structure-entries.js';
import {
  instrumentRows,
  rowElements,
  type RowElements as ElementFields,
} from './structure.generated.js';
import { instantiateLoops } from './structure-loops.js';
import { walkRows } from './structure-statistic.js';

/** What elements of rows are judged by. */
export interface ElementRules {
  readonly vDim: number;
  readonly outputFormat: FormatName;
  /** Groups of outputs that round alike. */
  readonly outputGroups: NearlyEqual;
}

/** The errors of one row's outputs by instrument, and their roundings: views, good until another row is projected. */
export interface ProjectedOutputs {
  /** Σ r·X, and Σ half ulp·|X|. */
  readonly signed: Float64Array;
  readonly outputWorst: Float64Array;
  /** √3 standard deviations of the sums over keys, if they err alike in all columns. */
  readonly accumulated: Float64Array;
  /** Σ |X|, Σ |O·X| and Σ |X|·Σ w|v|. */
  readonly total: Float64Array;
  readonly ofOutputs: Float64Array;
  readonly ofMagnitudes: Float64Array;
  /** Σ half ulp·X by place in an ulp, per instrument. */
  readonly places: Float64Array;
  /** The errors of rounding and of the sums over keys: outputs that round alike are a group. */
  readonly pool: PooledErrors;
}

/** The sums of a row in the order of assembly/elements.ts: numbers of instruments, then places. */
const rowSums = [
  ...(['signed', 'outputWorst', 'accumulated', 'total', 'ofOutputs', 'ofMagnitudes'] as const),
  ...(['absolute', 'coherent', 'independent', 'mixed'] as const),
] as const;

/** Blocks of [64 × vDim]: the rows' elements, the values of their heaviest keys, and what is projected on. */
const givenBlocks = ['exact', 'magnitude', 'out', 'heaviest'] as const;

/** Slots of the table of a row's groups: twice as many as it may have to hold. */
function slotsOf(vDim: number): number {
  return 2 ** Math.ceil(Math.log2(2 * Math.max(vDim, 4)));
}

/** Bytes of all blocks. */
function bytesFor(vDim: number): number {
  const blocks = givenBlocks.length + 2 * instrumentCount;
  const ofRow = instrumentCount * (rowSums.length + outputPlaces);
  const numbers =
    blocks * (walkRows * vDim + 2) +
    walkRows * (2 * instrumentCount + 3) +
    2 * instrumentCount * vDim +
    ofRow;
  return 8 * numbers + 8 * slotsOf(vDim) + 4 * vDim + 1024;
}

function createMemory({ vDim, outputFormat, outputGroups }: ElementRules) {
  const kernels = instantiateLoops();
  const blockLength = walkRows * vDim;
  const slots = slotsOf(vDim);
  const { allocate, struct } = createAllocator(kernels.memory, bytesFor(vDim));
  const { buffer } = kernels.memory;
  const block = (length: number) => new Float64Array(buffer, allocate(8 * length), length);
  const given = Object.fromEntries(givenBlocks.map((name) => [name, block(blockLength)])) as Record<
    (typeof givenBlocks)[number],
    Float64Array
  >;
  const several = () => {
    // One behind the other without gaps.
    const all = block(instrumentCount * blockLength);
    return Array.from({ length: instrumentCount }, (_, d) =>
      all.subarray(d * blockLength, (d + 1) * blockLength),
    );
  };
  const [directions, patterns] = [several(), several()];
  const views = {
    own: block(walkRows * instrumentCount),
    norm: block(walkRows * instrumentCount),
    isMeasured: new Int32Array(buffer, allocate(4 * walkRows), walkRows),
    slots: new Int32Array(buffer, allocate(8 * slots), 2 * slots),
    groups: new Int32Array(buffer, allocate(4 * vDim), vDim),
    groupSums: block(instrumentCount * vDim),
    groupSquares: block(instrumentCount * vDim),
    sums: block(instrumentCount * (rowSums.length + outputPlaces)),
  };
  const noise = block(walkRows);
  const { precision, minExponent, maxExponent, maxFinite } = formats[outputFormat];
  const places = Object.fromEntries(
    Object.entries({ ...given, ...views }).map(([name, { byteOffset }]) => [name, byteOffset]),
  ) as Pick<ElementFields, keyof typeof views | 'exact' | 'magnitude' | 'out'>;
  const { shift, lowest, size } = outputGroups;
  const fields: ElementFields = {
    ...places,
    columns: vDim,
    directions: directions[0].byteOffset,
    patterns: patterns[0].byteOffset,
    slotMask: slots - 1,
    precision,
    minExponent,
    maxExponent,
    maxFinite,
    shift,
    lowest,
    size,
    smallestNormal: smallestNormal(formats[outputFormat]),
  };
  const elements = struct(rowElements).write(fields);
  const rows = struct(instrumentRows);
  return { kernels, ...given, ...views, directions, patterns, noise, elements, rows };
}

/** The elements of up to 64 rows, and what their errors come to on the directions of four instruments. */
export class RowElements {
  /**
   * [64 × vDim] by instrument: the directions X that errors r are projected on, and the patterns Y whose multiples are looked for. To
   * be filled before rows are measured.
   */
  readonly directions: readonly Float64Array[];
  readonly patterns: readonly Float64Array[];
  readonly #memory: ReturnType<typeof createMemory>;
  readonly #vDim: number;
  readonly #outputs: ProjectedOutputs;
  #groups = 0;

  private constructor(memory: ReturnType<typeof createMemory>, vDim: number) {
    this.#memory = memory;
    this.#vDim = vDim;
    this.directions = memory.directions;
    this.patterns = memory.patterns;
    const { sums } = memory;
    const ofInstruments = (index: number) =>
      sums.subarray(index * instrumentCount, (index + 1) * instrumentCount);
    const of = Object.fromEntries(
      rowSums.map((name, index) => [name, ofInstruments(index)]),
    ) as Record<(typeof rowSums)[number], Float64Array>;
    const { absolute, coherent, independent, mixed } = of;
    this.#outputs = {
      ...of,
      places: sums.subarray(rowSums.length * instrumentCount),
      pool: {
        absolute: (d) => absolute[d],
        coherent: (d) => coherent[d],
        independent: (d) => independent[d],
        squared: (d) => mixed[d],
        view: () => this.#view(absolute),
      },
    };
  }

  /** Calls `work` with room for rows and returns its result. */
  static with<Result>(
    memories: WorkingMemories,
    rules: ElementRules,
    work: (elements: RowElements) => Result,
  ): Result {
    const { vDim, outputFormat, outputGroups } = rules;
    const { shift, lowest, size } = outputGroups;
    const kind = ['elements', vDim, outputFormat, shift, lowest, size].join(' ');
    const create = () => createMemory(rules);
    return memories.lend(kind, create, (memory) => work(new RowElements(memory, vDim)));
  }

  /** Loads `rows` rows from row `first` of all on. `out` is the kernel's output, decoded. */
  load(first: number, rows: number, { quantities }: AttentionReference, out: Float64Array): void {
    const [begin, end] = [first * this.#vDim, (first + rows) * this.#vDim];
    this.#memory.exact.set(quantities.out.values.subarray(begin, end));
    this.#memory.magnitude.set(quantities.out.magnitude.subarray(begin, end));
    this.#memory.out.set(out.subarray(begin, end));
  }

  /**
   * Makes the instruments of the rows that are loaded: see `createInstruments`.
   * @param noise by row, NaN for one that has none
   * @param fillHeaviest writes the values of the heaviest key of a row that has instruments
   */
  makeInstruments(
    noise: Float64Array,
    fillHeaviest: (row: number, values: Float64Array) => void,
  ): void {
    const { kernels, elements, heaviest, rows } = this.#memory;
    this.#memory.noise.set(noise);
    for (let i = 0; i < noise.length; i++)
      if (noise[i] >= 0) fillHeaviest(i, this.#of(heaviest, i));
    const made = { elements, rows: noise.length, noise: this.#memory.noise.byteOffset };
    kernels.makeInstruments(rows.write({ ...made, heaviest: heaviest.byteOffset }));
  }

  /** Measures the rows that are loaded, on the instruments as they are. */
  measure(rows: number): void {
    this.#memory.kernels.measureRows(this.#memory.elements, rows);
  }

  /** Whether all numbers of the `i`-th row, its sums on the instruments too, are finite, with squares in fp64's range. */
  isMeasured(i: number): boolean {
    return this.#memory.isMeasured[i] === 1;
  }

  /** O·X and Y·X of the `i`-th row by instrument. */
  own(i: number): Float64Array {
    return this.#memory.own.subarray(i * instrumentCount, (i + 1) * instrumentCount);
  }

  norm(i: number): Float64Array {
    return this.#memory.norm.subarray(i * instrumentCount, (i + 1) * instrumentCount);
  }

  /** Projects the errors of the `i`-th row. `accumulated` is the error of sums over keys, relative to Σ w|v|. */
  project(i: number, accumulated: number): ProjectedOutputs {
    const { kernels, elements } = this.#memory;
    this.#groups = kernels.projectRow(elements, i, accumulated);
    return this.#outputs;
  }

  #of(block: Float64Array, i: number): Float64Array {
    return block.subarray(i * this.#vDim, (i + 1) * this.#vDim);
  }

  #view(absolute: Float64Array): ErrorPoolState {
    const { groups, groupSums, groupSquares } = this.#memory;
    const length = this.#groups * instrumentCount;
    return {
      channels: instrumentCount,
      groups: groups.subarray(0, this.#groups),
      sums: groupSums.subarray(0, length),
      squares: groupSquares.subarray(0, length),
      absolute,
    };
  }
}
