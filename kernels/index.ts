export { textbookAttention } from './textbook-attention.js';
