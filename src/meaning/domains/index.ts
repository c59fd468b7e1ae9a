export { ExpressionDomain, hashOfText, type Hash, type NameInput } from './expression.js';
export { RealDomain } from './real.js';
export { RoundingDomain, type RoundingShares } from './rounding.js';
