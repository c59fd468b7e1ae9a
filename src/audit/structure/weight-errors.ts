import type { WeightTile, WorkingMemories } from '../../../oracles/index.js';
import { createAllocator } from '../../reuse.js';
import type { ErrorPoolState, NearlyEqual } from './error-pool.js';
import { directionsAtOnce } from './key-tile-plan.js';
import { errorGroups } from './structure.generated.js';
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
  const { allocate, struct } = createAllocator(kernels.memory, 8 * numbers + 8 * groups + 256);
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
    pool: struct(errorGroups),
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
  readonly #pool: number;
  readonly #directions: number;
  #count = 0;

  private constructor(
    memory: ReturnType<typeof createMemory>,
    groups: NearlyEqual,
    directions: number,
  ) {
    this.#memory = memory;
    const { tile, toLargest, amplitude, slots, sums, absolute } = memory;
    this.#pool = memory.pool.write({
      weights: tile.address,
      directions,
      toLargest: toLargest.address,
      amplitude: amplitude.address,
      shift: groups.shift,
      lowest: groups.lowest,
      size: groups.size,
      slots: slots.address,
      groups: memory.groups.address,
      sums: sums.address,
      absolute: absolute.address,
    });
    this.#directions = directions;
    this.toLargest = toLargest.view;
    this.amplitude = amplitude.view;
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
    const { kernels, tile } = this.#memory;
    [weights, applied, ...projections].forEach((numbers, block) =>
      tile.view.set(numbers.subarray(0, rows * walkRows), block * tileLength),
    );
    this.#count = kernels.addErrors(this.#pool, rows, keys, this.#count);
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
