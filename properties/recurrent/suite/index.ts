export {
  assertRecurrentKernel,
  checkRecurrentKernel,
  describeRecurrentFailure,
  recurrentRoundsOf,
  type FoundRecurrentFailure,
  type RecurrentCheckOptions,
  type RecurrentCheckResult,
  type RecurrentLawResult,
} from './check-recurrent.js';
export {
  planRecurrentCheck,
  type PlannedRecurrentLaw,
  type RecurrentCheckPlan,
  type RecurrentCheckScope,
} from './plan-check.js';
export { ordinaryRecurrence } from './ordinary-recurrence.js';
export {
  recurrentFormats,
  resolveRecurrentPromises,
  type RecurrentPromises,
  type ResolvedRecurrentPromises,
} from './promises.js';
export { runRecurrentCase, type RecurrentCaseResult } from './run-case.js';
export type { RecurrentFailure } from './try-round.js';
