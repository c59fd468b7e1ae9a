export type { InputRange } from './cells.js';
export type { CornerReport, CornerResult } from './corners.js';
export type { Envelope } from './envelope.js';
export type {
  Averages,
  BreakExample,
  DomainReport,
  FunctionReport,
  HistogramBin,
  MeasureReport,
} from './error-report.js';
export { weightings, type Weighting } from './errors.js';
export { valueOfOrdinal } from './float32-order.js';
export type { InputView } from './input-view.js';
export {
  limitLargestValue,
  limitOffsets,
  limitScoreExponent,
  type ThresholdLimit,
  type ThresholdOutcome,
} from './limits/threshold-limits.js';
export { UnfinishedSweep, type SweepLedger, type SweepProgress } from './sweep.js';
export type { ReferenceReport } from './functions.js';
export {
  profileExp2,
  type Exp2Profile,
  type MinimaxComparison,
} from './techniques/exp2-profile.js';
export {
  profileWeightRounding,
  type Underflow,
  type WeightRoundingProfile,
} from './techniques/p-round.js';
export {
  profilePolynomialShare,
  type PolynomialShareProfile,
} from './techniques/polynomial-share.js';
export type { FunctionErrorProfile, ProfileOptions, Panel, Plot } from './techniques/profile.js';
export {
  profileRangeReduction,
  type BinadeReduction,
  type RangeReductionProfile,
} from './techniques/range-reduction.js';
export { profileRescale, thresholdText, type RescaleProfile } from './techniques/rescale.js';
export { profileUnit, type UnitErrorProfile } from './techniques/special-functions.js';
export { profileSplit, type CrossingBreaks, type SplitProfile } from './techniques/split.js';
export {
  techniqueNamed,
  techniques,
  type Profile,
  type ProfiledTechnique,
  type TechniqueOption,
} from './techniques/techniques.js';
export { tuningNames, type TuningLanes } from './trade-offs/exp2-shares.js';
export type { MeasuredProblems } from './trade-offs/measured-problems.js';
export type { PolynomialShareCase, ShareMeasure } from './trade-offs/polynomial-share-case.js';
export type { RescaleCase, RescaleMeasure } from './trade-offs/rescale-case.js';
export type { TradeOffOptions } from './trade-offs/trade-off-request.js';
