import { RequestError } from '../../src/request-error.js';
import type { LawId } from '../laws/index.js';
import type { SpecialKind } from '../problem-constraints.js';
import { specialKinds } from '../problem-constraints.js';
import type { RegimeName } from '../regimes/index.js';
import type { AttentionKernel } from './attention-kernel.js';
import { specialsOneIn } from './case-arbitrary.js';
import { findCounterexample, type Counterexample } from './find-counterexample.js';
import type { LawStrength } from './law.js';
import { planCheck, type CheckScope, type PlannedLaw } from './plan-check.js';
import { besideThreshold, type Tiling } from '../tiling.js';
import type { KernelPromises, ResolvedPromises } from './promises.js';

/** What to try, and how long. */
export interface CheckOptions extends CheckScope {
  /** Problems that each law is tried on; default 100. */
  readonly runs?: number | undefined;
  /** The same seed tries the same problems; default drawn at random. */
  readonly seed?: number | undefined;
  /** Whether the first failure ends it; default false. */
  readonly bail?: boolean | undefined;
  /** Seconds after which no further problem is tried; default none. */
  readonly seconds?: number | undefined;
  /** Seconds that a failing problem is simplified for; default 10. */
  readonly shrinkSeconds?: number | undefined;
  /** Called after every run with how many there were and how many there may be. */
  readonly progress?: ((done: number, total: number) => void) | undefined;
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
export interface LawResult {
  readonly id: LawId;
  readonly strength: LawStrength | 'none';
  /** Problems that it was tried on. */
  readonly runs: number;
  /** Problems that could not be tried: the kernel declined them, or they are beyond its promises. */
  readonly unsupported: number;
  /** Seconds that its runs took, with simplifying. */
  readonly seconds: number;
  /** Why it was not tried at all, or on no problem that the kernel takes; null when it was. */
  readonly skipped: string | null;
  readonly failure: LawFailure | null;
}

/** What became of all laws. */
export interface CheckResult {
  readonly pass: boolean;
  readonly seed: number;
  readonly laws: readonly LawResult[];
  /** Runs of all laws. */
  readonly runs: number;
  readonly seconds: number;
  /** Whether the time was up before every law had its runs. */
  readonly outOfTime: boolean;
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

/** One law on its way through its runs. */
class LawProgress {
  readonly id: LawId;
  readonly #promises: ResolvedPromises;
  readonly #regimes: readonly RegimeName[];
  readonly #seed: number;
  readonly skipped: string | null;
  failure: LawFailure | null = null;
  runs = 0;
  unsupported = 0;
  #seconds = 0;
  #refusal = '';

  constructor({ id, regimes, skipped }: PlannedLaw, promises: ResolvedPromises, seed: number) {
    this.id = id;
    this.#promises = promises;
    this.#seed = seed;
    // Each law meets the regimes in an order of its own.
    this.#regimes = [...regimes].sort((a, b) => seedFrom(seed, id, a) - seedFrom(seed, id, b));
    this.skipped = skipped;
  }

  get isOpen(): boolean {
    return this.skipped === null && this.failure === null;
  }

  /** Tries the law on the problem of a round. */
  async run(
    round: number,
    kernel: AttentionKernel,
    shrinkSeconds: number,
    sinceStart: () => { readonly runsUntil: number; readonly secondsUntil: number },
  ): Promise<void> {
    const regime = this.#regimes[(round - 1) % this.#regimes.length]!;
    const specials: readonly SpecialKind[] =
      this.#promises.specialValues && round % specialsOneIn === 0 ? specialKinds : [];
    const seed = seedFrom(this.#seed, this.id, regime, round);
    const start = performance.now();
    const began = sinceStart();
    const result = await findCounterexample(
      { law: this.id, regime, specials, tiling: this.#tiling(round), seed },
      kernel,
      this.#promises,
      shrinkSeconds,
    );
    this.runs++;
    this.#seconds += (performance.now() - start) / 1000;
    if (result.status === 'unsupported') {
      this.unsupported++;
      this.#refusal = result.reason;
    }
    if (result.status === 'violated')
      this.failure = { ...result.counterexample, ...began, regime, round };
  }

  /** The promised threshold at first, and others once every regime had its turn. */
  #tiling(round: number): Tiling {
    const { blockKeys, rescaleThreshold } = this.#promises;
    const nearest = besideThreshold * Math.round(rescaleThreshold / besideThreshold);
    const thresholds = [...new Set([nearest, ...usualThresholds])];
    const turn = Math.floor((round - 1) / this.#regimes.length);
    return { blockKeys, threshold: thresholds[turn % thresholds.length]! };
  }

  result(): LawResult {
    const { id, runs, unsupported, failure } = this;
    const refused = runs > 0 && unsupported === runs;
    return {
      id,
      strength: this.#promises.laws[id],
      runs,
      unsupported,
      seconds: this.#seconds,
      skipped: refused ? `none of its problems could be tried: ${this.#refusal}` : this.skipped,
      failure,
    };
  }
}

/**
 * Tries every law on random problems that the kernel promises to take. Laws take turns, so that what
 * breaks many of them shows early; one that fails is simplified and tried no more.
 * @throws RequestError for unknown laws or regimes, runs that are no positive whole number, a seed that
 * is no whole number, and promises that leave no problem
 */
export async function checkKernel(
  kernel: AttentionKernel,
  promises: KernelPromises = {},
  options: CheckOptions = {},
): Promise<CheckResult> {
  const { runs = 100, seconds = Infinity, shrinkSeconds = 10, bail = false, progress } = options;
  const { seed = Math.floor(Math.random() * 2 ** 31) } = options;
  if (!(Number.isSafeInteger(runs) && runs > 0))
    throw new RequestError(`runs is ${runs}; give a positive whole number`);
  if (!Number.isSafeInteger(seed)) throw new RequestError(`seed is ${seed}; give a whole number`);
  const plan = planCheck(promises, options);
  const all = plan.laws.map((law) => new LawProgress(law, plan.promises, seed));
  const start = performance.now();
  const elapsed = () => (performance.now() - start) / 1000;
  const total = runs * all.filter(({ isOpen }) => isOpen).length;
  let done = 0;
  let outOfTime = false;
  for (let round = 1; round <= runs; round++) {
    // A kernel that answers at once would keep timers and signals waiting to the end.
    await new Promise((resolve) => setImmediate(resolve));
    for (const law of all.filter(({ isOpen }) => isOpen)) {
      if (bail && all.some(({ failure }) => failure !== null)) break;
      if (elapsed() >= seconds) {
        outOfTime = true;
        continue;
      }
      done++;
      const sinceStart = () => ({ runsUntil: done, secondsUntil: elapsed() });
      // A failure leaves most of the time to the other laws.
      const spare = Math.max((seconds - elapsed()) / 4, 1);
      await law.run(round, kernel, Math.min(shrinkSeconds, spare), sinceStart);
      progress?.(done, total);
    }
  }
  const results = all.map((law) => law.result());
  return {
    pass: results.every(({ failure }) => failure === null),
    seed,
    laws: results,
    runs: done,
    seconds: elapsed(),
    outOfTime,
  };
}
