export { renderExploration } from './exploration.js';
export { renderMutants } from './mutants.js';
export { renderLines, renderRun } from './run.js';
