import { workerData } from 'piscina';
import { lazily } from '../../reuse.js';
import type { GlobalFootprint } from '../../machine/index.js';
import { type GridPart, prepareLaunch } from '../../ptx/run/index.js';
import { RequestError } from '../../request-error.js';
import type { ThreadAnswer } from '../audit/index.js';
import { launchOptions, openRequest, type RunRequest } from './run-launch-file.js';

/** Clusters of a grid, by their numbers in its order. */
export interface ClusterRange {
  readonly first: number;
  readonly end: number;
}

const prepared = lazily(async () => {
  const request = workerData as RunRequest;
  const opened = await openRequest(request);
  const { options } = launchOptions(request, opened);
  return { launch: prepareLaunch(opened.module, opened.launch, options), options };
});

/** The work of a worker thread of run-on-threads.ts: some clusters of the grid. */
export async function runClusters({ first, end }: ClusterRange): Promise<ThreadAnswer<GridPart>> {
  try {
    const { launch, options } = await prepared();
    const footprint: GlobalFootprint = new Map();
    const runs = (cluster: number) => cluster >= first && cluster < end;
    return { run: launch.run({ ...options, footprint, runs }), footprint };
  } catch (error) {
    if (error instanceof RequestError) return { refusal: error.message };
    throw error;
  }
}
