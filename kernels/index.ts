export { textbookAttention } from './textbook-attention.js';
export * from './fa4/index.js';
