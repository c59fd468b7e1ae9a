import type { Hypothesis, HypothesisContext, SampleRow } from './hypothesis.js';
import type { RowPrediction } from './prediction.js';
import { damageRatio } from './row-sample.js';

/** How well a hypothesis explains the sample. */
export interface Agreement {
  readonly hypothesis: Hypothesis;
  /** Damaged rows that it says something about, and those of them that it explains. */
  readonly rows: number;
  readonly explained: number;
  /** Damaged rows of the sample that differ from each other: equal rows are one piece of evidence. */
  readonly distinct: number;
  /** Mean over the explained rows of Σ error² relative to what rounding is expected to leave. */
  readonly misfit: number;
  /** The mean over all those rows for a correct kernel: the fault's visibility on them. */
  readonly correctMisfit: number;
  /** Sum over those rows and their columns, in units of the expected variance: −2 log likelihood. */
  readonly cost: number;
  /** Whether the LSE is the predicted one; null where there is none to compare. */
  readonly lseAgrees: boolean | null;
  /** Root mean square of the LSE's distance from the predicted one, and from the correct one. */
  readonly lseError: number;
  readonly correctLseError: number;
  /** Sound rows that the fault, were it there too, would have spoilt. */
  readonly spared: readonly SampleRow[];
}

/** A hypothesis may miss one damaged row of so many. */
const explainedShare = 0.97;
/** Largest mean misfit of a hypothesis that explains its rows. */
const largestMisfit = 2.5;
/** A hypothesis must leave this part of a correct kernel's misfit at most. */
const improvement = 0.6;
/** Fewer damaged rows than this, least of the sample, must err by this mean misfit. */
const fewRows = 16;
const evidentMisfit = 6;
/** Mean misfit that correct kernels have been seen to reach. */
const roundingMisfit = 1.25;
/** A difference in −2 log likelihood that chance does not make (e^-20), correlated roundings allowed for. */
const decisive = 40;
/** The part of the cost by which two hypotheses may differ through their noise estimates alone. */
const estimateError = 0.02;
/** A row's largest share in the means: beyond that all misfits are equally bad. */
const rowCap = 200;
/** Query rows that a kernel's warp computes together. */
const warpRows = 32;
/** What the LSE of a correct fp32 kernel is off by, about, in natural units. */
const lseRounding = 2e-6;

function squaredDistance(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let c = 0; c < a.length; c++) {
    const difference = a[c] === b[c] ? 0 : a[c]! - b[c]!;
    sum += difference * difference;
  }
  return sum;
}

/** Σ (observed − predicted)² relative to the expected noise; at most `rowCap`, also for NaN. */
export function misfitOf(observed: Float64Array, { out, noise }: RowPrediction): number {
  const distance = squaredDistance(observed, out);
  if (distance === 0) return 0;
  const ratio = distance / noise;
  return ratio < rowCap ? ratio : rowCap;
}

/**
 * Whether every element lies within what rounding may do: that of the faulty kernel or, where a fault
 * leaves the sums as large as they were, that of the correct one.
 */
function withinLimit({ observed, correct }: SampleRow, { out, limit }: RowPrediction): boolean {
  return observed.every(
    (x, c) => x === out[c] || Math.abs(x - out[c]!) <= Math.max(limit[c]!, correct.limit[c]!),
  );
}

/** Whether a row's observed output is what the prediction says, rounding allowed for. */
export function explains(row: SampleRow, prediction: RowPrediction): boolean {
  return misfitOf(row.observed, prediction) <= damageRatio && withinLimit(row, prediction);
}

/** |a − b|, equal infinities being no distance, and what is not finite counting as 1. */
function lseDistance(a: number, b: number): number {
  if (a === b) return 0;
  const distance = Math.abs(a - b);
  return distance < 1 ? distance : 1;
}

function lseMatches(row: SampleRow, predicted: number): boolean {
  const { observedLse, bound } = row;
  if (observedLse === predicted) return true;
  const rounding = 2 ** -22 * Math.abs(predicted);
  return Math.abs(observedLse! - predicted) <= 2 * bound.lse + rounding;
}

/** Measures a hypothesis on the sample; null as soon as it misses more damaged rows than it may. */
export function measureAgreement(
  hypothesis: Hypothesis,
  { sample, shape }: HypothesisContext,
): Agreement | null {
  const damaged = sample.reduce((count, row) => count + (row.damaged ? 1 : 0), 0);
  const mayMiss = (1 - explainedShare) * damaged;
  let rows = 0;
  let explained = 0;
  let misfit = 0;
  let explainedMisfit = 0;
  let correctMisfit = 0;
  let lseRows = 0;
  let lseMatching = 0;
  const distinct = new Set<string>();
  let lseSquares = 0;
  let correctLseSquares = 0;
  const spared: SampleRow[] = [];
  for (const row of sample) {
    const prediction = hypothesis.predict(row);
    if (prediction === null) continue;
    if (!row.damaged) {
      if (!explains(row, prediction) && prediction !== row.correct) spared.push(row);
      continue;
    }
    rows++;
    distinct.add(row.observed.join());
    const ofRow = misfitOf(row.observed, prediction);
    misfit += ofRow;
    correctMisfit += misfitOf(row.observed, row.correct);
    if (explains(row, prediction)) {
      explained++;
      explainedMisfit += ofRow;
    }
    if (row.observedLse !== null && !Number.isNaN(prediction.lse)) {
      lseRows++;
      if (lseMatches(row, prediction.lse)) lseMatching++;
      lseSquares += lseDistance(row.observedLse, prediction.lse) ** 2;
      correctLseSquares += lseDistance(row.observedLse, row.correct.lse) ** 2;
    }
    if (rows - explained > mayMiss) return null;
  }
  if (rows === 0) return null;
  return {
    hypothesis,
    rows,
    explained,
    distinct: distinct.size,
    misfit: explainedMisfit / Math.max(explained, 1),
    correctMisfit: correctMisfit / rows,
    cost: misfit * shape.vDim,
    lseError: Math.sqrt(lseSquares / Math.max(lseRows, 1)),
    correctLseError: Math.sqrt(correctLseSquares / Math.max(lseRows, 1)),
    lseAgrees: lseRows === 0 ? null : lseMatching >= explainedShare * lseRows,
    spared,
  };
}

/**
 * Whether the damaged rows are what the hypothesis says, and not what a correct kernel gives, and
 * the sound rows do not speak against it (where only the LSE is wrong, it decides): rows that it would have spoilt must lie in other heads or
 * other groups of 32 queries (a warp's) than the damaged ones, unless the hypothesis is about single rows.
 */
export function isAccepted(agreement: Agreement, context: HypothesisContext): boolean {
  const { sample, shape, onlyLse } = context;
  const { hypothesis, rows, explained, misfit, correctMisfit, cost, spared } = agreement;
  const damaged = sample.filter((row) => row.damaged);
  if (rows < Math.max(1, damaged.length / 2)) return false;
  if (explained < explainedShare * rows || misfit > largestMisfit) return false;
  if (onlyLse) {
    if (agreement.lseAgrees !== true) return false;
    if (agreement.lseError > improvement * agreement.correctLseError) return false;
  } else {
    if (misfit > improvement * correctMisfit) return false;
    // Few rows that barely err may have been picked by their roundings.
    const few = damaged.length < sample.length / 2 && damaged.length < fewRows;
    if (few && correctMisfit < evidentMisfit) return false;
    const gain = correctMisfit * shape.vDim - cost / rows;
    if (gain * agreement.distinct < decisive) return false;
  }
  if (hypothesis.local === true) return true;
  const place = ({ head, query }: SampleRow) => `${head}:${Math.floor(query / warpRows)}`;
  const struck = new Set(damaged.map(place));
  return spared.every((row) => !struck.has(place(row)));
}

/**
 * The accepted hypotheses that explain the sample equally well, the likeliest first; in the order of
 * the table where nothing tells them apart.
 */
export function bestAgreements(
  accepted: readonly Agreement[],
  { onlyLse }: HypothesisContext,
): Agreement[] {
  if (accepted.length === 0) return [];
  const following = accepted.filter(({ lseAgrees }) => lseAgrees !== false);
  const candidates = following.length > 0 ? following : accepted;
  // Costs compare only over the same rows.
  const rows = Math.max(...candidates.map((candidate) => candidate.rows));
  const complete = candidates.filter((candidate) => candidate.rows >= 0.9 * rows);
  const perRow = (candidate: Agreement) => candidate.cost / candidate.rows;
  const least = Math.min(...complete.map(perRow));
  const distinct = Math.max(1, ...complete.map((candidate) => candidate.distinct));
  const slack = onlyLse ? Infinity : decisive / distinct + estimateError * least;
  const isLikely = (candidate: Agreement) => perRow(candidate) <= least + slack;
  const rigid = ({ hypothesis }: Agreement) =>
    hypothesis.adjusted !== true && hypothesis.fitted !== true;
  const onlyAdjusted = !complete.some((candidate) => isLikely(candidate) && rigid(candidate));
  const likely = complete.filter(
    (candidate) =>
      isLikely(candidate) ||
      (onlyAdjusted && rigid(candidate) && candidate.misfit <= roundingMisfit),
  );
  // What also explains why the sound rows are sound is better than what needs them to be spared.
  const fewestSpared = Math.min(...likely.map(({ spared }) => spared.length));
  const consistent = likely.filter(({ spared }) => spared.length === fewestSpared);
  // Among those, the LSE decides as far as its own rounding lets it.
  const leastLse = Math.min(...consistent.map(({ lseError }) => lseError));
  const best = consistent.filter(({ lseError }) => lseError <= 2 * leastLse + lseRounding);
  if (onlyLse) return best;
  // In steps, so that equal predictions computed in two ways keep their order.
  const step = decisive / distinct / 16;
  const likelihood = (candidate: Agreement) => Math.round((perRow(candidate) - least) / step);
  return best.sort((a, b) => likelihood(a) - likelihood(b));
}
