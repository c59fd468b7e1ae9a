import type { WeightTile, WorkingMemories } from '../../../oracles/index.js';
import { createAllocator } from '../../reuse/index.js';
import type { ErrorPoolState, NearlyEqual } from './error-pool.js';
import { directionsAtOnce } from './key-tile-plan.js';
import { instantiateLoops } from './structure-loops.js';
import { walkRows } from './structure-statistic.js';

/** Number of elements of a tile of weights. */
const tileLength = walkRows * walkRows;

/** Number of elements of a group: its sums, then its sums of squares. */
const groupLength = 2 * directionsAtOnce;

function createMemory(groups: number) {
  const kernels = instantiateLoops();
  const blocks = 2 + directionsAtOnce;
  const numbers = blocks * tileLength + 2 * walkRows + groups * groupLength + directionsAtOnce;
  // Each block is aligned to two numbers.
  const { allocate } = createAllocator(kernels.memory, 8 * numbers + 8 * groups + 256);
  const { buffer } = kernels.memory;
  const block = (length: number) => {
    const address = allocate(8 * length);
    return { address, view: new Float64Array(buffer, address, length) };
  };
  const integers = (length: number) => {
    const address = allocate(4 * length);
    return { address, view: new Int32Array(buffer, address, length) };
  };
  return {
    kernels,
    tile: block(blocks * tileLength),
    toLargest: block(walkRows),
    amplitude: block(walkRows),
    sums: block(groups * groupLength),
    absolute: block(directionsAtOnce),
    slots: integers(groups),
    groups: integers(groups),
  };
}

/** Errors of weights, times their projections on some directions, summed over the weights that round alike. */
export class WeightErrors {
  /** By row of a tile: the factor that makes a weight relative to the largest, and its largest relative error. */
  readonly toLargest: Float64Array;
  readonly amplitude: Float64Array;
  readonly #memory;
  readonly #groups: NearlyEqual;
  readonly #directions: number;
  #count = 0;

  private constructor(
    memory: ReturnType<typeof createMemory>,
    groups: NearlyEqual,
    directions: number,
  ) {
    this.#memory = memory;
    this.#groups = groups;
    this.#directions = directions;
    this.toLargest = memory.toLargest.view;
    this.amplitude = memory.amplitude.view;
  }

  /**
   * Calls `work` with a collector of errors and returns its result.
   * @param groups groups of weights, few enough for a slot each
   * @param directions their number, at most `directionsAtOnce`
   */
  static with<Result>(
    memories: WorkingMemories,
    groups: NearlyEqual,
    directions: number,
    work: (errors: WeightErrors) => Result,
  ): Result {
    return memories.lend(
      `structure errors ${groups.size}`,
      () => createMemory(groups.size),
      (memory) => work(new WeightErrors(memory, groups, directions)),
    );
  }

  /** Adds the weights of a tile, with the projections on each direction. */
  add({ weights, applied, rows, keys, projections }: WeightTile): void {
    const { kernels, tile, toLargest, amplitude, slots, groups, sums, absolute } = this.#memory;
    [weights, applied, ...projections].forEach((numbers, block) =>
      tile.view.set(numbers, block * tileLength),
    );
    const { shift, lowest, size } = this.#groups;
    this.#count = kernels.addErrors(
      ...([tile.address, rows, keys, this.#directions] as const),
      ...([toLargest.address, amplitude.address, shift, lowest, size, this.#count] as const),
      ...([slots.address, groups.address, sums.address, absolute.address] as const),
    );
  }

  /** A copy of the sums, a channel for each direction. */
  state(): ErrorPoolState {
    const channels = this.#directions;
    const count = this.#count;
    const { groups, sums, absolute } = this.#memory;
    const of = (first: number) =>
      Float64Array.from({ length: count * channels }, (_, i) => {
        const place = Math.floor(i / channels);
        return sums.view[place * groupLength + first + (i % channels)];
      });
    return {
      channels,
      groups: groups.view.slice(0, count),
      sums: of(0),
      squares: of(directionsAtOnce),
      absolute: absolute.view.slice(0, channels),
    };
  }
}
