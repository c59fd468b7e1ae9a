import type { Launch } from '../../ptx/launch/index.js';
import { type GridPart, joinParts, type LaunchRun } from '../../ptx/run/index.js';
import { startThreadPool } from '../parts/helper-thread.js';
import type { ClusterRange } from './grid-worker.js';
import type { RunRequest } from './run-launch-file.js';

/** Parts that each thread runs: so that threads with longer ones keep the others waiting less. */
const partsPerThread = 2;

/** Clusters of a grid in parts of about the same size. */
function partition(clusters: number, parts: number): readonly ClusterRange[] {
  const count = Math.min(clusters, parts);
  return Array.from({ length: count }, (_, i) => ({
    first: Math.floor((i * clusters) / count),
    end: Math.floor(((i + 1) * clusters) / count),
  }));
}

/**
 * Runs the clusters of a launch on worker threads; null where they have to be run together (`joinParts`), or are too few.
 *
 * @param request as its file names it, with races looked for and the usual schedule: each thread reads it
 */
export async function runOnThreads(
  request: RunRequest,
  launch: Launch,
  threads: number,
): Promise<LaunchRun | null> {
  const clusters = launch.grid.reduce(
    (all, extent, axis) => (all * extent) / launch.cluster[axis],
    1,
  );
  const ranges = partition(clusters, threads * partsPerThread);
  if (ranges.length < 2 || threads < 2) return null;
  const worker = new URL('./grid-worker.js', import.meta.url);
  const used = Math.min(threads, ranges.length);
  const pool = startThreadPool<ClusterRange, GridPart>(used, 'runClusters', request, worker);
  try {
    const parts: GridPart[] = [];
    await pool.run(
      ranges,
      (part) => parts.push(part),
      () => undefined,
    );
    return joinParts(launch, parts);
  } finally {
    await pool.close();
  }
}
