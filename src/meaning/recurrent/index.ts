export {
  compareRecurrence,
  type RecurrentComparison,
  type RecurrentOutputComparison,
  type RecurrentReals,
} from './compare-recurrence.js';
export { constantsText, type RecurrentConstants } from './constants.js';
export type { RecurrentOutput, RecurrentRealOf } from './exact-elements.js';
export type { OutputScale } from './find-constants.js';
