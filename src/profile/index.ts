export { minimaxExp2, type Constraint, type Minimax } from './minimax.js';
export type { DomainReport, FunctionReport, MeasureReport } from './error-report.js';
export type { InputRange } from './cells.js';
export type { SweepProgress } from './sweep.js';
export { UnfinishedSweep, type SweepLedger } from './sweep-units.js';
export { profileExp2, type Exp2Profile } from './techniques/exp2.js';
export { profileWeightRounding, type WeightRoundingProfile } from './techniques/p-round.js';
export {
  profilePolynomialShare,
  type PolynomialShareProfile,
} from './techniques/polynomial-share.js';
export type { Plot } from './techniques/plots.js';
export type { ErrorProfile, ProfileOptions } from './techniques/profile.js';
export { profileRangeReduction, type RangeReductionProfile } from './techniques/range-reduction.js';
export { profileRescale, type RescaleProfile } from './techniques/rescale.js';
export { profileSplit, type SplitProfile } from './techniques/split.js';
export {
  techniqueNamed,
  techniques,
  type Profile,
  type Technique,
  type TechniqueOption,
} from './techniques/techniques.js';
export type { OffsetTrade } from './limits/offset-trade.js';
export type { ThresholdLimit, ThresholdOutcome } from './limits/threshold-limits.js';
export type { PolynomialShareCase, ShareMeasure } from './trade-offs/polynomial-share-case.js';
export type { RescaleCase, RescaleMeasure } from './trade-offs/rescale-case.js';
export type { TradeOffOptions } from './trade-offs/trade-off-request.js';
export { tuningNames } from './techniques/tuning-lanes.js';
export { profileUnit, type UnitErrorProfile } from './techniques/unit.js';
export type { CornerReport, CornerResult } from './corners.js';
export type { Envelope } from './envelope.js';
export type { Averages, BreakExample, HistogramBin } from './error-report.js';
export { weightings, type Weighting } from './errors.js';
export { valueOfOrdinal } from './float32-order.js';
export type { InputView } from './input-view.js';
export { limitLargestValue, limitOffsets, limitScoreExponent } from './limits/threshold-limits.js';
export type { ReferenceReport } from './techniques/evidence.js';
export type { MinimaxComparison } from './techniques/exp2-minimax.js';
export type { Underflow } from './techniques/p-round.js';
export type { Panel } from './techniques/panels.js';
export type { BinadeReduction } from './techniques/range-reduction.js';
export { thresholdText } from './techniques/rescale-summary.js';
export type { CrossingBreaks } from './techniques/split.js';
export type { TuningLanes } from './techniques/tuning-lanes.js';
export type { MeasuredProblems } from './trade-offs/measured-problems.js';
