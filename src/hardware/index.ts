export * from './mufu/index.js';
