import type { Gradient } from '../../../../oracles/index.js';
import { decodeTensor, formats, unitRoundoff, type FormatName } from '../../../formats/index.js';
import type { Problem, ProblemShape, Tensor } from '../../../problem/index.js';
import { workingFormat } from '../../premises/premises.js';
import type { GradientPremises } from './gradient-premises.js';
import type { GradientTechniqueBound } from './group-bounds.js';
import { operandRounding, type PairArithmetic } from './pair-arithmetic.js';
import { createScoreSharer, emptyScoreShare, ScoreSums, type AlikePairs } from './score-shares.js';
import { createPairTile } from './pairs/pair-tile.js';
import type { RowErrors } from './pairs/weighed-pairs.js';

/** Sums the errors of rows in the gradient of their sinks: Theorem 20 of docs/theory/bounds-backward.md. */
export interface SinkBound {
  /** Adds a row that sees a key. @param head counted over [batch, heads] @param alike how many rows of the head are equal to it */
  readonly add: (head: number, row: RowErrors, alike: AlikePairs) => void;
  /** Marks a row of this head of which nothing is known. */
  readonly giveUp: (head: number) => void;
  /** @param exact [heads] */
  readonly finish: (exact: Gradient) => GradientTechniqueBound;
}

const firstPair = [[{ begin: 0, end: 1 }]];

/**
 * The arithmetic of kernels for the terms of dSink. No matrix product takes them: a fused kernel, whose D is of the stored O, adds P·D
 * as it is, and a framework writes dS.
 */
function sinkArithmetic(
  { q }: Problem,
  arithmetic: PairArithmetic,
  { sinkTerms: declared, delta, elementwise, output }: GradientPremises,
): PairArithmetic {
  const usual = delta === 'stored-output' ? 'fp64' : workingFormat(q.format, output);
  const sinkTerms = declared === 'any' ? usual : declared;
  const rounding = operandRounding(sinkTerms, elementwise, [], 1);
  return {
    ...arithmetic,
    softcap: null,
    weights: rounding,
    weightRounding: rounding.format === null ? 0 : unitRoundoff(formats[sinkTerms]),
    ds: rounding,
  };
}

/**
 * Starts sums of the sinks' gradient. A sink is a key of value 0 whose score is given: dP = 0, dSink = Σ P(0 − D) over all rows.
 * @param sinks the logits, [heads]
 * @param format the format that the gradient is stored in
 */
export function createSinkBound(
  problem: Problem,
  sinks: Tensor,
  { batch, heads, queries }: ProblemShape,
  { premises, arithmetic }: { premises: GradientPremises; arithmetic: PairArithmetic },
  format: FormatName,
): SinkBound {
  const logits = decodeTensor(sinks);
  const ofSink = sinkArithmetic(problem, arithmetic, premises);
  const shareOf = createScoreSharer(ofSink);
  const sums = new ScoreSums(heads);
  const share = emptyScoreShare();
  const tile = createPairTile(ofSink, { hasPartials: false, hasAddends: true, hasFactors: false });
  const { addend, addendSize } = tile.known;
  tile.setRanges(firstPair);
  return {
    add: (head, row, alike) => {
      const logit = logits[head % heads];
      if (logit === -Infinity) return;
      addend?.fill(logit, 0, 1);
      addendSize?.fill(Math.abs(logit), 0, 1);
      tile.setRows([row]);
      tile.weigh();
      shareOf(tile.weighed, 0, row, alike, share);
      sums.add(head % heads, share, alike);
    },
    giveUp: (head) => sums.giveUp(head % heads),
    finish: (exact) => sums.finish(exact, batch * queries, premises, ofSink, format),
  };
}
