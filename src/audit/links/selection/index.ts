export { auditSelection, type GivenSelection, type SelectionOptions } from './audit-selection.js';
export { type SelectionPromises, type SelectionResults } from './judge-rows.js';
export {
  scoreAccumulators,
  type ScoreAccumulator,
  type SelectionArithmetic,
} from './score-intervals.js';
export { selectionFaults } from './selection-faults.js';
