export * from './convert/index.js';
export * from './mufu/index.js';
