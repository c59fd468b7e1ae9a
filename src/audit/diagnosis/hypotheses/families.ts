import type { Problem } from '../../../problem/index.js';
import type { HypothesisFamily } from '../hypothesis.js';
import { coefficientHypotheses } from './coefficient-faults.js';
import { pageHypotheses } from './page-faults.js';
import {
  columnHypotheses,
  columnPlaceHypotheses,
  headPlaceHypotheses,
  rowHypotheses,
} from './placement-faults.js';
import { descaleHypotheses } from './descale-faults.js';
import { headHypotheses } from './head-faults.js';
import { keyTileHypotheses } from './tiles/key-tile-faults.js';
import { lseHypotheses } from './lse-faults.js';
import { listHypotheses } from './lists/list-faults.js';
import { maskHypotheses } from './mask-faults.js';
import { movedHeadHypotheses } from './operands/moved-heads.js';
import { operandHypotheses } from './operands/operand-faults.js';
import { narrowHypotheses } from './narrow/narrow-faults.js';
import { onlineSoftmaxHypotheses } from './online-softmax-faults.js';
import { rescaleHypotheses } from '../long-rows/rescales-of-cells.js';
import { outputPrecisionHypotheses, scorePrecisionHypotheses } from './precision-faults.js';
import { quantisationHypotheses } from './quantised/quantised-operands.js';
import { rotaryHypotheses } from './operands/rotary-faults.js';
import { viewHypotheses } from './operands/viewed-memory.js';
import { rowFactorHypotheses, rowSumHypotheses } from './row-sum-faults.js';
import { splitHypotheses } from './split-faults.js';
import { scaleFactorHypotheses } from './scale-factor.js';
import { scoreBiasHypotheses } from './score-bias.js';
import { scoreHypotheses } from './score-faults.js';
import { scoreTermHypotheses } from './score-term-faults.js';
import { singleKeyHypotheses } from './single-key-faults.js';
import { uniformOffsetHypotheses, uniformScaleHypotheses } from './uniform-scale.js';
import { visibilityHypotheses } from './visibility-faults.js';

/** Hypotheses of outputs that are those of other rows, which a sample of rows may not have. */
const ofOtherRows: ReadonlySet<HypothesisFamily> = new Set([rowHypotheses]);

/** The kinds of hypothesis that can be told from a sample of rows as from all rows. */
export function familiesOf({ rows }: Pick<Problem, 'rows'>): readonly HypothesisFamily[] {
  return rows === undefined
    ? hypothesisFamilies
    : hypothesisFamilies.filter((family) => !ofOtherRows.has(family));
}

/** Kinds of hypothesis that follow from the exact output, the scores and the LSE alone. */
const ofResults: ReadonlySet<HypothesisFamily> = new Set([
  ...[lseHypotheses, headPlaceHypotheses, columnHypotheses, columnPlaceHypotheses, rowHypotheses],
  ...[rowSumHypotheses, outputPrecisionHypotheses, uniformScaleHypotheses, uniformOffsetHypotheses],
  rowFactorHypotheses,
]);

/** The kinds of hypothesis that are tried on rows of so many keys that V is not held, without V. */
export function familiesWithoutValues(problem: Pick<Problem, 'rows'>): readonly HypothesisFamily[] {
  return familiesOf(problem).filter((family) => ofResults.has(family));
}

/** Kinds of hypothesis that apply other weights to V: each column of V gives a column of the output. */
export const familiesOfColumns: readonly HypothesisFamily[] = [
  ...[scoreHypotheses, scaleFactorHypotheses, maskHypotheses, visibilityHypotheses],
  ...[scoreTermHypotheses, headHypotheses, keyTileHypotheses, splitHypotheses, rescaleHypotheses],
];

/** Every kind of hypothesis, in the order in which equally good ones are named. */
const hypothesisFamilies: readonly HypothesisFamily[] = [
  lseHypotheses,
  scoreHypotheses,
  descaleHypotheses,
  quantisationHypotheses,
  scaleFactorHypotheses,
  maskHypotheses,
  visibilityHypotheses,
  listHypotheses,
  scoreTermHypotheses,
  pageHypotheses,
  headHypotheses,
  headPlaceHypotheses,
  operandHypotheses,
  viewHypotheses,
  rotaryHypotheses,
  movedHeadHypotheses,
  columnHypotheses,
  columnPlaceHypotheses,
  rowHypotheses,
  keyTileHypotheses,
  rowSumHypotheses,
  splitHypotheses,
  onlineSoftmaxHypotheses,
  outputPrecisionHypotheses,
  uniformScaleHypotheses,
  uniformOffsetHypotheses,
  singleKeyHypotheses,
  coefficientHypotheses,
  scorePrecisionHypotheses,
  narrowHypotheses,
  scoreBiasHypotheses,
  rowFactorHypotheses,
];
