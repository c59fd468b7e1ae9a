export {
  checkSelection,
  headReductions,
  headsOf,
  scoreLaws,
  type HeadReduction,
  type SelectionLaw,
  type SelectionProblem,
  type SelectionScores,
  type SelectionShape,
} from './selection-problem.js';
export { selectionScorer, type Scorer, type ScoreRow } from './selection-scores.js';
