export type {
  CheckFinding,
  CheckReport,
  PropertyName,
  ReportedKernel,
  ReportedPromises,
  ReportedProperty,
  ReportedRecurrentPromises,
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
  createRecurrentCheckReport,
  reportedRecurrentPromises,
  reportedRecurrentViolation,
  type RecurrentProvenance,
} from './recurrent-report.js';
export {
  createInvarianceReport,
  type InvarianceProvenance,
  type InvarianceReport,
  type ReportedBits,
  type ReportedChange,
  type ReportedDimension,
} from './invariance-report.js';
