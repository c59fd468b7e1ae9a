export {
  auditAccuracy,
  auditOutputs,
  auditableLse,
  auditableOutput,
  judgeOutputs,
  type Audit,
  type AuditOptions,
  type JudgedElements,
  type Judgement,
  type KernelOutputs,
} from './audit.js';
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
export type { Diagnosis } from './diagnosis/index.js';
export { elementBounds, type ElementBounds, type RowsBoundVisitor } from './element-bounds.js';
export type { ElementTest } from './element-test.js';
export {
  createUlpScale,
  elementAt,
  type Coordinates,
  type ErrorProfile,
  type Percentiles,
} from './error-profile.js';
export type { LseTest } from './lse-test.js';
export type { RowStatistics } from './row-statistics.js';
export type { PremiseDeclaration } from './premise-declaration.js';
export {
  checkDeclaration,
  declarationFlags,
  describeDeclaration,
  parseDeclaration,
  premiseNames,
  premisePresets,
  premiseWords,
  type PremiseName,
} from './premise-words.js';
export {
  factorsError,
  premisesByFormat,
  problemPremises,
  resolvePremises,
  type Premises,
} from './premises.js';
export {
  spreadScopes,
  testSpread,
  type SpreadResult,
  type SpreadScope,
  type SpreadTest,
} from './spread-test.js';
export { alarmDeviations } from './structure-statistic.js';
export {
  structureScopes,
  structureTests,
  type StructureResult,
  type StructureScope,
  type StructureTest,
} from './structure.js';
export { describePlace, type Finding, type Verdict } from './verdict.js';
export type { UntestedStructure } from './untested-structure.js';
