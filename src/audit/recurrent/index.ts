export {
  recurrentPresets,
  recurrentStateFormats,
  type RecurrentDeclaration,
  type RecurrentPreset,
} from './declaration.js';
export { type HeadSample } from './head-sample.js';
export { type RecurrentIdentity } from './judge-identity.js';
export { type JudgedRecurrence } from './judge-recurrence.js';
export {
  auditRecurrent,
  auditRecurrentApart,
  whyUnjudged,
  type GivenRecurrence,
  type RecurrentAudit,
  type RecurrentAuditOptions,
  type RecurrentMeasurements,
  type RecurrentRequest,
} from './recurrent-audit.js';
export { type RecurrentTest } from './recurrent-statistic.js';
export { parseRecurrentDeclaration, recurrentPremises } from './parse-declaration.js';
export {
  measurePart as measureRecurrentPart,
  type MeasuredPart,
  type RecurrentPlan,
} from './measure-part.js';
