export * from './architectures.js';
export * from './convert.js';
export * from './evidence.js';
export * from './mufu/index.js';
export * from './tensor-core/index.js';
