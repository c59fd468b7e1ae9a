export * from './architectures.js';
export * from './convert.js';
export * from './mufu/index.js';
export * from './tensor-core/index.js';
