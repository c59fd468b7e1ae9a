/**
 * flashproof: verifies the numerics of attention kernels. The audit and the tensors and number
 * formats it works on; oracles, kernel models and properties have entry points of their own.
 */
export * from './audit/index.js';
export * from './formats/index.js';
export * from './problem.js';
export { RequestError } from './request-error.js';
