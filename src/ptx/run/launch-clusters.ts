import { mostRegisters, type ClusterLaunch, type WarpProgram } from '../../machine/index.js';
import type { Program } from '../program/index.js';
import {
  allocateShared,
  type Extents,
  type KernelLaunch,
  volume,
  warpLanes,
  type WarpPosition,
} from './cluster-warps.js';

/** Maximum number of warps of a grid whose accesses are compared with one another. */
const mostComparedWarps = 2048;

/** The position in the grid of a number in its order: x first. */
function placeOf(number: number, [width, height]: Extents): Extents {
  return [
    number % width,
    Math.floor(number / width) % height,
    Math.floor(number / (width * height)),
  ];
}

/**
 * Number of registers that each thread of a CTA starts with, where the text states it: by `.maxnreg`, or as many as exist where it
 * states the number of CTAs of an SM. Source: PTX ISA, `setmaxnreg` ("valid value of maximum number of per-thread registers").
 */
function registersPerThread({ directives }: Program, threads: number): number | undefined {
  const [most] = directives.get('maxnreg') ?? [];
  const [ctas] = directives.get('minnctapersm') ?? [];
  if (most === undefined && ctas === undefined) return undefined;
  return Math.min(most ?? Infinity, ctas === undefined ? Infinity : mostRegisters(threads * ctas));
}

/** Extents by axis from those of others. */
function byAxis(extents: Extents, of: (extent: number, axis: number) => number): Extents {
  return extents.map(of) as unknown as Extents;
}

/** The clusters of a launch, by their numbers in the order of the grid. */
export class LaunchClusters {
  readonly count: number;
  readonly warps: number;
  /** Whether the accesses of its clusters are compared with one another. */
  readonly areCtasCompared: boolean;
  readonly #launch: KernelLaunch;
  readonly #clusters: Extents;

  constructor(launch: KernelLaunch) {
    const { grid, cluster, block } = launch;
    this.#launch = launch;
    this.#clusters = byAxis(grid, (extent, axis) => extent / cluster[axis]);
    this.count = volume(this.#clusters);
    this.warps = Math.ceil(volume(block) / warpLanes);
    this.areCtasCompared = volume(grid) * this.warps <= mostComparedWarps;
  }

  /** The position in the grid of a cluster's first CTA. */
  firstCta(number: number): Extents {
    const { cluster } = this.#launch;
    return byAxis(placeOf(number, this.#clusters), (at, axis) => at * cluster[axis]);
  }

  /** The launch of one cluster on the machine. */
  launchOf(
    number: number,
    cancel: () => number | null,
    programOf: (at: WarpPosition) => WarpProgram,
  ): ClusterLaunch {
    const { grid, block, cluster, program, memory } = this.#launch;
    const ctas = volume(cluster);
    const first = this.firstCta(number);
    const ctaOf = (rank: number): Extents => {
      const offset = placeOf(rank, cluster);
      return byAxis(first, (one, axis) => one + offset[axis]);
    };
    return {
      ctas: ctas as 1 | 2,
      warps: this.warps,
      registersPerThread: registersPerThread(program, volume(block)),
      memory,
      cancelLaunch: () => {
        const cancelled = cancel();
        return cancelled === null ? null : this.firstCta(cancelled);
      },
      ...(volume(grid) === ctas ? {} : { ctaName: (rank) => `CTA (${ctaOf(rank).join(', ')})` }),
      allocate: (shared) => allocateShared(this.#launch, shared),
      program: ({ cta, warp }) =>
        programOf({ cta: ctaOf(cta), rank: cta, warp, warps: this.warps }),
    };
  }
}
