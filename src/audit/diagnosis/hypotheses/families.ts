import type { HypothesisFamily } from '../hypothesis.js';
import { coefficientHypotheses } from './coefficient-faults.js';
import { headHypotheses } from './head-faults.js';
import { keyTileHypotheses } from './key-tile-faults.js';
import { maskHypotheses } from './mask-faults.js';
import { onlineSoftmaxHypotheses } from './online-softmax-faults.js';
import { columnHypotheses, headPlaceHypotheses, rowHypotheses } from './placement-faults.js';
import { rowSumHypotheses } from './row-sum-faults.js';
import { scoreHypotheses } from './score-faults.js';
import { singleKeyHypotheses } from './single-key-faults.js';
import { uniformOffsetHypotheses, uniformScaleHypotheses } from './uniform-scale.js';

/** Every kind of hypothesis, in the order in which equally good ones are named. */
export const hypothesisFamilies: readonly HypothesisFamily[] = [
  scoreHypotheses,
  maskHypotheses,
  headHypotheses,
  headPlaceHypotheses,
  columnHypotheses,
  rowHypotheses,
  keyTileHypotheses,
  rowSumHypotheses,
  onlineSoftmaxHypotheses,
  uniformScaleHypotheses,
  uniformOffsetHypotheses,
  singleKeyHypotheses,
  coefficientHypotheses,
];
