/**
 * flashproof: verifies the numerics of attention kernels. The audit, the attribution of errors to
 * techniques, and the tensors and number formats they work on; oracles, kernel models and properties
 * have entry points of their own.
 */
export * from './attribution/index.js';
export * from './audit/index.js';
export * from './formats/index.js';
export * from './problem/index.js';
export {
  renderAttribution,
  renderIdentification,
  renderShares,
  type ShareChoice,
} from './report/text/attribution/index.js';
export { formatApart, formatNumber } from './words/index.js';
export { RequestError } from './request-error.js';
