export {
  errorNotesSection,
  errorSection,
  type Section,
  testNotes,
  testsSection,
  usualChecksSection,
} from './audit-sections.js';
export { type AuditSketch, gatherSketch } from './audit-sketch.js';
export { notJudged } from './audit-summary.js';
export { renderAudit, type AuditRenderOptions, type RenderOptions } from './audit.js';
export { renderBenchmarks } from './benchmarks.js';
export { renderCheckAnnotations } from './check-annotations.js';
export {
  describeFinding,
  describeKernel,
  describeTriedSizes,
  renderCheck,
  triedSizesHeading,
} from './check.js';
export { conformanceSentence, renderConformance } from './conformance.js';
export { renderBound, techniqueNotes, techniqueSections } from './techniques.js';
