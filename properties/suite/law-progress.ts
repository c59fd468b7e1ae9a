import type { FormatName } from '../../src/formats/index.js';
import type { LawId, LawStrength } from '../laws/index.js';
import type { PlannedLaw } from './plan-check.js';
import { largestSizes, type RoundFailure, type RoundResult, type TriedSizes } from './try-round.js';

/**
 * Notes on a kernel whose outputs are finer than its inputs' formats, which is right, but often not the
 * kernel that was meant to be checked: a line for each format.
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
 * The result of a law: it holds on all problems that it was tried on, at least one; it is violated; it
 * was skipped, since the kernel does not promise it or it says nothing of such a kernel; or it was to be
 * tried and never was.
 */
export type LawStatus = 'holds' | 'violated' | 'skipped' | 'untried';

type LawCounts = Pick<LawResult, 'runs' | 'unsupported'> & { readonly refusal: string };

/** The reason given for a law whose first problem was never reached. */
export const neverReached = 'the check ended before its first problem';

/** The result of a law, the number of problems that it was tried on, and the reason if there were none. */
export interface LawOutcome {
  readonly status: LawStatus;
  readonly tried: number;
  /** The reason for skipping it; null if it was tried. */
  readonly skipped: string | null;
}

/**
 * The result of a law.
 * @param unreached the reason if its first problem was not reached
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

/** When a round began. */
export interface RoundStart {
  /** Runs of all laws until it failed, this one included. */
  readonly runsUntil: number;
  /** Seconds from the start until it failed, before it was simplified. */
  readonly secondsUntil: number;
}

/** A law that the kernel violates. */
export interface LawFailure extends RoundFailure, RoundStart {}

/**
 * The number of a round of a law among those of all laws, which take turns, one problem each: the turns before, and
 * the laws before it in this one.
 */
export function runNumber(
  laws: readonly Pick<LawResult, 'runs'>[],
  position: number,
  round: number,
): number {
  return laws.reduce(
    (sum, { runs }, i) => sum + Math.min(runs, i <= position ? round : round - 1),
    0,
  );
}

/** The full result of one law, of attention unless its ids and failures are those of another contract. */
export interface LawResult<
  Id extends string = LawId,
  Failure extends object = RoundFailure,
> extends LawOutcome {
  readonly id: Id;
  readonly strength: LawStrength | 'none';
  /** Number of its turns: each tries it on a problem, if one can be found. */
  readonly runs: number;
  /**
   * Number of turns in which no problem could be tried: the kernel declined all that were drawn, they
   * were beyond its promises, or the law says nothing of them.
   */
  readonly unsupported: number;
  /** The largest sizes of the problems that the kernel ran on for it; null where it ran on none. */
  readonly sizes: TriedSizes | null;
  /** Formats of inputs for which the kernel wrote outputs with digits beyond the format. */
  readonly widened: readonly FormatName[];
  /** Seconds that its runs took, with simplifying. */
  readonly seconds: number;
  readonly failure: (Failure & RoundStart) | null;
}

/** One law on its way through its runs. Rounds are added in their order. */
export class LawProgress<Id extends string = LawId, Failure extends object = RoundFailure> {
  readonly id: Id;
  readonly #planned: Pick<PlannedLaw, 'skipped' | 'isPromised'>;
  readonly #strength: LawStrength | 'none';
  failure: (Failure & RoundStart) | null = null;
  runs = 0;
  unsupported = 0;
  /** The largest sizes of the problems that the kernel ran on; null for none. */
  sizes: TriedSizes | null = null;
  readonly #widened = new Set<FormatName>();
  #seconds = 0;
  /** The reason for which the last problem that could not be tried was not; empty for none. */
  refusal = '';

  constructor(
    planned: Pick<PlannedLaw, 'skipped' | 'isPromised'> & { readonly id: Id },
    strength: LawStrength | 'none',
  ) {
    this.id = planned.id;
    this.#planned = planned;
    this.#strength = strength;
  }

  get isOpen(): boolean {
    return this.#planned.skipped === null && this.failure === null;
  }

  /** Adds the result of the law's next round. */
  add(result: RoundResult<Failure>, began: RoundStart): void {
    this.runs++;
    this.#seconds += result.seconds;
    if (result.status === 'unsupported') {
      this.unsupported++;
      this.refusal = result.reason;
      return;
    }
    if (result.failure !== null) this.failure = { ...result.failure, ...began };
    this.sizes = largestSizes(result.sizes === null ? [] : [result.sizes], this.sizes);
    for (const format of result.widened) this.#widened.add(format);
  }

  result(): LawResult<Id, Failure> {
    const { id, runs, unsupported, sizes, failure } = this;
    return {
      id,
      strength: this.#strength,
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
