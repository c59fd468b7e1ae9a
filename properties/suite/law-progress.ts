import { type FormatName, formats, round } from '../../src/formats/index.js';
import { problemShape, type ProblemShape } from '../../src/problem/index.js';
import type { AttentionKernel, KernelRun, LawId, LawStrength } from '../laws/index.js';
import {
  besideThreshold,
  type RegimeName,
  type SpecialKind,
  specialKinds,
  type Tiling,
} from '../problems/index.js';
import { type Counterexample, findCounterexample } from './find-counterexample.js';
import { productionAspect, specialsOneIn } from './law-cases.js';
import type { PlannedLaw } from './plan-check.js';
import type { ResolvedPromises } from './promises.js';

/** The sizes of a problem that bugs depend on. */
export const triedSizeNames = [
  'batch',
  'heads',
  'groupSize',
  'queries',
  'keys',
  'qkDim',
  'vDim',
] as const satisfies readonly (keyof ProblemShape)[];

/** The largest of each size among the problems that a kernel ran on, not all in one problem. */
export type TriedSizes = Readonly<Record<(typeof triedSizeNames)[number], number>>;

/** The largest of each size of some problems, on top of those known before; null for no problem. */
export function largestSizes(
  shapes: readonly TriedSizes[],
  before: TriedSizes | null = null,
): TriedSizes | null {
  const all = before === null ? shapes : [before, ...shapes];
  if (all.length === 0) return null;
  const entries = triedSizeNames.map((name) => [name, Math.max(...all.map((of) => of[name]))]);
  return Object.fromEntries(entries) as TriedSizes;
}

/** Formats of inputs whose kernels write outputs in the same; those of 8 bits write 16. */
const ownOutput: readonly FormatName[] = ['bf16', 'fp16'];

/** The format of a run's inputs, if its output has finite numbers that this format has not; else null. */
function widenedFrom({ problem, outputs, out }: KernelRun): FormatName | null {
  const { format } = problem.q;
  if (!ownOutput.includes(format) || outputs.out.format === format) return null;
  const isWider = out.some((x) => Number.isFinite(x) && round(formats[format], x) !== x);
  return isWider ? format : null;
}

/**
 * What is to be said of a kernel whose outputs are finer than its inputs' formats, which is right, but
 * often not what was meant to be checked: a line for each format.
 */
export function widenedNotes(widened: Iterable<FormatName>): string[] {
  return [...new Set(widened)]
    .sort()
    .map(
      (format) =>
        `outputs for ${format} inputs have digits that ${format} has not; if an adapter widens the inputs, what was checked is the wider kernel behind it, not one in ${format}`,
    );
}

/**
 * What became of a law: it holds on all problems that it was tried on, at least one; it is violated; it
 * was skipped, since the kernel does not promise it or it says nothing of such a kernel; or it was to be
 * tried and never was.
 */
export type LawStatus = 'holds' | 'violated' | 'skipped' | 'untried';

/** How far a law came. */
type LawCounts = Pick<LawProgress, 'runs' | 'unsupported' | 'refusal'>;

/** Why a law was not tried whose first problem was never reached. */
export const neverReached = 'the check ended before its first problem';

/** What became of a law, on how many problems it was tried, and why on none. */
export interface LawOutcome {
  readonly status: LawStatus;
  readonly tried: number;
  /** Null where it was tried. */
  readonly skipped: string | null;
}

/**
 * What became of a law.
 * @param unreached why its first problem was not reached, where it was not
 */
export function lawOutcome(
  { skipped, isPromised }: Pick<PlannedLaw, 'skipped' | 'isPromised'>,
  { runs, unsupported, refusal }: LawCounts,
  isViolated: boolean,
  unreached: string = neverReached,
): LawOutcome {
  const tried = runs - unsupported;
  if (isViolated) return { status: 'violated', tried, skipped: null };
  if (tried > 0) return { status: 'holds', tried, skipped: null };
  const refused = runs > 0 ? `none of its problems could be tried: ${refusal}` : unreached;
  return { status: isPromised ? 'untried' : 'skipped', tried, skipped: skipped ?? refused };
}

/** A law that the kernel violates. */
export interface LawFailure extends Counterexample {
  readonly regime: RegimeName;
  /** The problem's number among those of its law, from 1. */
  readonly round: number;
  /** Runs of all laws until it failed, this one included. */
  readonly runsUntil: number;
  /** Seconds from the start until it failed, before it was simplified. */
  readonly secondsUntil: number;
}

/** What became of one law. */
export interface LawResult extends LawOutcome {
  readonly id: LawId;
  readonly strength: LawStrength | 'none';
  /** Its turns: each tries it on a problem, where one can be found that it can be tried on. */
  readonly runs: number;
  /**
   * Turns in which no problem could be tried: the kernel declined all that were drawn, they were beyond
   * its promises, or the law says nothing of such.
   */
  readonly unsupported: number;
  /** The largest sizes of the problems that the kernel ran on for it; null where it ran on none. */
  readonly sizes: TriedSizes | null;
  /** Formats of inputs for which the kernel wrote outputs with digits that they have not. */
  readonly widened: readonly FormatName[];
  /** Seconds that its runs took, with simplifying. */
  readonly seconds: number;
  readonly failure: LawFailure | null;
}

/** A 32-bit hash of numbers and texts: seeds that have nothing to do with one another. */
function seedFrom(...parts: readonly (number | string)[]): number {
  let hash = 0x811c9dc5;
  for (const character of parts.join('\n'))
    hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) | 0;
}

/** log2 of how far the maximum may lag in kernels that there are. */
const usualThresholds: readonly number[] = [4, 8, 1, 0];

/**
 * One law on its way through its runs. The problem of a round follows from the seed, the law and the
 * round alone, so that rounds can be tried in any order, and in several processes.
 */
export class LawProgress {
  readonly id: LawId;
  readonly #promises: ResolvedPromises;
  readonly #regimes: readonly RegimeName[];
  readonly #seed: number;
  readonly #planned: PlannedLaw;
  failure: LawFailure | null = null;
  runs = 0;
  unsupported = 0;
  /** The largest sizes of the problems that the kernel ran on; null for none. */
  sizes: TriedSizes | null = null;
  readonly #widened = new Set<FormatName>();
  #seconds = 0;
  /** Why the last problem was not tried that could not be; empty where there is none. */
  refusal = '';

  constructor(planned: PlannedLaw, promises: ResolvedPromises, seed: number) {
    const { id, regimes } = planned;
    this.id = id;
    this.#planned = planned;
    this.#promises = promises;
    this.#seed = seed;
    // Each law meets the regimes in an order of its own.
    this.#regimes = [...regimes].sort((a, b) => seedFrom(seed, id, a) - seedFrom(seed, id, b));
  }

  get isOpen(): boolean {
    return this.#planned.skipped === null && this.failure === null;
  }

  /** Tries the law on the problem of a round. */
  async run(
    round: number,
    kernel: AttentionKernel,
    shrinkSeconds: number,
    sinceStart: () => { readonly runsUntil: number; readonly secondsUntil: number },
  ): Promise<void> {
    const regime = this.#regimes[(round - 1) % this.#regimes.length];
    const specials: readonly SpecialKind[] =
      this.#promises.specialValues && round % specialsOneIn === 0 ? specialKinds : [];
    const seed = seedFrom(this.#seed, this.id, regime, round);
    const start = performance.now();
    const began = sinceStart();
    const result = await findCounterexample(
      {
        law: this.id,
        regime,
        specials,
        tiling: this.#tiling(round),
        seed,
        production: productionAspect(this.id, round),
      },
      kernel,
      this.#promises,
      shrinkSeconds,
    );
    this.runs++;
    this.#seconds += (performance.now() - start) / 1000;
    if (result.status === 'unsupported') {
      this.unsupported++;
      this.refusal = result.reason;
      return;
    }
    const shapes = result.runs.map(({ shape }) => shape);
    if (result.status === 'violated') {
      // The kernel may have failed before it gave anything.
      shapes.push(problemShape(result.drawn.problem));
      this.failure = { ...result.counterexample, ...began, regime, round };
    }
    this.sizes = largestSizes(shapes, this.sizes);
    for (const run of result.runs) {
      const format = this.#widened.has(run.problem.q.format) ? null : widenedFrom(run);
      if (format !== null) this.#widened.add(format);
    }
  }

  /** The promised threshold at first, and others once every regime had its turn. */
  #tiling(round: number): Tiling {
    const { blockKeys, rescaleThreshold } = this.#promises;
    const nearest = besideThreshold * Math.round(rescaleThreshold / besideThreshold);
    const thresholds = [...new Set([nearest, ...usualThresholds])];
    const turn = Math.floor((round - 1) / this.#regimes.length);
    return { blockKeys, threshold: thresholds[turn % thresholds.length] };
  }

  result(): LawResult {
    const { id, runs, unsupported, sizes, failure } = this;
    return {
      id,
      strength: this.#promises.laws[id],
      ...lawOutcome(this.#planned, this, failure !== null),
      runs,
      unsupported,
      sizes,
      widened: [...this.#widened].sort(),
      seconds: this.#seconds,
      failure,
    };
  }
}
