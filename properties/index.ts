export { attentionProblem } from './problem-arbitrary.js';
export {
  scaleKinds,
  specialKinds,
  type ProblemConstraints,
  type ScaleKind,
  type SpecialKind,
} from './problem-constraints.js';
export { regimeNames, type RegimeName } from './value-regimes.js';
export {
  scoreProblem,
  scoreRegime,
  scoreRegimeNames,
  type ScoreProblemRequest,
  type ScoreRegimeName,
} from './score-regimes.js';
export type { SizeName, SizeRange } from './size-range.js';
export { describeProblem } from './describe-problem.js';
export {
  assertMatchesAttention,
  matchAttention,
  type AttentionMatch,
  type AttentionOutputs,
} from './match-attention.js';
