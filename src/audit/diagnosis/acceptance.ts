import type { HypothesisContext, SampleRow } from './hypothesis.js';
import type { LseAgreement } from './agreement-sums.js';
import { type Agreement, explainedShare, rowCap } from './measure-agreement.js';

/** Largest mean misfit of a hypothesis that explains its rows. */
const largestMisfit = 2.5;
/** A hypothesis must leave this part of a correct kernel's misfit at most. */
const improvement = 0.6;
/** The least part of the squared error that it must explain. */
const leastShare = 0.5;
/** Fewer damaged rows than this, least of the sample, must err by this mean misfit. */
const fewRows = 16;
const evidentMisfit = 6;
/**
 * A gain in −2 log likelihood that chance does not make: where roundings are independent with the expected
 * variance, each hypothesis reaches it on a correct output with a probability of e^-20.
 */
const decisive = 40;
/** Standard errors, and the additional part, by which the slope of the error on the predicted one may differ from 1. */
const slopeDeviations = 4;
const slopeSlack = 0.05;
/** The most that roundings of P that are alike may add to that part where an LSE that no correct kernel gives shows the fault. */
const largestAlike = 0.25;
/** The same for an error that no row shows by itself, which must be measured to this accuracy too. */
const pooledSlack = 0.1;
const pooledAccuracy = 0.1;
/**
 * Mean squared distance of the rows' slopes, in units of the rounding: roundings of P that point along the output
 * make it several times as large as independent ones do.
 */
const largestDispersion = 6;
/** Standard errors by which a pooled gain must differ from zero, rows counting as the units. */
const pooledDeviations = 5;
/** The least effect on the output, in units of its rounding's variance, of a hypothesis that takes the LSE as it is. */
const fittedEnergy = 4 * decisive;
/** The part of its error up to which an LSE that no correct kernel gives must be explained. */
const lseImprovement = 0.3;
/** Mean squared distance of the LSE from the predicted one, in units of its rounding. */
const largestLseMisfit = 9;
/** The approximate error of the LSE of a correct fp32 kernel, in natural units. */
const lseRounding = 2e-6;
/** Query rows that a kernel computes together: a warp's, or the rows of one of its instructions. */
const warpSizes = [32, 16, 8] as const;

/** Per row: by how much more of the error a hypothesis explains than a correct kernel, capped. */
function rowGains({ residuals }: Agreement, damaged: readonly SampleRow[]): number[] {
  const cap = (x: number) => (x < rowCap ? x : rowCap);
  return damaged.map(({ observed, correct, vDim }, index) => {
    const squares = residuals.squares[index];
    if (Number.isNaN(squares)) return 0;
    const noise = Math.max(residuals.noise[index], correct.noise);
    let before = 0;
    for (let c = 0; c < vDim; c++) before += (observed[c] - correct.out[c]) ** 2;
    if (Number.isNaN(before)) before = Infinity;
    return before === squares ? 0 : vDim * (cap(before / noise) - cap(squares / noise));
  });
}

/**
 * Whether the LSE is explained: nearly all rows have the predicted one. One that no correct kernel gives must
 * be explained nearly wholly; one that a correct kernel may give must not speak against the hypothesis.
 */
function explainsLse(lse: LseAgreement): boolean {
  const { rows, fitting, fittingCorrect, misfit, error, correctError } = lse;
  if (rows === 0) return true;
  if (fitting < explainedShare * rows) return false;
  if (fittingCorrect === rows) return error <= 1.05 * correctError + lseRounding;
  return misfit <= largestLseMisfit && error <= lseImprovement * correctError;
}

/** Whether the error is the predicted one, not a part or a multiple of it. */
function followsPrediction({ slope }: Agreement, slack: number): boolean {
  const { value, standardError } = slope;
  return Math.abs(value - 1) <= slack + slopeDeviations * standardError;
}

/**
 * Whether sound rows that the fault would have spoilt lie apart from the damaged ones: in other heads or in
 * other rows of a warp, unless the hypothesis is about single rows. A fault of a whole head is one in every
 * sequence.
 */
function sparesApart(
  { hypothesis, spared }: Agreement,
  damaged: readonly SampleRow[],
  heads: number,
): boolean {
  if (hypothesis.local === true || spared.length === 0) return true;
  if (hypothesis.ofAll === true) return false;
  if (hypothesis.ofHeads === true) {
    const struck = new Set(damaged.map(({ head }) => head % heads));
    return spared.every(({ head }) => !struck.has(head % heads));
  }
  return warpSizes.some((size) => {
    const place = ({ head, query }: SampleRow) => `${head}:${Math.floor(query / size)}`;
    const struck = new Set(damaged.map(place));
    // Smaller stretches than a warp's rows must be struck more than once.
    if (size < 32 && damaged.length < 2 * struck.size) return false;
    return spared.every((row) => !struck.has(place(row)));
  });
}

/** Whether a hypothesis explains damaged rows that show the error by themselves. */
function explainsRows(agreement: Agreement, damaged: readonly SampleRow[], all: number): boolean {
  const { explained, misfit, correctMisfit, share, distinct, rows } = agreement;
  if (explained < explainedShare * damaged.length || misfit > largestMisfit) return false;
  if (misfit > improvement * correctMisfit || share < leastShare) return false;
  // Few rows that barely err may have been picked by their roundings.
  const few = damaged.length < all / 2 && damaged.length < fewRows;
  if (few && correctMisfit < evidentMisfit) return false;
  const gain = rowGains(agreement, damaged).reduce((a, b) => a + b, 0);
  // Where the fault, and nothing else, explains the LSE, the output has less to prove.
  const { lse, slope } = agreement;
  const isShownByLse = lse.rows === rows && lse.fittingCorrect === 0;
  const slack = slopeSlack + (isShownByLse ? Math.min(slope.alike, largestAlike) : 0);
  return (gain * distinct) / rows >= decisive && followsPrediction(agreement, slack);
}

/** Whether a hypothesis explains rows that show the error together only. */
function explainsTogether(agreement: Agreement, damaged: readonly SampleRow[]): boolean {
  const { rows, distinct, slope, explained, misfit } = agreement;
  if (rows < explainedShare * damaged.length || distinct < fewRows) return false;
  if (explained < explainedShare * damaged.length || misfit > largestMisfit) return false;
  if (slope.dispersion > largestDispersion) return false;
  const gains = rowGains(agreement, damaged);
  const gain = gains.reduce((a, b) => a + b, 0);
  const mean = gain / gains.length;
  const spread = Math.sqrt(gains.reduce((sum, x) => sum + (x - mean) ** 2, 0));
  if (gain < decisive || gain < pooledDeviations * spread) return false;
  return slope.standardError <= pooledAccuracy && followsPrediction(agreement, pooledSlack);
}

/** Whether a hypothesis explains an LSE that fails beside an output that passes. */
function explainsLseAlone(agreement: Agreement, damaged: readonly SampleRow[]): boolean {
  const { explained, lse, slope, hypothesis } = agreement;
  // An LSE that gave a hypothesis its numbers proves nothing: the output must.
  if (hypothesis.fitted === true && slope.energy < fittedEnergy) return false;
  if (explained < explainedShare * damaged.length || lse.fittingCorrect === lse.rows) return false;
  if (slope.energy === 0) return true;
  // Whatever way its weights round, the output must show the effects that it would show.
  const alike = hypothesis.fitted === true ? 0 : slope.alike;
  return slope.energy < decisive || followsPrediction(agreement, pooledSlack + alike);
}

/**
 * Whether a cause may be named. Its predictions must be finite, leave nothing but rounding on 97 of 100
 * damaged rows, output and LSE (where one is given), and explain both clearly better than the correct
 * result does: by a gain of 40 in −2 log likelihood over the correct output, which roundings make with
 * probability e^-20 for each of at most some thousand hypotheses, about 1e-5 an audit; and by an error
 * that regresses on the predicted one with a slope of 1. So a prediction that equals the correct result
 * explains nothing. Sound rows must not speak against it: those it would have spoilt lie in other heads or
 * other warps' rows, unless the hypothesis is about single rows.
 */
export function isAccepted(agreement: Agreement, context: HypothesisContext): boolean {
  const { sample, onlyLse, pooled } = context;
  if (!agreement.complete) return false;
  const damaged = sample.filter((row) => row.damaged);
  if (!explainsLse(agreement.lse)) return false;
  const explainsThem = onlyLse
    ? explainsLseAlone(agreement, damaged)
    : pooled
      ? explainsTogether(agreement, damaged)
      : explainsRows(agreement, damaged, sample.length);
  return explainsThem && sparesApart(agreement, damaged, context.shape.heads);
}

/**
 * Whether a hypothesis leaves nothing but rounding of the rows that err, and speaks against no sound row: it may be their cause, though
 * they may be too few, or of too few elements, for it to be named by them (`isAccepted`).
 */
export function isPossible(agreement: Agreement, { sample, shape }: HypothesisContext): boolean {
  const { complete, explained, misfit, lse } = agreement;
  const damaged = sample.filter((row) => row.damaged);
  if (!complete || !explainsLse(lse) || misfit > largestMisfit) return false;
  return (
    explained >= explainedShare * damaged.length && sparesApart(agreement, damaged, shape.heads)
  );
}

/** The part of the cost by which two hypotheses may differ through their noise estimates alone. */
const estimateError = 0.02;
/**
 * The advantage, in multiples of `decisive`, that a hypothesis fitted to the sample may have over one that is
 * not, through roundings that agree.
 */
const fittedAdvantage = 3;

/**
 * −2 log likelihood of every hypothesis over the damaged rows, up to a constant: squared errors in units
 * of one noise for all, the largest that any of them expects, and of the LSE's.
 */
function costs(accepted: readonly Agreement[], vDim: number): number[] {
  const rows = accepted[0].residuals.squares.length;
  const totals = new Array<number>(accepted.length).fill(0);
  for (let row = 0; row < rows; row++) {
    let noise = 0;
    for (const { residuals } of accepted)
      if (residuals.noise[row] > noise) noise = residuals.noise[row];
    accepted.forEach(({ residuals }, i) => {
      const squares = residuals.squares[row];
      const ratio = squares === 0 ? 0 : squares / noise;
      totals[i] += vDim * (ratio < rowCap ? ratio : rowCap) + residuals.lse[row];
    });
  }
  return totals;
}

/**
 * The accepted hypotheses that explain the sample equally well, the likeliest first; in the order of
 * the table where nothing tells them apart.
 */
export function bestAgreements(
  accepted: readonly Agreement[],
  { onlyLse, shape }: HypothesisContext,
): Agreement[] {
  if (accepted.length === 0) return [];
  const totals = costs(accepted, shape.vDim);
  const cost = new Map(accepted.map((one, i) => [one, totals[i]]));
  const costOf = (one: Agreement) => cost.get(one)!;
  const least = Math.min(...totals);
  const rows = Math.max(1, ...accepted.map((one) => one.rows));
  const distinct = Math.max(1, ...accepted.map((one) => one.distinct));
  const slack = (decisive * rows) / distinct + estimateError * least;
  const isRigid = ({ hypothesis }: Agreement) =>
    hypothesis.adjusted !== true && hypothesis.fitted !== true;
  const likely = accepted.filter(
    (one) => costOf(one) <= least + (isRigid(one) ? fittedAdvantage : 1) * slack,
  );
  const rigid = likely.filter((one) => isRigid(one) && costOf(one) <= least + slack);
  const simplest = rigid.length > 0 ? rigid : likely;
  // A hypothesis that also explains why the sound rows are sound is better than one that needs them to be
  // spared.
  const fewestSpared = Math.min(...simplest.map(({ spared }) => spared.length));
  const consistent = simplest.filter(({ spared }) => spared.length === fewestSpared);
  // Among those, the LSE decides as far as its own rounding lets it.
  const leastLse = Math.min(...consistent.map(({ lse }) => lse.error));
  const best = consistent.filter(({ lse }) => lse.error <= 2 * leastLse + lseRounding);
  if (onlyLse) return best;
  // In steps, so that equal predictions computed in two ways keep their order.
  const likelihood = (one: Agreement) => Math.round(((costOf(one) - least) / slack) * 16);
  return best.sort((a, b) => likelihood(a) - likelihood(b));
}
