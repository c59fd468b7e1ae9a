export {
  type ByteMap,
  findByteMoves,
  fromNowhere,
  isChanged,
  type ProbedOperand,
} from './byte-moves.js';
export { type BitsEffect, findBitsEffects } from './bits-effects.js';
export { laneRules, type ElementOperand, type ElementRule } from './lane-rules.js';
export type { Limit, RealFunction } from '../trace/index.js';
export { evaluateReal, limited } from './evaluate-real.js';
export { cosine, exp2, ln2, log2, log2e, sine, tanh } from './real-functions.js';
