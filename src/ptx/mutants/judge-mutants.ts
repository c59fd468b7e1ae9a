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
import { lazily } from '../../reuse.js';
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

/** The findings that a kernel itself has. */
class KnownFindings {
  readonly #keys = new Set<string>();

  add(findings: readonly Finding[]): void {
    for (const finding of findings) this.#keys.add(keyOf(finding));
  }

  /** Those of a mutant's findings that the kernel does not have, the first of each kind. */
  newOf(findings: readonly Finding[]): readonly Finding[] {
    const kinds = new Set<string>();
    return findings.filter((finding) => {
      if (findingWeight(finding.kind) === 'hint' && finding.kind !== tellingHint) return false;
      const isNew = !this.#keys.has(keyOf(finding)) && !kinds.has(finding.kind);
      if (isNew) kinds.add(finding.kind);
      return isNew;
    });
  }
}

/** Runs of a launch's kernel, and of its mutants, which get some times as many steps and seconds. */
class JudgedRuns {
  readonly base: LaunchRun;
  /** Seconds that a mutant is given. */
  readonly seconds: number;
  readonly known = new KnownFindings();
  readonly #prepared: PreparedLaunch;
  readonly #options: JudgeOptions;
  readonly #scheduler: NonNullable<KernelOptions['scheduler']>;
  readonly #mostSteps: number;

  /**
   * The schedules in which the kernel itself gives the same outputs as in the first: only there do different bits mean
   * anything.
   */
  readonly schedules = lazily((): readonly OtherSchedule[] =>
    otherSchedules.filter(({ create }) => {
      const run = this.#runKernel(create, { races: false });
      // Where order is not followed, a late commit is reported as if its operations were unknown.
      this.known.add(run.findings);
      return run.isComplete && otherTensor(this.base, run) === null;
    }),
  );

  constructor(
    prepared: PreparedLaunch,
    { scheduler = turnTakingScheduler, ...options }: JudgeOptions,
  ) {
    const start = performance.now();
    const base = prepared.run({ ...options, scheduler });
    const taken = (performance.now() - start) / 1000;
    this.base = base;
    this.seconds = Math.ceil(Math.max(leastSeconds, timeFactor * taken));
    this.#prepared = prepared;
    this.#options = options;
    this.#scheduler = scheduler;
    this.#mostSteps = stepFactor * base.mostClusterSteps + moreSteps;
    this.known.add(base.findings);
    // Faults of the kernel itself may look different in another schedule, and a mutant runs in one.
    if (illegal(base.findings).length > 0 || base.findings.some(({ kind }) => kind === late))
      for (const { create } of otherSchedules) this.known.add(this.#runKernel(create).findings);
  }

  runMutant(
    mutant: Mutant,
    { scheduler = this.#scheduler, ...more }: KernelOptions,
    note: () => void,
  ): LaunchRun {
    return this.#prepared.run(
      {
        ...this.#options,
        mostSteps: this.#mostSteps,
        ...more,
        scheduler: createTimeLimit(this.seconds).within(scheduler),
        isEnough: (findings) => this.known.newOf(findings).length > 0,
      },
      mutant.mutate(note),
    );
  }

  /** The verdict that a run of a mutant shows; null where it shows nothing. */
  shown(run: LaunchRun): Pick<JudgedMutant, 'verdict' | 'findings' | 'reason'> | null {
    const findings = this.known.newOf(run.findings);
    if (findings.some(({ kind }) => kind !== 'deadlock'))
      return { verdict: 'found', findings, reason: null };
    if (findings.length > 0) return { verdict: 'hangs', findings, reason: null };
    if (!run.isComplete && this.base.isComplete)
      return { verdict: 'hangs', findings, reason: 'the run does not come to its end' };
    const tensor = otherTensor(this.base, run);
    if (tensor === null) return null;
    return { verdict: 'changes the result', findings, reason: `other bytes in ${tensor}` };
  }

  #runKernel(create: OtherSchedule['create'], more: KernelOptions = {}): LaunchRun {
    const mostSteps = this.#mostSteps;
    return this.#prepared.run({ ...this.#options, ...more, mostSteps, scheduler: create });
  }
}

/** The outcome of a mutant's runs. */
function judgeRuns(runs: JudgedRuns, mutant: Mutant): Omit<JudgedMutant, keyof Mutant> {
  if (!runs.base.counts.byLine.has(mutant.line))
    return nothing('not reached', mutantVerdicts['not reached']);
  let executed = 0;
  const note = () => void executed++;
  const first = runs.runMutant(mutant, {}, note);
  const atOnce = runs.shown(first);
  if (atOnce !== null) return { ...atOnce, schedule: null, isOverlooked: false };
  if (executed === 0) return nothing('not reached', mutantVerdicts['not reached']);
  for (const { name, create } of runs.schedules()) {
    const result = runs.shown(runs.runMutant(mutant, { races: false, scheduler: create }, note));
    if (result !== null)
      return { ...result, schedule: name, isOverlooked: first.speaksForAllSchedules };
  }
  const missing = conditionMissing(first, runs.base, mutant);
  return missing === null ? nothing('redundant', null) : nothing('not shown', missing);
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
  const runs = new JudgedRuns(prepared, options);
  return {
    base: runs.base,
    judge: (mutant) => {
      const { number, kind, line, mnemonic, change, unmodelled, unfollowed } = mutant;
      const described = { number, kind, line, mnemonic, change, unmodelled, unfollowed };
      if (unmodelled !== null) return { ...described, ...nothing('not modelled', unmodelled) };
      try {
        return { ...described, ...judgeRuns(runs, mutant) };
      } catch (error) {
        if (!(error instanceof OutOfTime)) throw error;
        return { ...described, ...nothing('out of time', `no end within ${runs.seconds} s`) };
      }
    },
  };
}

function nothing(verdict: MutantVerdict, reason: string | null): Omit<JudgedMutant, keyof Mutant> {
  return { verdict, findings: [], schedule: null, reason, isOverlooked: false };
}
