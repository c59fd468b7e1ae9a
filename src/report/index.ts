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
export { renderJunit } from './junit.js';
export { fromReported, type Reported, type ReportNumber } from './report-number.js';
export { renderAudit, type RenderOptions } from './terminal.js';
export { validateBoundReport, validateReport } from './validate-report.js';
