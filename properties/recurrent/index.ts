export * from './laws/index.js';
export * from './problems/index.js';
export * from './suite/index.js';
