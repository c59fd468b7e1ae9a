export {
  auditOutputs,
  auditableLse,
  auditableOutput,
  type Audit,
  type AuditOptions,
  type KernelOutputs,
} from './audit.js';
export type { Baselines } from './baselines.js';
export { KernelBound, type RowBound } from './bound.js';
export type { ElementTest } from './element-test.js';
export type { Coordinates, ErrorProfile, Percentiles } from './error-profile.js';
export type { LseTest } from './lse-test.js';
export { premisesByFormat, type Premises } from './premises.js';
export {
  alarmDeviations,
  structureScopes,
  structureTests,
  type StructureResult,
  type StructureScope,
  type StructureTest,
} from './structure.js';
export { describePlace, formatNumber, type Finding, type Verdict } from './verdict.js';
