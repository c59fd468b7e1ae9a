import {
  findingWeight,
  footprintsMeet,
  forEachWritten,
  type GlobalFootprint,
  mergeDependences,
  sumOfCounters,
} from '../../machine/index.js';
import type { Launch } from '../launch/index.js';
import { sumOfExecutions } from './execution-counts.js';
import { createFindingList } from './finding-list.js';
import type { LaunchRun } from './run-launch.js';
import { workOfUnits } from './unit-work.js';

/** The run of some clusters of a grid by themselves: data that a thread may send. */
export interface GridPart {
  readonly run: LaunchRun;
  /** The global memory that they have read and written. */
  readonly footprint: GlobalFootprint;
}

/** Whether a part alone settles everything about its clusters. */
function isSettled({ findings, isComplete, cancelsLaunches }: LaunchRun): boolean {
  return (
    isComplete && !cancelsLaunches && findings.every(({ kind }) => findingWeight(kind) === 'hint')
  );
}

/** The contents of the tensors after all parts: each has written what no other has touched. */
function joinTensors(
  { tensors }: Pick<Launch, 'tensors'>,
  parts: readonly GridPart[],
): ReadonlyMap<string, Uint8Array> {
  const joined = new Map(tensors.map(({ name, bytes }) => [name, bytes.slice()] as const));
  for (const { run, footprint } of parts)
    forEachWritten(footprint, (address, count) => {
      for (const [name, base] of run.bases) {
        const bytes = joined.get(name)!;
        const first = Math.max(address - base, 0);
        const end = Math.min(address + count - base, bytes.length);
        if (first < end) bytes.set(run.tensors.get(name)!.subarray(first, end), first);
      }
    });
  return joined;
}

/**
 * Joins the runs of a launch whose clusters ran in parts, each with a copy of global memory of its own; null where the parts do not settle it:
 * a part has a finding or no end, cancels launches, or has written bytes that another has read or written. Then the clusters have to be run
 * together. Otherwise no cluster knows of those of other parts, so that the result is that of one run.
 */
export function joinParts(launch: Launch, parts: readonly GridPart[]): LaunchRun | null {
  const runs = parts.map(({ run }) => run);
  const [first] = runs;
  if (first === undefined || !runs.every(isSettled)) return null;
  for (let i = 0; i < parts.length; i++)
    for (let j = 0; j < i; j++)
      if (footprintsMeet(parts[i].footprint, parts[j].footprint)) return null;
  const counts = sumOfExecutions(runs.map((run) => run.counts));
  const counters = sumOfCounters(runs.map((run) => run.counters));
  const findings = createFindingList();
  for (const run of runs)
    for (const finding of run.findings) findings.add([finding], finding.cluster);
  const { findings: listed, unlisted } = findings.list();
  const sum = (of: (run: LaunchRun) => number) => runs.reduce((all, run) => all + of(run), 0);
  return {
    ...first,
    findings: listed,
    unlisted: unlisted + sum((run) => run.unlisted),
    counts,
    counters,
    work: workOfUnits(counts, counters, first.architecture),
    tensors: joinTensors(launch, parts),
    areCommitsFenced: runs.every(({ areCommitsFenced }) => areCommitsFenced),
    dependences: mergeDependences(runs.map(({ dependences }) => dependences)),
    // One part of several may be a single cluster, which says nothing of the others.
    speaksForAllSchedules:
      first.areCtasCompared && runs.every(({ speaksForAllSchedules }) => speaksForAllSchedules),
    clusters: sum(({ clusters }) => clusters),
    steps: sum(({ steps }) => steps),
    mostClusterSteps: Math.max(...runs.map(({ mostClusterSteps }) => mostClusterSteps)),
  };
}
