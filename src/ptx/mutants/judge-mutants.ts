import {
  adversarialSchedulers,
  type Finding,
  findingWeight,
  randomScheduler,
} from '../../machine/index.js';
import {
  type KernelOptions,
  type LaunchRun,
  type PreparedLaunch,
  turnTakingScheduler,
} from '../run/index.js';
import { commitsSeeInitialisation, type Mutant } from './mutants.js';
import { createTimeLimit, OutOfTime } from './time-limit.js';

/** The possible outcomes of a mutant. */
export const mutantVerdicts = {
  found: 'the machine reports what is illegal',
  hangs: 'warps wait for one another, or the run has no end',
  'changes the result': 'no finding, and other bits in this schedule or in another one',
  redundant: 'the run has no finding, the same bits, and speaks for all schedules of this launch',
  'not shown': 'no finding and the same bits, which is no proof here',
  'not reached': 'the launch does not execute the instruction, or nothing of it was to be changed',
  'not modelled': 'the machine does not have what the change takes away',
  'out of time': 'no end within the time that a mutant is given',
} as const;

/** One of these outcomes. */
export type MutantVerdict = keyof typeof mutantVerdicts;

/** A mutant with its outcome. */
export interface JudgedMutant extends Omit<Mutant, 'mutate'> {
  readonly verdict: MutantVerdict;
  /** Findings that the kernel itself does not have: the first of each kind. */
  readonly findings: readonly Finding[];
  /** The schedule that showed the verdict; null where it was the first, or none. */
  readonly schedule: string | null;
  /** The reason in words, where there is one. */
  readonly reason: string | null;
  /**
   * Whether the first run claims to speak for all schedules while another schedule has shown otherwise: then the
   * machine has overlooked something.
   */
  readonly isOverlooked: boolean;
}

/** Options for running mutants, which run as the kernel itself does. */
export type JudgeOptions = Omit<KernelOptions, 'runs' | 'isEnough' | 'executable'>;

/** Judges the mutants of a launch. */
export interface MutantJudge {
  /** The run of the kernel itself. */
  readonly base: LaunchRun;
  readonly judge: (mutant: Mutant) => JudgedMutant;
}

/** A further schedule in which a mutant is run if the first has shown nothing. */
interface OtherSchedule {
  readonly name: string;
  readonly create: NonNullable<KernelOptions['scheduler']>;
}

/** Number of schedules with random choices. */
const randomSchedules = 2;
/** The adversarial schedules that delay asynchronous operations as far as allowed, or take warps in another order. */
const adversarialNames = ['all operations late', 'warps backwards'];

const otherSchedules: readonly OtherSchedule[] = [
  ...adversarialNames.map((name) => ({
    name,
    create: () => adversarialSchedulers(0).find((one) => one.name === name)!,
  })),
  ...Array.from({ length: randomSchedules }, (_, i) => ({
    name: `random:${i + 1}`,
    create: (cluster: number) => randomScheduler(i + 1 + cluster),
  })),
];

/** Maximum number of steps of a mutant, as a multiple of the kernel's own. */
const stepFactor = 4;
const moreSteps = 10_000;
/** The same multiple for seconds; a run that ends has ended long before. */
const timeFactor = 10;
const leastSeconds = 30;

/**
 * The key that equal findings share, whichever warps made them: their kind, and the instructions that they are about.
 */
function keyOf({ kind, message, accesses }: Finding): string {
  const sites = accesses.map(({ site }) => site).sort();
  return [kind, ...(sites.length === 0 ? [message] : sites)].join('\n');
}

function areEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

/** The first tensor with different bytes; null where all are equal. */
function otherTensor(base: LaunchRun, run: LaunchRun): string | null {
  for (const [name, bytes] of base.tensors)
    if (!areEqual(bytes, run.tensors.get(name)!)) return name;
  return null;
}

/** The reason why a run without findings does not show that a mutant is redundant; null where it does. */
function conditionMissing(run: LaunchRun, base: LaunchRun, mutant: Mutant): string | null {
  const isFollowed = mutant.unfollowed === commitsSeeInitialisation && run.areCommitsFenced;
  if (run.speaksForAllSchedules) return isFollowed ? null : mutant.unfollowed;
  const own = illegal(base.findings).length;
  if (own > 0) return `the kernel itself has ${own} finding${own === 1 ? '' : 's'}`;
  if (!run.areCtasCompared)
    return 'the grid is too large for the order between its clusters to be looked at';
  return 'strong accesses, or tests of barriers, come in no order: what they give is up to the schedule';
}

/** A hint that counts as a finding for a mutant: the kernel has the fence, and compilers omit it. */
const tellingHint: Finding['kind'] = 'unfenced-initialisation';

/** A hint of a fault that is a finding of another kind in a schedule that shows it. */
const late: Finding['kind'] = 'stray-commit';

function illegal<One extends Finding>(findings: readonly One[]): readonly One[] {
  return findings.filter(({ kind }) => findingWeight(kind) !== 'hint');
}

/**
 * Runs a launch's kernel itself, and can then run its mutants: each in the schedule of the first run with race detection, and
 * in other schedules too if it shows nothing there. Only findings count that the kernel itself does not have, of that kind at
 * those instructions.
 */
export function createMutantJudge(
  prepared: PreparedLaunch,
  options: JudgeOptions = {},
): MutantJudge {
  const { scheduler = turnTakingScheduler, ...machineOptions } = options;
  const start = performance.now();
  const base = prepared.run({ ...machineOptions, scheduler });
  const seconds = Math.ceil(
    Math.max(leastSeconds, (timeFactor * (performance.now() - start)) / 1000),
  );
  const mostSteps = stepFactor * base.mostClusterSteps + moreSteps;
  const known = new Set(base.findings.map(keyOf));
  // Faults of the kernel itself may look different in another schedule, and a mutant runs in one.
  if (illegal(base.findings).length > 0 || base.findings.some(({ kind }) => kind === late))
    for (const { create } of otherSchedules)
      for (const finding of prepared.run({ ...machineOptions, mostSteps, scheduler: create })
        .findings)
        known.add(keyOf(finding));
  const newOf = (findings: readonly Finding[]): readonly Finding[] => {
    const kinds = new Set<string>();
    return findings.filter((finding) => {
      if (findingWeight(finding.kind) === 'hint' && finding.kind !== tellingHint) return false;
      const isNew = !known.has(keyOf(finding)) && !kinds.has(finding.kind);
      if (isNew) kinds.add(finding.kind);
      return isNew;
    });
  };
  let usable: readonly OtherSchedule[] | null = null;

  /**
   * The schedules in which the kernel itself gives the same outputs as in the first: only there do different bits mean
   * anything.
   */
  const schedules = (): readonly OtherSchedule[] =>
    (usable ??= otherSchedules.filter(({ create }) => {
      const run = prepared.run({ ...machineOptions, races: false, mostSteps, scheduler: create });
      // Where order is not followed, a late commit is reported as if its operations were unknown.
      for (const finding of run.findings) known.add(keyOf(finding));
      return run.isComplete && otherTensor(base, run) === null;
    }));

  function runMutant(
    mutant: Mutant,
    { scheduler: create = scheduler, ...more }: KernelOptions,
    note: () => void,
  ): LaunchRun {
    return prepared.run(
      {
        ...machineOptions,
        mostSteps,
        ...more,
        scheduler: createTimeLimit(seconds).within(create),
        isEnough: (findings) => newOf(findings).length > 0,
      },
      mutant.mutate(note),
    );
  }

  /** The verdict that a run shows; null where it shows nothing. */
  function shown(run: LaunchRun): Pick<JudgedMutant, 'verdict' | 'findings' | 'reason'> | null {
    const findings = newOf(run.findings);
    if (findings.some(({ kind }) => kind !== 'deadlock'))
      return { verdict: 'found', findings, reason: null };
    if (findings.length > 0) return { verdict: 'hangs', findings, reason: null };
    if (!run.isComplete && base.isComplete)
      return { verdict: 'hangs', findings, reason: 'the run does not come to its end' };
    const tensor = otherTensor(base, run);
    if (tensor === null) return null;
    return { verdict: 'changes the result', findings, reason: `other bytes in ${tensor}` };
  }

  function judgeRuns(mutant: Mutant): Omit<JudgedMutant, keyof Mutant> {
    if (!base.counts.byLine.has(mutant.line))
      return nothing('not reached', mutantVerdicts['not reached']);
    let executed = 0;
    const note = () => void executed++;
    const first = runMutant(mutant, {}, note);
    const atOnce = shown(first);
    if (atOnce !== null) return { ...atOnce, schedule: null, isOverlooked: false };
    if (executed === 0) return nothing('not reached', mutantVerdicts['not reached']);
    for (const { name, create } of schedules()) {
      const result = shown(runMutant(mutant, { races: false, scheduler: create }, note));
      if (result !== null)
        return { ...result, schedule: name, isOverlooked: first.speaksForAllSchedules };
    }
    const missing = conditionMissing(first, base, mutant);
    return missing === null ? nothing('redundant', null) : nothing('not shown', missing);
  }

  return {
    base,
    judge: (mutant) => {
      const { number, kind, line, mnemonic, change, unmodelled, unfollowed } = mutant;
      const described = { number, kind, line, mnemonic, change, unmodelled, unfollowed };
      if (unmodelled !== null) return { ...described, ...nothing('not modelled', unmodelled) };
      try {
        return { ...described, ...judgeRuns(mutant) };
      } catch (error) {
        if (!(error instanceof OutOfTime)) throw error;
        return { ...described, ...nothing('out of time', `no end within ${seconds} s`) };
      }
    },
  };
}

function nothing(verdict: MutantVerdict, reason: string | null): Omit<JudgedMutant, keyof Mutant> {
  return { verdict, findings: [], schedule: null, reason, isOverlooked: false };
}
