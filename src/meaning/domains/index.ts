export { ExpressionDomain, type NameInput } from './expression.js';
export { hashOfText, type Hash } from './hasher.js';
export { Idioms, type Idiom } from './idioms.js';
export { InfluenceDomain, type LabelOf } from './influence.js';
export type { Influences } from './influences.js';
export { anySet, emptySet, LabelSets } from './label-sets.js';
export { RealDomain } from './real.js';
export { RoundingDomain, type RoundingShares } from './rounding.js';
