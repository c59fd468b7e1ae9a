import {
  decodeTensor,
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  smallestNormal,
  unitRoundoff,
  type FormatName,
} from '../../src/formats/index.js';
import type { Problem, ProblemShape, Tensor } from '../../src/problem/index.js';
import type { WorkingMemories } from '../../src/reuse.js';
import type { MemoryPart, YardstickMemory } from './yardstick-memory.js';

/** Blocks of so many elements are remembered for other queries: 8 MiB in fp64. */
const mostRemembered = 2 ** 20;

/** Rows [first, first + rows) of a tensor with rows of `dim` elements, decoded. */
export function decodeRows(tensor: Tensor, first: number, rows: number, dim: number): Float64Array {
  return decodeTensor(tensor, first * dim, (first + rows) * dim);
}

/** The smallest normal number of a format with 16 bits, the ulp of 1 and the largest number; null for other formats. */
function shortFormat(name: FormatName) {
  if (name !== 'bf16' && name !== 'fp16') return null;
  const format = formats[name];
  return {
    smallestNormal: smallestNormal(format),
    ulpOfOne: 2 * unitRoundoff(format),
    maxFinite: format.maxFinite,
  };
}

/** Rounds numbers of the yardstick's memory to a format, to nearest even, in place. */
export interface MemoryRounding {
  /** Address of the format, where it is a short one that the loops of the memory take; null for others. */
  readonly shortFormat: number | null;
  readonly round: (values: Float64Array) => void;
}

/** The rounding to a format, for numbers of a memory. */
export function memoryRounding(
  name: FormatName,
  { kernels, format: place }: YardstickMemory,
): MemoryRounding {
  const short = shortFormat(name);
  if (short !== null) {
    const address = place.write(short);
    return {
      shortFormat: address,
      round: ({ byteOffset, length }) => kernels.roundNumbers(byteOffset, length, address),
    };
  }
  const format = formats[name];
  return {
    shortFormat: null,
    round:
      format === formats.fp32
        ? ({ byteOffset, length }) => kernels.roundToFloat32(byteOffset, length)
        : (values) => decodeToFloat64(encodeFromFloat64(format, values), format, values),
  };
}

/** Multiplies all values by a factor, in place. */
export function multiply(values: Float64Array, factor: number): void {
  for (let i = 0; i < values.length; i++) values[i] *= factor;
}

/**
 * A function that fills a part of a memory with a block of rows, unless it is there already, and returns the block's
 * address.
 */
function remembered(part: MemoryPart, fill: (first: number, count: number) => void) {
  let known = -1;
  return (first: number, count: number): number => {
    if (known !== first) fill(first, count);
    known = first;
    return part.address;
  };
}

/** Rows of a tensor. */
interface Rows {
  readonly first: number;
  readonly count: number;
  readonly dim: number;
}

/** Puts blocks of decoded keys and values into a memory, and returns their addresses. */
export interface DecodedBlocks {
  /** Keys [first, first + count) of all, times the scale and rounded. */
  readonly keys: (first: number, count: number) => number;
  readonly values: (first: number, count: number) => number;
}

/**
 * The blocks of a problem's keys and values.
 *
 * @param memories that remember what was decoded
 */
export function decodedBlocks(
  problem: Problem,
  { keys, qkDim, vDim }: ProblemShape,
  memory: YardstickMemory,
  memories: WorkingMemories,
  { round }: MemoryRounding,
): DecodedBlocks {
  /** Fills a place with decoded rows, by `fill` or with what it has put there before for the same rows of a tensor. */
  const once = (
    kind: string,
    tensor: Tensor,
    { first, count, dim }: Rows,
    fill: (place: Float64Array) => void,
    place: Float64Array,
  ): void => {
    // Of keys that are decoded block by block the next time others are asked for first.
    if (tensor.scales !== undefined || keys * dim > mostRemembered) return fill(place);
    const data = tensor.data.subarray(first * dim, (first + count) * dim);
    const make = () => {
      fill(place);
      return place.slice();
    };
    place.set(memories.remember(`yardstick ${kind} ${tensor.format}`, [data], make));
  };
  return {
    keys: remembered(memory.keys, (first, count) => {
      const rows = { first, count, dim: qkDim };
      const fill = (k: Float64Array) => {
        decodeTensor(problem.k, first * qkDim, (first + count) * qkDim, k);
        memory.kernels.multiplyNumbers(k.byteOffset, k.length, problem.scale);
        round(k);
      };
      const kind = `keys ${problem.q.format} ${problem.scale}`;
      once(kind, problem.k, rows, fill, memory.keys.view.subarray(0, count * qkDim));
    }),
    values: remembered(memory.values, (first, count) => {
      const rows = { first, count, dim: vDim };
      const fill = (v: Float64Array) =>
        void decodeTensor(problem.v, first * vDim, (first + count) * vDim, v);
      once('values', problem.v, rows, fill, memory.values.view.subarray(0, count * vDim));
    }),
  };
}
