export type {
  CheckFinding,
  CheckReport,
  ReportedKernel,
  ReportedPromises,
  ReportedProperty,
  ReportedShards,
  ReportedViolation,
} from './check-document.js';
export {
  assembleCheckReport,
  createCheckReport,
  kernelDoesNotRun,
  reportedPromises,
  reportedViolation,
  type CheckAssembly,
  type CheckedLaw,
  type SavedViolation,
} from './check-report.js';
export {
  createInvarianceReport,
  type InvarianceProvenance,
  type InvarianceReport,
  type ReportedBits,
  type ReportedChange,
  type ReportedDimension,
} from './invariance-report.js';
