export {
  type AuditReport,
  type JudgedReport,
  type Provenance,
  type ReportedFinding,
  type ReportedSource,
  type TensorSource,
  type WidenedTensor,
} from './audit-report.js';
export {
  createAuditReport,
  createExecutionFailureReport,
  type NoOutput,
  createGradientsReport,
  withGradients,
  withNote,
  withSplits,
} from './create-audit-report.js';
export {
  describeGradientSamples,
  reportedGradients,
  type ReportedGradient,
  type ReportedGradients,
  sumBits,
  type GradientBits,
  type ModelMatch,
} from './reported/gradients.js';
export {
  describePartKeys,
  reportedSplits,
  splitFindings,
  type ReportedSplits,
} from './reported/splits.js';
export { describeSample, describeUnbounded, describeUnsampled } from './reported/sample.js';
export {
  createAuditsReport,
  describeFileProblem,
  fileFigures,
  fileReason,
  fileStatus,
  isUnjudged,
  type AuditedFile,
  type AuditsReport,
  type FileFigures,
  type FileReport,
} from './audits-report.js';
export {
  type BoundProvenance,
  type BoundedGradients,
  type BoundReport,
  createBoundReport,
  toReportedTechniques,
} from './technique-documents.js';
export { profileDocument } from './technique-documents.js';
export { fromReported } from './report-number.js';
export {
  reportedComparison,
  type ComparedVersion,
  type ReportedComparison,
  type ReportedDifference,
  type ReportedVersion,
} from './reported/comparison.js';
export {
  mainOutput,
  missingQuantities,
  numbersOf,
  quantityLabel,
  vectorsOf,
  type ReportedNumbers,
  type ReportedVectors,
} from './reported/outputs.js';
export {
  describeReportedProblem,
  reportedProblem,
  type ReportedProblem,
  type UnusedNames,
} from './reported/problem.js';
export { describeWarning } from './reported/problem.js';
export { withMachineFindings, type MachineClauses } from './machine-findings.js';
export {
  createChainReport,
  type ChainCost,
  type ChainFigure,
  type ChainLink,
  type ChainReport,
  type JudgedChain,
} from './contracts/chain-report.js';
export {
  createLinkReport,
  type LinkProvenance,
  type LinkReport,
  type LinkTensor,
} from './contracts/link-report.js';
export {
  createRecurrentFailureReport,
  createRecurrentReport,
  describeHeadSample,
  describeReportedRecurrence,
  describeUnsampledHeads,
  reportedRecurrence,
  type RecurrentReport,
  type ReportedRecurrence,
  type ReportedRecurrentQuantity,
} from './contracts/recurrent-report.js';
export { describeCheckedProblem, sizeOfProblem } from './checked-problem.js';
