import type { LawId } from '../laws/index.js';
import type { LawProgress } from './law-progress.js';
import type { RoundFailure, RoundResult } from './try-round.js';

/** Tries rounds of laws, possibly several at the same time. */
export interface RoundRunner<Id extends string = LawId, Failure = RoundFailure> {
  /** Number of rounds tried at the same time. */
  readonly lanes: number;
  /** See `tryRound`. */
  readonly tryRound: (
    law: Id,
    round: number,
    shrinkSeconds: number,
  ) => Promise<RoundResult<Failure>>;
}

/** Limits of the rounds. */
export interface TurnLimits {
  /** Number of rounds of each law. */
  readonly runs: number;
  /** Whether to stop at the first failure. */
  readonly bail: boolean;
  /** Seconds after which no further round begins. */
  readonly seconds: number;
  /** The most seconds to simplify a failing problem. */
  readonly shrinkSeconds: number;
}

/** A law with its rounds under way, and those that were tried before an earlier one ended. */
interface LawTurns<Id extends string, Failure extends object> {
  readonly law: LawProgress<Id, Failure>;
  /** The next round to begin. */
  next: number;
  underWay: number;
  readonly tried: Map<
    number,
    { readonly result: RoundResult<Failure>; readonly secondsUntil: number }
  >;
}

/** The law whose turn it is: among those not under way, if any, the one that is furthest behind. */
function nextOf<T extends LawTurns<string, object>>(
  all: readonly T[],
  runs: number,
): T | undefined {
  return all
    .filter(({ law, next }) => law.isOpen && next <= runs)
    .reduce<T | undefined>((best, one) => {
      if (best === undefined) return one;
      const order = one.underWay - best.underWay || one.next - best.next;
      return order < 0 ? one : best;
    }, undefined);
}

/**
 * Tries laws, which take turns, until each failed or had its runs, or the time is up. The result of a law does not
 * depend on the number of rounds tried at the same time: those behind a failure are as if never tried.
 * @param onRound called after every round that counts with their number so far
 * @returns the number of rounds that count, and whether the time was up before all were tried
 */
export async function takeTurns<Id extends string, Failure extends object>(
  laws: readonly LawProgress<Id, Failure>[],
  { lanes, tryRound }: RoundRunner<Id, Failure>,
  { runs, bail, seconds, shrinkSeconds }: TurnLimits,
  onRound: (done: number) => void,
): Promise<{ readonly done: number; readonly outOfTime: boolean }> {
  const start = performance.now();
  const elapsed = () => (performance.now() - start) / 1000;
  const all = laws.map((law): LawTurns<Id, Failure> => ({
    law,
    next: 1,
    underWay: 0,
    tried: new Map(),
  }));
  let done = 0;
  let outOfTime = false;
  const settle = ({ law, tried }: LawTurns<Id, Failure>): void => {
    for (;;) {
      const round = law.runs + 1;
      const first = tried.get(round);
      if (first === undefined || !law.isOpen) return;
      tried.delete(round);
      law.add(first.result, { runsUntil: ++done, secondsUntil: first.secondsUntil });
      onRound(done);
    }
  };
  const lane = async (): Promise<void> => {
    for (;;) {
      // A kernel that answers at once would keep timers and signals waiting to the end.
      await new Promise((resolve) => setImmediate(resolve));
      if (bail && laws.some(({ failure }) => failure !== null)) return;
      const turns = nextOf(all, runs);
      if (turns === undefined) return;
      const secondsUntil = elapsed();
      if (secondsUntil >= seconds) {
        outOfTime = true;
        return;
      }
      const round = turns.next++;
      turns.underWay++;
      // A failure leaves most of the time to the other laws.
      const spare = Math.max((seconds - secondsUntil) / 4, 1);
      const result = await tryRound(turns.law.id, round, Math.min(shrinkSeconds, spare));
      turns.underWay--;
      turns.tried.set(round, { result, secondsUntil });
      settle(turns);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return { done, outOfTime };
}
