import { exploreLaunch, type Exploration } from '../../ptx/explore/index.js';
import { prepareLaunch } from '../../ptx/run/index.js';
import { secondsSince } from '../audit/index.js';
import { launchOptions, openRequest, type RunRequest } from './run-launch-file.js';

/** The results of a launch file's schedules. */
export interface ExploredLaunch extends Exploration {
  /** The most runs requested. */
  readonly mostRuns: number;
  readonly seconds: number;
}

/**
 * Runs what a launch file starts in the orders that a schedule may choose.
 *
 * @param progress called with the share of the requested runs that is done
 * @throws RequestError for files that cannot be read or do not fit, and for everything in the kernel that is not supported
 */
export async function exploreLaunchFile(
  request: RunRequest,
  mostRuns: number,
  progress: (share: number) => void = () => undefined,
): Promise<ExploredLaunch> {
  const start = performance.now();
  const opened = await openRequest(request);
  const { options } = launchOptions(request, opened);
  const prepared = prepareLaunch(opened.module, opened.launch, options);
  const ctas = opened.launch.cluster.reduce((all, one) => all * one, 1);
  const outputs = opened.launch.outputs.map(({ name }) => name);
  const { model } = options;
  const explored = exploreLaunch(
    prepared,
    { ctas, outputs, mostRuns },
    model === undefined ? {} : { model },
    (runs) => progress(runs / mostRuns),
  );
  return { ...explored, mostRuns, seconds: secondsSince(start) };
}
