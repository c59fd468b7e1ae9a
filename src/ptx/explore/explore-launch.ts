import { type Finding, findingGroup, findingWeight } from '../../machine/index.js';
import {
  type KernelOptions,
  type LaunchRun,
  type PreparedLaunch,
  turnTakingScheduler,
} from '../run/index.js';
import { exploreOrders, type Holds, runHolds, type RunPlanned } from './explore-orders.js';
import { createStepNames, logRun } from './step-log.js';

/** An outcome of runs. */
interface ExploredOutcome<Value> {
  readonly value: Value;
  readonly runs: number;
  /** The first schedule that has it, in the form of `run --schedule`. */
  readonly schedule: string;
}

/** An output that differs from that of the first run. */
interface DifferingOutput {
  readonly tensor: string;
  readonly bytes: number;
}

/** The result of an exploration of a launch. */
export interface Exploration {
  readonly runs: number;
  /** Whether the runs stand for all schedules, apart from how often warps poll. */
  readonly isExhausted: boolean;
  /** Choices of the schedule that were not explored; empty where there are none. */
  readonly left: readonly string[];
  /** Maximum number of unordered pairs of steps in a run that depend on one another. */
  readonly mostPairs: number;
  /** The different results, that of the usual schedule first: the outputs that differ from its own. */
  readonly results: readonly ExploredOutcome<readonly DifferingOutput[]>[];
  /**
   * The findings that are illegal in any schedule, the first of each kind and place of the program; hints are left out,
   * and findings that say that a run speaks for its schedule alone.
   */
  readonly findings: readonly ExploredOutcome<Finding>[];
  /** Runs that did not come to their end, and the first schedule of one. */
  readonly incomplete: { readonly runs: number; readonly schedule: string } | null;
}

/** The prefix of the names of schedules that an exploration has found. */
const prefix = 'explored';

/** The name of a schedule of an exploration for `run --schedule`. */
export function exploredSchedule(holds: Holds): string {
  return holds.length === 0
    ? 'in-turns'
    : `${prefix}:${holds.map(([held, until]) => `${held}-${until}`).join(',')}`;
}

/** The schedule with a name of `exploredSchedule`; null for another name. */
export function holdsOf(name: string): Holds | null {
  const [kind, list] = name.split(':', 2);
  if (kind !== prefix || !/^\d+-\d+(,\d+-\d+)*$/.test(list ?? '')) return null;
  return list.split(',').map((pair) => pair.split('-').map(Number) as [number, number]);
}

/** Options for the runs of an exploration. */
type ExploreOptions = Pick<KernelOptions, 'model'>;

/** Limits for warps that poll, lower than in a single run. */
const patience = { pollsPerWarp: 16, mostPolls: 2 ** 14 } as const;

function planned(
  launch: PreparedLaunch,
  ctas: number,
  outputs: readonly string[],
  options: ExploreOptions,
  ofLast: KernelOptions = {},
): RunPlanned<LaunchRun> {
  const names = createStepNames();
  return (plan, isLast = false) => {
    const { log, ...logged } = logRun(names, plan, ctas, turnTakingScheduler);
    const result = launch.run({
      ...options,
      ...patience,
      ...(isLast ? ofLast : {}),
      ...logged,
    });
    const bytes = outputs.map((name) => result.tensors.get(name) ?? new Uint8Array(0));
    return { log: log(), result, digest: bytes.map(hashOf).join(' ') };
  };
}

/** FNV-1a of bytes, and their number. */
function hashOf(bytes: Uint8Array): string {
  let [hash, other] = [0x811c9dc5, 0x1000193];
  for (const byte of bytes) {
    hash = Math.imul(hash ^ byte, 0x01000193);
    other = Math.imul(other ^ byte, 0x85ebca6b) + 1;
  }
  return `${bytes.length}:${hash >>> 0}:${other >>> 0}`;
}

function differences(
  first: LaunchRun,
  { tensors }: LaunchRun,
  outputs: readonly string[],
): DifferingOutput[] {
  return outputs.flatMap((tensor) => {
    const [one, other] = [first.tensors.get(tensor), tensors.get(tensor)];
    if (one === undefined || other === undefined) return [];
    const bytes = one.reduce((sum, byte, at) => sum + (byte === other[at] ? 0 : 1), 0);
    return bytes === 0 ? [] : [{ tensor, bytes }];
  });
}

function count<Value>(
  seen: Map<string, { value: Value; runs: number; schedule: string }>,
  key: string,
  value: () => Value,
  schedule: string,
): void {
  const known = seen.get(key);
  if (known !== undefined) known.runs++;
  else seen.set(key, { value: value(), runs: 1, schedule });
}

/** The first finding of each kind at the same lines. */
function firstOfGroups(findings: readonly Finding[]): ReadonlyMap<string, Finding> {
  const first = new Map<string, Finding>();
  for (const finding of findings) {
    const group = findingGroup(finding);
    if (!first.has(group)) first.set(group, finding);
  }
  return first;
}

/**
 * Runs a launch in those orders of its steps that a schedule may choose and that may change the result (`exploreOrders`): of strong accesses
 * in no order, tests of barriers, allocations of tensor memory.
 *
 * @param ctas CTAs of a cluster
 * @param outputs the tensors to compare
 */
export function exploreLaunch(
  launch: PreparedLaunch,
  { ctas, outputs, mostRuns }: { ctas: number; outputs: readonly string[]; mostRuns: number },
  options: ExploreOptions = {},
  progress: (runs: number) => void = () => undefined,
): Exploration {
  const run = planned(launch, ctas, outputs, options);
  const results = new Map<
    string,
    { value: readonly DifferingOutput[]; runs: number; schedule: string }
  >();
  const findings = new Map<string, { value: Finding; runs: number; schedule: string }>();
  const left = new Set<string>();
  let first: LaunchRun | null = null;
  let incomplete: { runs: number; schedule: string } | null = null;
  let runs = 0;
  const explored = exploreOrders(run, mostRuns, (result, holds) => {
    first ??= result;
    const schedule = exploredSchedule(holds);
    if (!result.isComplete)
      incomplete = {
        runs: (incomplete?.runs ?? 0) + 1,
        schedule: incomplete?.schedule ?? schedule,
      };
    const key = outputs.map((name) => hashOf(result.tensors.get(name) ?? new Uint8Array(0)));
    count(results, key.join(' '), () => differences(first!, result, outputs), schedule);
    const illegal = result.findings.filter(({ kind }) => findingWeight(kind) === 'illegal');
    for (const [group, finding] of firstOfGroups(illegal))
      count(findings, group, () => finding, schedule);
    if (illegal.length > 0) left.add('what an illegal act comes to in another order');
    if (!result.areCtasCompared)
      left.add('the order of accesses of different clusters, in a grid too large for it');
    if (result.cancelsLaunches) left.add('which launches that have not started are cancelled');
    progress(++runs);
  });
  return {
    ...explored,
    isExhausted: explored.isExhausted && left.size === 0,
    left: [...left],
    results: [...results.values()],
    findings: [...findings.values()],
    incomplete,
  };
}

/**
 * Runs one schedule of an exploration again.
 *
 * @param options the options of the exploration
 * @param ofLast options for that schedule's run alone: the runs that it is made from come before it
 * @throws RangeError for a schedule that no exploration of this launch has
 */
export function runExplored(
  launch: PreparedLaunch,
  ctas: number,
  holds: Holds,
  options: ExploreOptions = {},
  ofLast: Pick<KernelOptions, 'trace' | 'progress'> = {},
): LaunchRun {
  return runHolds(planned(launch, ctas, [], options, ofLast), holds);
}
