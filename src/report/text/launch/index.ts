export { renderLines, renderRun } from './run.js';
