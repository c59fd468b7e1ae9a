import { availableParallelism } from 'node:os';
import { findingWeight, type GlobalFootprint } from '../../machine/index.js';
import { findCtaMeeting, type GridPart, joinParts } from '../../ptx/run/index.js';
import { startThreadPool } from '../parts/helper-thread.js';
import type { ClusterRange } from './grid-worker.js';
import type { PlainRun, RunRequest, ThreadedRun } from './run-launch-file.js';

/** Parts that each thread runs: so that threads with longer ones keep the others waiting less. */
const partsPerThread = 2;

/** Seconds of a core by which the first cluster takes longer than others, since code is compiled. */
const warmUpSeconds = 0.3;

/**
 * Seconds of a core that the other clusters have to take on this thread: two threads save them half of that, and take 0.7 s to
 * start, to read the launch and to compile for themselves.
 */
const leastSeconds = 2;

/** Clusters from one on, in parts of about the same size. */
function partition(first: number, clusters: number, parts: number): readonly ClusterRange[] {
  const count = Math.min(clusters - first, parts);
  const boundary = (i: number) => first + Math.floor((i * (clusters - first)) / count);
  return Array.from({ length: count }, (_, i) => ({ first: boundary(i), end: boundary(i + 1) }));
}

/** Runs clusters on this thread until the others are worth threads of their own; whether some are left. */
function runBeginning(
  { prepared, options }: PlainRun,
  clusters: number,
): GridPart & { readonly isLeft: boolean } {
  const footprint: GlobalFootprint = new Map();
  // Not the time that passes: other programs on the machine would make the run look long.
  const secondsNow = () => process.cpuUsage().user / 1e6;
  let [isFaultless, isLeft] = [true, false];
  let [last, fastest] = [secondsNow() + warmUpSeconds, Infinity];
  const run = prepared.run({
    ...options,
    footprint,
    isEnough: (findings, { started, ended }) => {
      isFaultless &&= findings.every(({ kind }) => findingWeight(kind) === 'hint');
      const now = secondsNow();
      fastest = Math.min(fastest, now - last);
      last = now;
      // Clusters that have begun would have to begin again elsewhere.
      const isAlone = isFaultless && started === ended;
      isLeft = isAlone && fastest * (clusters - ended) >= leastSeconds;
      return isLeft;
    },
  });
  return { run, footprint, isLeft };
}

/** Runs clusters from one on on worker threads. */
async function runRest(
  request: RunRequest,
  { options }: PlainRun,
  ranges: readonly ClusterRange[],
  threads: number,
): Promise<GridPart[]> {
  const worker = new URL('./grid-worker.js', import.meta.url);
  const used = Math.min(threads, ranges.length);
  const pool = startThreadPool<ClusterRange, GridPart>(used, 'runClusters', request, worker);
  const { end: clusters } = ranges[ranges.length - 1];
  let done = ranges[0].first;
  try {
    const parts: GridPart[] = [];
    await pool.run(
      ranges,
      (part) => {
        done += part.run.clusters;
        options.progress?.(done, clusters);
        parts.push(part);
      },
      () => undefined,
    );
    return parts;
  } finally {
    await pool.close();
  }
}

/**
 * Runs the clusters of a launch on worker threads, where these touch no memory of one another and the run is long enough; else
 * on this one. The result is the same.
 *
 * @param request as its file names it: each thread reads it
 * @param given most threads; by default one for each core, once the run has turned out to be long
 */
export async function runOnThreads(
  request: RunRequest,
  plain: PlainRun,
  given?: number,
): Promise<ThreadedRun> {
  const { launch, prepared, options } = plain;
  const runHere = (why: string) => ({ run: prepared.run(options), threads: 1, why });
  const threads = given ?? availableParallelism();
  const clusters = launch.grid.reduce(
    (all, extent, axis) => (all * extent) / launch.cluster[axis],
    1,
  );
  if (threads < 2)
    return runHere(given === undefined ? 'there is one core' : 'one thread is asked for');
  if (clusters < 2) return runHere('the grid is one cluster');
  // A part whose clusters wait for those of another would poll until it gives up.
  const meeting = findCtaMeeting(prepared.program);
  if (meeting !== null)
    return runHere(`CTAs may meet by ${meeting.mnemonic} in line ${meeting.line}`);
  const beginning = given === undefined ? runBeginning(plain, clusters) : null;
  if (beginning?.isLeft === false)
    return { run: beginning.run, threads: 1, why: 'the run is short' };
  const first = beginning?.run.clusters ?? 0;
  const ranges = partition(first, clusters, threads * partsPerThread);
  const rest = await runRest(request, plain, ranges, threads);
  const joined = joinParts(launch, beginning === null ? rest : [beginning, ...rest]);
  return joined === null
    ? runHere('CTAs in different parts of the grid touch the same memory, or have findings')
    : { run: joined, threads: Math.min(threads, ranges.length), why: 'no part touches another' };
}
