export { createAttributedNaive } from './attributed-attention.js';
