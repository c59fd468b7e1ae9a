import { createAllocator, instantiator, type PlacedStruct } from '../reuse.js';
import type { ResultClasses } from './result-classes.js';
import { binary, errorArrays, preparation, type ErrorArrays } from './accumulate.generated.js';
import {
  type ErrorRecord,
  type FormatRecord,
  formatWords,
  readRecord,
  recordLayout,
} from './record.js';

/** Inputs that the engine works on at a time: everything about them stays in the second-level cache. */
export const segmentLength = 1024;
/** One more, for the successor of the last, and room for the loops to read up to four at a time. */
const capacity = segmentLength + 4;

/** The exports of assembly/accumulate.ts; all but counts and numbers are addresses, also of structs. */
interface Loops {
  readonly memory: WebAssembly.Memory;
  fillInputs(inputs: number, ordinal: number, count: number): void;
  isConstant(values: number, count: number): number;
  roundResults(results: number, rounded: number, count: number, format: number): void;
  prepare(preparation: number, count: number): number;
  accumulate(arrays: number, count: number, repeat: number, ordinal: number): void;
  countBreaks(
    left: number,
    right: number,
    ulps: number,
    pairs: number,
    sign: number,
    ordinal: number,
    record: number,
  ): void;
  classify(results: number, count: number, record: number): void;
}

/** An array in the module's memory. */
export interface Block<View> {
  readonly address: number;
  readonly view: View;
}

/** Memory for the measurements at the inputs of a segment in one format. */
export interface ScaleBlocks {
  readonly scale: Block<Float64Array>;
  readonly ulps: Block<Float64Array>;
  readonly rounded: Block<Float64Array>;
}

/** The rounding that `prepare` applies to references, and the measure of errors. */
interface RoundingRule {
  /** The address of the format. */
  readonly format: number;
  /** Whether errors are absolute; otherwise they are relative to the references. */
  readonly absolute: boolean;
  /** Bound on the relative error of the references; 0 for exact ones. */
  readonly margin: number;
}

/** Results of `prepare` for the references of a segment. */
interface Prepared {
  readonly undecided: readonly number[];
  readonly scaledCount: number;
  readonly ulpCount: number;
}

/** The loops over segments with memory of their own; one per thread. */
export interface AccumulateEngine {
  readonly loops: Loops;
  /** An array of one segment and its successor. */
  readonly words: () => Block<Uint32Array>;
  readonly numbers: () => Block<Float64Array>;
  readonly format: (record: FormatRecord) => number;
  /** A cleared error record; `take` returns its contents and clears it. */
  readonly record: () => { readonly address: number; readonly take: () => ErrorRecord };
  /** A place for what `accumulate` works on. */
  readonly arrays: () => PlacedStruct<ErrorArrays>;
  /** The extent that the last `accumulate` wrote to the record. */
  readonly extent: (record: number) => readonly [least: number, most: number];
  readonly prepare: (
    reference: Block<Float64Array>,
    count: number,
    rule: RoundingRule,
    blocks: ScaleBlocks,
  ) => Prepared;
  readonly classify: (results: Block<Uint32Array>, count: number) => ResultClasses;
}

const instantiate = instantiator<Loops>(binary, 'the error profiles');

/**
 * An instance of the loops with room for `arrays` arrays, formats and records. All of it is reserved
 * at the start: memory that grew later would detach the views made before.
 * @throws Error when more than `arrays` are requested
 */
export function createAccumulateEngine(arrays: number): AccumulateEngine {
  const loops = instantiate();
  const { memory } = loops;
  const blockBytes = Math.max(capacity * 8, recordLayout.bytes);
  const { allocate, struct } = createAllocator(memory, (arrays + 2) * blockBytes);
  let left = arrays + 2;
  const reserve = (): number => {
    if (left-- === 0) throw new Error(`no room for another array among ${arrays}`);
    return allocate(blockBytes);
  };
  const undecided = new Int32Array(memory.buffer, reserve(), capacity);
  const small = reserve();
  const counters = new Int32Array(memory.buffer, small, 6);
  const prepared = struct(preparation);

  return {
    loops,
    words: () => {
      const address = reserve();
      return { address, view: new Uint32Array(memory.buffer, address, capacity) };
    },
    numbers: () => {
      const address = reserve();
      return { address, view: new Float64Array(memory.buffer, address, capacity) };
    },
    format: (record) => {
      const address = reserve();
      const words = formatWords(record);
      new Float64Array(memory.buffer, address, words.length).set(words);
      return address;
    },
    record: () => {
      const address = reserve();
      const bytes = new Uint8Array(memory.buffer, address, recordLayout.bytes);
      return {
        address,
        take: () => {
          const record = readRecord(memory, address);
          bytes.fill(0);
          return record;
        },
      };
    },
    arrays: () => struct(errorArrays),
    extent: (record) => {
      const pair = new Float64Array(memory.buffer, record + recordLayout.extent, 2);
      return [pair[0], pair[1]];
    },
    prepare: (reference, count, { format, absolute, margin }, { scale, ulps, rounded }) => {
      const work = prepared.write({
        reference: reference.address,
        scale: scale.address,
        ulps: ulps.address,
        rounded: rounded.address,
        undecided: undecided.byteOffset,
        measured: small,
        format,
        absolute,
        margin,
      });
      const left = loops.prepare(work, count);
      return {
        undecided: [...undecided.subarray(0, left)],
        scaledCount: counters[0],
        ulpCount: counters[1],
      };
    },
    classify: (results, count) => {
      loops.classify(results.address, count, small);
      const [zeros, subnormals, infinities, nans, least, most] = counters;
      return { zeros, subnormals, infinities, nans, least, most };
    },
  };
}
