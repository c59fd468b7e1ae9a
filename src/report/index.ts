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
export { gatherSketch, type AuditSketch } from './audit-sketch.js';
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
  kernelDoesNotRun,
  reportedPromises,
  reportedViolation,
  type CheckAssembly,
  type CheckedLaw,
  type CheckFinding,
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
export { fitLines } from './fit-lines.js';
export { renderJunit } from './junit.js';
export { plainText } from './plain-text.js';
export { reportedProblem, type ReportedProblem } from './reported-problem.js';
export { describeReportedProblem } from './reported-problem-text.js';
export { fromReported, type Reported, type ReportNumber } from './report-number.js';
export { joinLargest, sparkline } from './sparkline.js';
export { renderAudit, type AuditRenderOptions, type RenderOptions } from './terminal.js';
export { quoteShellCommand } from './shell-words.js';
export {
  describeViolation,
  validateBoundReport,
  validateCheckReport,
  validateReport,
} from './validate-report.js';
export { layoutTable } from './text-table.js';
export {
  describeWarning,
  unusedWarnings,
  type ReportWarning,
  type UnusedNames,
} from './warnings.js';
export { wrapText } from './wrap-text.js';
