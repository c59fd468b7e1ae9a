export {
  certificateTitles,
  harmlessLines,
  idiomLine,
  influenceLines,
  sameLines,
  scheduleLines,
  shortNumber,
} from './certificate-words.js';
export { renderCertificate } from './certificate.js';
export { renderExploration } from './exploration.js';
export { renderMutants } from './mutants.js';
export { renderLines, renderRun, renderThreads } from './run.js';
