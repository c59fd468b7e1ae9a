export {
  createAuditReport,
  createExecutionFailureReport,
  type AuditReport,
  type ExecutionFailureReport,
  type JudgedReport,
  type Provenance,
  type ReportedFinding,
  type ReportedSource,
  type ReportHead,
  type TensorSource,
} from './audit-report.js';
export {
  createBoundReport,
  renderBound,
  type BoundProvenance,
  type BoundReport,
} from './bound-report.js';
export { renderCheckAnnotations } from './check-annotations.js';
export { renderCheckJunit } from './check-junit.js';
export {
  assembleCheckReport,
  createCheckReport,
  reportedPromises,
  reportedViolation,
  type CheckAssembly,
  type CheckedLaw,
  type CheckProvenance,
  type CheckReport,
  type ReportedKernel,
  type ReportedPromises,
  type ReportedProperty,
  type ReportedShards,
  type ReportedViolation,
  type SavedViolation,
} from './check-report.js';
export { renderCheck } from './check-terminal.js';
export {
  gatherPlotData,
  renderHtml,
  type ComparedOutput,
  type Exp2Curve,
  type HtmlReport,
  type PlotData,
  type ReproduceCommand,
} from './html/index.js';
export { renderJunit } from './junit.js';
export { reportedProblem, type ReportedProblem } from './reported-problem.js';
export { describeReportedProblem } from './reported-problem-text.js';
export { fromReported, type Reported, type ReportNumber } from './report-number.js';
export { renderAudit, type RenderOptions } from './terminal.js';
export { quoteShellCommand } from './shell-words.js';
export {
  describeViolation,
  validateBoundReport,
  validateCheckReport,
  validateReport,
} from './validate-report.js';
export { wrapText } from './wrap-text.js';
