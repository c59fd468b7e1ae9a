import type { MachineRequest } from './request.js';
import type {
  ExponentialSplit,
  ProgramClusterRun,
  RescaleTraffic,
} from '../../../kernels/index.js';
import {
  roofline,
  sumOfCounters,
  type CtaCounters,
  type Finding,
  type Roofline,
} from '../../machine/index.js';

/** A finding, and in how many clusters it was made. */
export interface ClusterFinding extends Finding {
  /** The first cluster that it was made in. */
  readonly cluster: number;
  readonly clusters: number;
}

/** What the clusters of a run have done together. */
export interface MachineResults {
  readonly isComplete: boolean;
  readonly findings: readonly ClusterFinding[];
  readonly steps: number;
  /** Of the longest cluster; null when the schedule is not timed. */
  readonly clocks: number | null;
  readonly counters: CtaCounters;
  readonly exponentials: ExponentialSplit;
  readonly rescales: RescaleTraffic;
  readonly roofline: Roofline;
  /** The rates' evidence, a line each. */
  readonly rateEvidence: readonly string[];
}

/** Gathers the runs of the clusters. */
export interface MachineGatherer {
  readonly add: (run: ProgramClusterRun) => void;
  readonly results: () => MachineResults;
}

/** A gatherer without runs; keeps one sum of counters, whatever the number of clusters. */
export function createMachineGatherer({ program, schedule }: MachineRequest): MachineGatherer {
  const { rates } = program;
  const findings = new Map<string, ClusterFinding>();
  let counters = sumOfCounters([]);
  let [steps, clocks, isComplete] = [0, 0, true];
  return {
    add: (run) => {
      counters = sumOfCounters([counters, ...run.counters]);
      steps += run.steps;
      clocks = Math.max(clocks, run.clocks);
      isComplete &&= run.isComplete;
      for (const finding of run.findings) {
        const key = `${finding.kind} ${finding.message}`;
        const { cluster, count, clusters } = findings.get(key) ?? {
          cluster: run.cluster,
          count: 0,
          clusters: 0,
        };
        const first = findings.get(key) ?? finding;
        findings.set(key, {
          ...first,
          cluster,
          clusters: clusters + 1,
          count: count + finding.count,
        });
      }
    },
    results: () => ({
      isComplete,
      findings: [...findings.values()],
      steps,
      counters,
      clocks: schedule.isTimed ? clocks : null,
      exponentials: program.exponentials(counters),
      rescales: program.rescales(counters),
      roofline: roofline(counters, rates),
      rateEvidence: rates.evidence,
    }),
  };
}
