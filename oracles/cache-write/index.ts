export { factorSpan, quotientSpan, type FactorTerms, type Span } from './factors.js';
export { isLegal, legalNumbers, type LegalNumbers, type NumberTerms } from './numbers.js';
