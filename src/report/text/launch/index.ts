export { renderCertificate } from './certificate.js';
export { renderExploration } from './exploration.js';
export { renderMutants } from './mutants.js';
export { renderLines, renderRun, renderThreads } from './run.js';
