export {
  attentionProblem,
  describeProblem,
  describeRegime,
  fittingRegimes,
  regimeNames,
  scaleKinds,
  scoreProblem,
  scoreRegime,
  scoreRegimeNames,
  sizeNames,
  specialKinds,
  type BlockOrder,
  type ProblemConstraints,
  type RegimeDescription,
  type RegimeName,
  type ScaleKind,
  type ScoreProblemRequest,
  type ScoreRegimeName,
  type SizeMultiples,
  type SizeName,
  type SizeRange,
  type SpecialKind,
  type Tiling,
} from './problems/index.js';
export {
  assertMatchesAttention,
  matchAttention,
  type AttentionMatch,
  type AttentionOutputs,
} from './match-attention.js';
export { lawIds, laws, type LawId } from './laws/index.js';
export { UnsupportedProblem, type AttentionKernel } from './suite/attention-kernel.js';
export { assertAttentionKernel } from './suite/assert-attention-kernel.js';
export { checkKernel, isPass, type CheckOptions, type CheckResult } from './suite/check-kernel.js';
export { describeFailures, describeLawFailure, groupFailures } from './suite/describe-failures.js';
export { groupByKind, type ViolationGroup, type ViolationKind } from './suite/violation-kind.js';
export type { Counterexample } from './suite/find-counterexample.js';
export { KernelFault } from './suite/kernel-fault.js';
export { LawProgress, type LawFailure, type LawResult } from './suite/law-progress.js';
export { lawOutcome, neverReached, type LawOutcome, type LawStatus } from './suite/law-outcome.js';
export { NotApplicable } from './suite/not-applicable.js';
export { largestSizes, triedSizeNames, type TriedSizes } from './suite/tried-sizes.js';
export { describeNothingTried } from './suite/describe-nothing-tried.js';
export type { KernelRun, Law, LawCase, LawStrength, LawTools } from './suite/law.js';
export { modelPromises, type ModelUnderTest } from './suite/model-promises.js';
export { planCheck, type CheckPlan, type CheckScope, type PlannedLaw } from './suite/plan-check.js';
export {
  resolvePromises,
  type KernelConfiguration,
  type KernelPromises,
  type ResolvedPromises,
} from './suite/promises.js';
export { widenedNotes } from './suite/widened-outputs.js';
export { runCase, type CaseResult } from './suite/run-case.js';
export { assertWithinBound, matchBound, type BoundOptions } from './match-bound.js';
