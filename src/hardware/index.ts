export * from './architectures.js';
export * from './convert/index.js';
export * from './mufu/index.js';
export * from './tensor-core/index.js';
