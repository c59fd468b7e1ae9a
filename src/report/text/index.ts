export { errorSections, sequencesSection, usualChecksSection } from './audit-sections.js';
export { gatherSketch } from './audit-sketch.js';
export { notJudged } from './audit-summary.js';
export { failedTestsSection, testNotes, testsSection } from './audit-tests.js';
export { failureSection, nearestText, placeText, worstRowOf, worstRowText } from './failure.js';
export { renderAudit, splitsSection } from './audit.js';
export { renderAudits } from './audits.js';
export { renderBenchmarks } from './benchmarks.js';
export { renderCheckAnnotations } from './check.js';
export {
  describeFinding,
  describeKernel,
  describeTriedSizes,
  renderCheck,
  renderCheckList,
  type CheckNames,
  triedSizesHeading,
} from './check.js';
export { differenceSections } from './comparison.js';
export {
  gradientNotes,
  gradientsOfTechniques,
  gradientsSection,
  gradientTechniquesNote,
  gradientTechniquesSection,
} from './gradients.js';
export { gradientTestsSection } from './gradient-tests.js';
export { probeSentence, renderProbes, type MachineProbe } from './doctor.js';
export { conformanceSentence, renderConformance } from './conformance.js';
export { renderBound, techniqueNotes, techniqueSections } from './techniques.js';
export { renderInvariance } from './invariance.js';
export { modelMatchesSection, modelMatchNotes } from './model-matches.js';
export {
  failedRecurrentTests,
  identitiesSection,
  recurrentNotes,
  recurrentSection,
  recurrentTestsSection,
} from './contracts/recurrent.js';
export { renderFileReport } from './contracts/file-report.js';
export { chainSection, costNotes, costSection, jointSection } from './contracts/chain.js';
export { linkNotes, linkSection } from './contracts/link.js';
