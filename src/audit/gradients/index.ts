export { auditGradients, auditGradientsApart, type GradientAudit } from './audit-gradients.js';
export type { GradientAuditOptions } from './plan-gradients.js';
export { createRequestedMeasure, type GroupData, type GroupRequest } from './gradient-stages.js';
export type { MeasuredGroup } from './measure-gradients.js';
export type { GradientRule } from './usual-rule.js';
export type { GradientTensors } from './gradient-tensors.js';
export {
  anyGradientPremises,
  createGradientBounds,
  eagerGradientPremises,
  gradientTechniques,
  kernelGradientPremises,
  techniquesByPlace,
  type BoundedGradients,
  type GradientPremises,
  type GradientTechnique,
  type GradientTechniqueTable,
  type GradientTechniqueBound,
  type GradientTechniqueLine,
  type GroupBounds,
  type StoredForward,
  type TechniqueShares,
} from './bounds/index.js';
export type { GradientDiagnosis } from './diagnosis/diagnosis.js';
export {
  gradientQuantities,
  judgedGradients,
  outputGradient,
  sharedQuantities,
  type ByGradient,
  type GradientQuantityName,
  type JudgedGradientName,
  type SharedGradientName,
} from './gradient-quantities.js';
export {
  measureGradients,
  type MeasuredGradient,
  type MeasuredGradients,
} from './measure-gradients.js';
export { gradientFormat } from './given-gradients.js';
export type { GradientVerdict } from './gradient-verdict.js';
export {
  declaredGradientPremises,
  gradientPremiseNames,
  gradientPremiseWords,
  parseGradientDeclaration,
  type GradientDeclaration,
  type GradientPremiseName,
} from './premises/gradient-declaration.js';
export {
  describeGradientFits,
  fitGradientPremises,
  type GradientPremiseFit,
} from './premises/fit-gradient-premises.js';
export type { JudgedGradient } from './judge-gradient.js';
export {
  gradientTests,
  type GradientStatistic,
  type GradientTest,
} from './structure/gradient-statistic.js';
