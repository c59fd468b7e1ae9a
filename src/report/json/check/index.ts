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
