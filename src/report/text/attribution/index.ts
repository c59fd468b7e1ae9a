export { renderAttribution, renderShares, type ShareChoice } from './attribution.js';
export { renderIdentification } from './identification.js';
