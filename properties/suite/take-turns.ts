import type { LawId } from '../laws/index.js';
import type { LawProgress } from './law-progress.js';
import type { RoundResult } from './try-round.js';

/** Tries rounds of laws, several at the same time perhaps. */
export interface RoundRunner {
  /** How many rounds it tries at the same time. */
  readonly lanes: number;
  /** See `tryRound`. */
  readonly tryRound: (law: LawId, round: number, shrinkSeconds: number) => Promise<RoundResult>;
}

/** How far laws are tried. */
export interface TurnLimits {
  /** Rounds of each law. */
  readonly runs: number;
  /** Whether the first failure ends it. */
  readonly bail: boolean;
  /** Seconds after which no further round is begun. */
  readonly seconds: number;
  /** Seconds that a failing problem is simplified for at most. */
  readonly shrinkSeconds: number;
}

/** A law with its rounds that are under way, or were tried before one that comes first. */
interface LawTurns {
  readonly law: LawProgress;
  /** The round that is begun next. */
  next: number;
  underWay: number;
  readonly tried: Map<number, { readonly result: RoundResult; readonly secondsUntil: number }>;
}

/** The law whose turn it is: one that is not under way if there is any, of these the one that is furthest behind. */
function nextOf(all: readonly LawTurns[], runs: number): LawTurns | undefined {
  return all
    .filter(({ law, next }) => law.isOpen && next <= runs)
    .reduce<LawTurns | undefined>((best, one) => {
      if (best === undefined) return one;
      const order = one.underWay - best.underWay || one.next - best.next;
      return order < 0 ? one : best;
    }, undefined);
}

/**
 * Tries laws, which take turns, until each failed or had its runs, or the time is up. What becomes of a law does not
 * depend on how many rounds are tried at the same time: those behind a failure are as if never tried.
 * @param onRound called after every round that counts with how many there were
 * @returns how many rounds count, and whether the time was up before all were tried
 */
export async function takeTurns(
  laws: readonly LawProgress[],
  { lanes, tryRound }: RoundRunner,
  { runs, bail, seconds, shrinkSeconds }: TurnLimits,
  onRound: (done: number) => void,
): Promise<{ readonly done: number; readonly outOfTime: boolean }> {
  const start = performance.now();
  const elapsed = () => (performance.now() - start) / 1000;
  const all = laws.map((law): LawTurns => ({ law, next: 1, underWay: 0, tried: new Map() }));
  let done = 0;
  let outOfTime = false;
  const settle = ({ law, tried }: LawTurns): void => {
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
