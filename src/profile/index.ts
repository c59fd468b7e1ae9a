export { profileDocument } from './profile-document.js';
export { renderProfile } from './render/render-profile.js';
export { renderSvg } from './render/svg-plot.js';
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
