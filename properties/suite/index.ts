export {
  assertAttentionKernel,
  checkKernel,
  type CheckOptions,
  type CheckResult,
  describeFailures,
  describeLawFailure,
  describeNothingTried,
  groupFailures,
  roundsOf,
} from './check-kernel.js';
export type { Counterexample } from './find-counterexample.js';
export {
  lawOutcome,
  LawProgress,
  neverReached,
  runNumber,
  type LawFailure,
  type LawOutcome,
  type LawResult,
  type LawStatus,
  type RoundStart,
} from './law-progress.js';
export {
  assertMatchesAttention,
  assertWithinBound,
  matchAttention,
  matchBound,
  type AttentionMatch,
  type BoundOptions,
} from './match.js';
export { modelPromises, type ModelUnderTest } from './model-promises.js';
export { planCheck, type CheckPlan, type CheckScope, type PlannedLaw } from './plan-check.js';
export { resolvePromises, type KernelPromises, type ResolvedPromises } from './promises.js';
export { runCase, type CaseResult } from './run-case.js';
export { featureNotes } from './plan-check.js';
export { widenedNotes } from './law-progress.js';
export type { RoundRunner } from './take-turns.js';
export { isPass, tryLaws, type CheckLimits, type TriedLaws } from './try-laws.js';
export {
  largestSizes,
  triedSizeNames,
  tryRound,
  type LawOfCheck,
  type RoundFailure,
  type RoundResult,
  type TriedSizes,
} from './try-round.js';
export {
  faultKind,
  groupByKind,
  type ViolationGroup,
  type ViolationKind,
} from './violation-kind.js';
