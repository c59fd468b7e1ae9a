import {
  createAllocator,
  instantiator,
  type PlacedStruct,
  type WorkingMemories,
} from '../../src/reuse.js';
import { binary, format, type Format } from './yardstick.generated.js';

/** The WebAssembly loops; addresses are of their memory. Their source documents them. */
interface YardstickKernels {
  readonly memory: WebAssembly.Memory;
  scoreRow(q: number, k: number, scores: number, keys: number, dim: number): void;
  addWeightedRows(row: number, weights: number, values: number, keys: number, dim: number): void;
  multiplyNumbers(at: number, count: number, factor: number): void;
  roundToFloat32(at: number, count: number): void;
  roundNumbers(at: number, count: number, format: number): void;
  roundedSoftmax(
    scores: number,
    weights: number,
    count: number,
    sink: number,
    format: number,
  ): number;
}

const instantiate = instantiator<YardstickKernels>(binary, 'textbook attention');

/** A part of the memory. */
export interface MemoryPart {
  readonly address: number;
  readonly view: Float64Array;
}

/** Contents of the memory: decoded keys and values, queries, scores and outputs of some rows, and the weights of one. */
const parts = ['keys', 'values', 'queries', 'scores', 'tile', 'weights'] as const;

type Part = (typeof parts)[number];

/** The loops, and the parts of their memory. */
export interface YardstickMemory extends Readonly<Record<Part, MemoryPart>> {
  readonly kernels: YardstickKernels;
  /** The format that numbers are rounded to. */
  readonly format: PlacedStruct<Format>;
}

/** Runs `work` in a memory with parts of these lengths, taken from memories that are used again; returns its result. */
export function withYardstickMemory<Result>(
  memories: WorkingMemories,
  lengths: Readonly<Record<Part, number>>,
  work: (memory: YardstickMemory) => Result,
): Result {
  const create = (): YardstickMemory => {
    const kernels = instantiate();
    // A part may be followed by half a number of alignment.
    const all = parts.reduce((sum, part) => sum + lengths[part] + 1, 0);
    const { allocate, struct } = createAllocator(kernels.memory, 8 * all);
    const { buffer } = kernels.memory;
    const places = parts.map((part) => {
      const address = allocate(8 * lengths[part]);
      return [part, { address, view: new Float64Array(buffer, address, lengths[part]) }] as const;
    });
    return {
      kernels,
      format: struct(format),
      ...(Object.fromEntries(places) as Record<Part, MemoryPart>),
    };
  };
  const kind = `yardstick ${parts.map((part) => lengths[part]).join(' ')}`;
  return memories.lend(kind, create, work);
}
