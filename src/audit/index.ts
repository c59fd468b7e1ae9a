export type { CauseFamily, FoundCause } from './conduct/causes.js';
export {
  conduct,
  conductApart,
  usualFalseAlarmRate,
  type Contract,
  type Judged,
  type Terms,
} from './conduct/contract.js';
export {
  describedContract,
  measureDescribed,
  type ContractDescription,
  type DescribedAudit,
  type DescribedCause,
  type DescribedPlan,
  type MeasuredQuantities,
  type MeasuredQuantity,
} from './conduct/described-contract.js';
export type { ClosedRunner, Crew, PartRunner, Stages } from './conduct/stage.js';
export {
  auditOutputs,
  auditOutputsApart,
  judgeOutputs,
  type Audit,
  type AuditedOutputs,
  type AuditedVectors,
} from './outputs/audit-outputs.js';
export type { AuditOptions, JudgedElements } from './outputs/audit-options.js';
export type { Judgement } from './outputs/output-contract.js';
export { auditAccuracy } from './outputs/plan-audit.js';
export { headRows } from './parts/head-rows.js';
export { measureApart, type PartAnswer } from './parts/measure-apart.js';
export type { PartRequest, PartSettings, PartTensors } from './parts/measure-part.js';
export {
  boundInParts,
  measureBoundPart,
  type BoundPartAnswer,
  type BoundPartRequest,
  type BoundSettings,
} from './parts/bound-parts.js';
export { firstRowOf, partShape, type Part } from './parts/part-plan.js';
export {
  auditableLse,
  auditableOutput,
  compareQuantity,
  decodeOutputs,
  decodeQuantity,
  type ComparedQuantity,
  type GivenOutputs,
  type GivenQuantity,
  type KernelOutputs,
} from './kernel-outputs.js';
export {
  judgedQuantities,
  structureOf,
  type JudgedNumbers,
  type JudgedOutputs,
  type JudgedQuantity,
  type JudgedVectors,
} from './judge-quantity.js';
export * from './gradients/index.js';
export * from './links/index.js';
export * from './recurrent/index.js';
export type { Baselines } from './baselines.js';
export {
  KernelBound,
  type RowBound,
  anyKernelArithmetic,
  fa4Arithmetic,
  forEachRowsBound,
  judgedArithmetic,
  modelArithmetic,
  modelPremises,
  naiveArithmetic,
  outputRounding,
  type Bounds,
  type ByTechnique,
  type CombinedBounds,
  type KernelArithmetic,
  type RowsBound,
} from './bounds/index.js';
export {
  chooseRows,
  defaultRows,
  mostMultiplyAdds,
  multiplyAddsOf,
  sampledProblem,
  sampledRowNumbers,
  sampledQuantity,
  sampleRows,
  type FaultOdds,
  type RowSample,
  type RowSampleRequest,
  type SampledRows,
  chooseKeys,
  type KeySample,
  type KeySampleRequest,
} from './rows/index.js';
export type { Diagnosis } from './diagnosis/index.js';
export { elementBounds, type ElementBounds, type RowsBoundVisitor } from './element-bounds.js';
export type { ElementTest } from './element-test.js';
export { createUlpScale, type ErrorProfile, type Percentiles } from './error-profile.js';
export type { NumberTest, NumberTest as LseTest } from './number-test.js';
export type { SequenceUsage } from './outputs/sequence-usage.js';
export {
  describePlace as describeCausePlace,
  describeRows,
  placeInBrackets,
  type Place,
} from './rows/index.js';
export { describePlace, elementAt, placeOf, type Coordinates } from './kernel-outputs.js';
export {
  compareOutputs,
  comparedTile,
  type Closeness,
  type OutputDifference,
} from './compared/output-difference.js';
export {
  judgeSplits,
  mergeParts,
  otherRules,
  requestedRule,
  type JudgedSplits,
  type MergeJudgement,
  type PartialResults,
  type SplitAudit,
  type SplitRule,
} from './splits/index.js';
export { signedRankTest, type SignedRank } from './compared/signed-rank.js';
export { planThinning, thinnedRows, type Thinning } from './parts/thinning.js';
export type { RowStatistics } from './row-statistics.js';
export type { PremiseDeclaration } from '../../kernels/index.js';
export {
  checkDeclaration,
  declarationFlags,
  describeDeclaration,
  parseDeclaration,
} from './premises/declaration.js';
export {
  premiseNames,
  premisePresets,
  premiseWords,
  type PremiseName,
} from './premises/premise-words.js';
export { factorsError, premisesByFormat, type Premises } from './premises/premises.js';
export { problemPremises, resolvePremises } from './premises/resolve-premises.js';
export { quantisedInputs } from './premises/quantised-inputs.js';
export {
  spreadScopes,
  testSpread,
  type SpreadResult,
  type SpreadScope,
  type SpreadTest,
} from './spread-test.js';
export type { ErrorStatistic } from './structure/error-statistic.js';
export { alarmDeviations } from './structure/structure-statistic.js';
export {
  inTestOrder,
  structureQuantity,
  structureScopes,
  structureTests,
  type StructureResult,
  type StructureScope,
  type StructureTest,
} from './structure/structure-result.js';
export { findingTest, type Finding, type FindingTest } from './findings.js';
export { nearestClause, premiseHint, type Verdict } from './verdict.js';
export type { UntestedStructure } from './structure/structure-result.js';
export type { KeyTileMap, KeyTileMaps, KeyTileRow } from './structure/key-tile-maps.js';
