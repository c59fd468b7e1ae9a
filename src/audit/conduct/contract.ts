import {
  reachVerdict,
  type Cause,
  type Evidence,
  type Explainers,
  type ReachedVerdict,
} from '../verdict.js';
import { measureByCrew, measureHere } from './measure.js';
import type { Crew, Measurements, MeasuringTerms, StageProgress, Stages } from './stage.js';

/** Probability that the statistical tests fail a correct kernel, where no other is asked for. */
export const usualFalseAlarmRate = 1e-9;

/** The types of a contract. */
export interface Terms extends MeasuringTerms {
  /** What was given to be judged, and how. */
  readonly plan: unknown;
  /** The cause of a failure. */
  readonly cause: Cause;
  /** The whole judgement. */
  readonly result: unknown;
}

/** Explainers that were found late, and where they are from. */
export interface FoundExplainers<C extends Cause> {
  readonly explainers: Explainers<C> | null;
  /** A clause for readers of the result. */
  readonly note: string;
}

/** What the tests say of what was measured. */
export interface Judged<T extends Terms> {
  readonly evidence: Evidence<T['cause']>;
  /** The causes that a failure may have; null where none is wanted. */
  readonly explainers: Explainers<T['cause']> | null;
  /** Finds the explainers of a failure where they need what is not in memory; left out where they do not. */
  readonly explainElsewhere?: () => Promise<FoundExplainers<T['cause']>>;
  /** The result with its verdict. */
  readonly result: (verdict: ReachedVerdict<T['cause']>, note?: string) => T['result'];
}

/**
 * What a kernel promises, as a value: how its problem is measured in parts (exact values with their radii, bounds, statistics), and
 * which quantities, tests and causes its results are judged by.
 */
export interface Contract<T extends Terms> {
  readonly stages: (plan: T['plan']) => Stages<Measurements<T>>;
  readonly judge: (plan: T['plan'], measured: T['measured']) => Judged<T>;
}

/** Judges by a contract, all in this thread. */
export function conduct<T extends Terms>(
  { stages, judge }: Contract<T>,
  plan: T['plan'],
  progress: StageProgress = () => undefined,
): T['result'] {
  const { evidence, explainers, result } = judge(plan, measureHere(stages(plan), progress));
  return result(reachVerdict(evidence, explainers));
}

/** Judges as `conduct`, its parts measured by a crew: the result is the same. */
export async function conductApart<T extends Terms>(
  { stages, judge }: Contract<T>,
  plan: T['plan'],
  crew: Crew<Measurements<T>>,
  progress: StageProgress = () => undefined,
): Promise<T['result']> {
  const judged = judge(plan, await measureByCrew(stages(plan), crew, progress));
  const { evidence, explainers, explainElsewhere, result } = judged;
  if (explainElsewhere === undefined) return result(reachVerdict(evidence, explainers));
  const unexplained = reachVerdict(evidence, null);
  if (unexplained.pass || !unexplained.judged) return result(unexplained);
  const found = await explainElsewhere();
  return result(reachVerdict(evidence, found.explainers), found.note);
}
