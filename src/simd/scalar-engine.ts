import { binary } from './scalar.generated.js';
import { createAllocator, instantiator } from '../reuse.js';

/** What the module exports; addresses are of its memory, counts multiples of 4. */
interface ScalarKernels {
  readonly memory: WebAssembly.Memory;
  exp2ApproxFtz: SegmentKernel;
  exp2Approx: SegmentKernel;
  rcpApproxFtz: SegmentKernel;
  lg2ApproxFtz: SegmentKernel;
  rsqrtApproxFtz: SegmentKernel;
  rcpApprox: SegmentKernel;
  lg2Approx: SegmentKernel;
  rsqrtApprox: SegmentKernel;
  sqrtApproxFtz: SegmentKernel;
  sqrtApprox: SegmentKernel;
  sinApproxFtz: SegmentKernel;
  sinApprox: SegmentKernel;
  cosApproxFtz: SegmentKernel;
  cosApprox: SegmentKernel;
  tanhApprox(
    inputs: number,
    results: number,
    count: number,
    binades: number,
    squares: number,
    firstExponent: number,
    binadeCount: number,
  ): void;
  exp2Polynomial(
    inputs: number,
    results: number,
    count: number,
    coefficients: number,
    degree: number,
  ): void;
  convert(inputs: number, results: number, count: number, format: number): void;
  hash(inputs: number, results: number, count: number, state: number): void;
  fillConsecutive(inputs: number, count: number, first: number): void;
}

/**
 * A function of the unit that interpolates one table: inputs, results, count, segments, squares, and the shift
 * that cuts the sum to the result.
 */
export type SegmentKernel = (
  ...words: readonly [number, number, number, number, number, number]
) => void;

/** Elements that the engine works on at a time: inputs and results stay in the first-level cache. */
export const chunkElements = 2048;

const bytesPerElement = 4;

/**
 * A function of fp32 bit patterns on whole arrays: `results[i]` from `inputs[i]`; `results` is at
 * least as long as `inputs`.
 */
export type ArrayFunction = (inputs: Uint32Array, results: Uint32Array) => void;

/** Maps `count` fp32 bit patterns at the address `inputs` to results at the address `results`. */
type ChunkKernel = (inputs: number, results: number, count: number) => void;

/** An instance of the module of scalar instructions with memory for one chunk and some tables. */
export interface ScalarEngine {
  readonly kernels: ScalarKernels;
  /** Addresses of the chunk. */
  readonly inputs: number;
  readonly results: number;
  /** Copies a table of the module's own layout into its memory; its address. */
  readonly place: (table: ArrayBufferView) => number;
  /** The kernel as a function of arrays of any length. */
  readonly arrayFunction: (kernel: ChunkKernel) => ArrayFunction;
}

const instantiate = instantiator<ScalarKernels>(binary, 'scalar instructions');

/** An instance of the module with room for `tableBytes` bytes of tables. */
export function createScalarEngine(tableBytes: number): ScalarEngine {
  const kernels = instantiate();
  const { memory } = kernels;
  const chunkBytes = chunkElements * bytesPerElement;
  const { allocate, place } = createAllocator(memory, tableBytes + 2 * chunkBytes);
  const [inputs, results] = [allocate(chunkBytes), allocate(chunkBytes)];
  const inputWords = new Uint32Array(memory.buffer, inputs, chunkElements);
  const resultWords = new Uint32Array(memory.buffer, results, chunkElements);

  return {
    kernels,
    inputs,
    results,
    place,
    arrayFunction: (kernel) => (from, to) => {
      for (let first = 0; first < from.length; first += chunkElements) {
        const count = Math.min(chunkElements, from.length - first);
        inputWords.set(from.length === count ? from : from.subarray(first, first + count));
        kernel(inputs, results, Math.ceil(count / 4) * 4);
        to.set(count === chunkElements ? resultWords : resultWords.subarray(0, count), first);
      }
    },
  };
}
