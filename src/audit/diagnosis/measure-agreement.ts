import { lseFits, LseSums, SlopeSums, type LseAgreement, type Slope } from './agreement-sums.js';
import type { Hypothesis, HypothesisContext, SampleRow } from './hypothesis.js';
import type { RowPrediction } from './prediction.js';
import { damageRatio } from './row-sample.js';

/** Residual errors after a prediction, for each damaged row of the sample. */
interface Residuals {
  /** Σ (observed − predicted)² over the columns; NaN for a row that the hypothesis is silent about. */
  readonly squares: Float64Array;
  /** Expected Σ of squared rounding errors; NaN likewise. */
  readonly noise: Float64Array;
  /** ((LSE − predicted) / its rounding)², at most `lseCap`; 0 where there is nothing to compare. */
  readonly lse: Float64Array;
}

/** The agreement of a hypothesis with the sample. */
export interface Agreement {
  readonly hypothesis: Hypothesis;
  /** Damaged rows that it says something about, and those of them that it explains. */
  readonly rows: number;
  readonly explained: number;
  /** Damaged rows of the sample that differ from each other: equal rows are one piece of evidence. */
  readonly distinct: number;
  /** Mean over the explained rows of Σ error² relative to the expected roundings. */
  readonly misfit: number;
  /** The mean over all those rows for a correct kernel: the fault's visibility on them. */
  readonly correctMisfit: number;
  /** Part of the squared error that it explains, of the LSE's where the LSE alone fails; at most 1. */
  readonly share: number;
  readonly slope: Slope;
  readonly residuals: Residuals;
  readonly lse: LseAgreement;
  /** Sound rows that the fault, were it there too, would have spoilt. */
  readonly spared: readonly SampleRow[];
  /** Whether all rows were looked at: a hypothesis is given up when it cannot be accepted any more. */
  readonly complete: boolean;
}

/** The part of the damaged rows that a hypothesis must explain. */
export const explainedShare = 0.97;
/** A row's largest share in the means: beyond that all misfits are equally bad. */
export const rowCap = 200;
/** A gain in −2 log likelihood below which a hypothesis about rows that err together is given up. */
const lostGain = 60;
/**
 * Rows that are looked at before a hypothesis is given up, so that its share of the error is known; fewer
 * where a row has more products with V than this.
 */
const fewestLooks = 8;
const cheapProducts = 2 ** 17;
/** One that explains less than this of the first few is not looked at longer. */
const firstLooks = 3;
const hopelessShare = 0.05;

function squaredDistance(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let c = 0; c < a.length; c++) {
    const difference = a[c] === b[c] ? 0 : a[c] - b[c];
    sum += difference * difference;
  }
  return sum;
}

function capped(ratio: number): number {
  return ratio < rowCap ? ratio : rowCap;
}

/** Σ (observed − predicted)² relative to the expected noise; at most `rowCap`, also for NaN. */
export function misfitOf(observed: Float64Array, { out, noise }: RowPrediction): number {
  const distance = squaredDistance(observed, out);
  return distance === 0 ? 0 : capped(distance / noise);
}

/** Roundings beyond this part of Σ (Σ w|v|)², or of the output's own squares, leave nothing to be seen. */
const largestNoise = 2 ** -6;

/** Whether a prediction says anything: it is finite, and roundings do not drown it. */
function saysSomething({ magnitude }: SampleRow, { out, noise, limit }: RowPrediction): boolean {
  if (!out.every(Number.isFinite) || !limit.every(Number.isFinite)) return false;
  let size = 0;
  for (const x of out) size += x * x;
  return noise <= largestNoise * Math.max(magnitude, size);
}

/**
 * Whether every element lies within the limit of roundings: that of the faulty kernel or, where a fault
 * leaves the sums as large as they were, that of the correct one.
 */
function withinLimit({ observed, correct }: SampleRow, { out, limit }: RowPrediction): boolean {
  return observed.every(
    (x, c) => x === out[c] || Math.abs(x - out[c]) <= Math.max(limit[c], correct.limit[c]),
  );
}

/** Whether a row's observed output is the predicted one, up to rounding. */
export function explains(row: SampleRow, prediction: RowPrediction): boolean {
  return misfitOf(row.observed, prediction) <= damageRatio && withinLimit(row, prediction);
}

/** The part of a row's squared error that remains: 0 for none, 1 for all of it, at most 2. */
function remainingPart(squares: number, before: number): number {
  if (squares === 0) return 0;
  const part = squares / before;
  return part < 2 ? part : Number.isNaN(part) ? 1 : 2;
}

/** Measures a hypothesis on the sample; gives up when it misses more damaged rows than it may. */
export function measureAgreement(hypothesis: Hypothesis, context: HypothesisContext): Agreement {
  const { sample, onlyLse, pooled, shape } = context;
  const affordable = Math.floor(cheapProducts / Math.max(shape.keys * shape.vDim, 1));
  const mostLooks = Math.max(2, Math.min(fewestLooks, affordable));
  const damaged = sample.filter((row) => row.damaged);
  const mayMiss = (1 - explainedShare) * damaged.length;
  const residuals = {
    squares: new Float64Array(damaged.length).fill(NaN),
    noise: new Float64Array(damaged.length).fill(NaN),
    lse: new Float64Array(damaged.length),
  };
  const slopes = new SlopeSums();
  const lse = new LseSums();
  const distinct = new Set<string>();
  let [rows, explained, explainedMisfit, correctMisfit, gain] = [0, 0, 0, 0, 0];
  let [left, error, looks] = [0, 0, 0];
  let complete = true;
  for (const [index, row] of damaged.entries()) {
    looks++;
    const prediction = hypothesis.predict(row);
    if (prediction !== null && saysSomething(row, prediction)) {
      rows++;
      distinct.add(row.observed.join());
      const sound = hypothesis.sound?.(row) ?? row.correct.out;
      const distance = squaredDistance(row.observed, prediction.out);
      const before = squaredDistance(row.observed, row.correct.out);
      // The part that the sound kernel's own roundings explain does not count for the fault.
      const ofSound = sound === row.correct.out ? before : squaredDistance(row.observed, sound);
      const squares = distance === 0 ? 0 : Math.max(0, distance + (before - ofSound));
      const ofCorrect = misfitOf(row.observed, row.correct);
      residuals.squares[index] = squares;
      residuals.noise[index] = prediction.noise;
      residuals.lse[index] = lse.add(row, prediction.lse);
      slopes.add(row, prediction, sound);
      correctMisfit += ofCorrect;
      left += ofCorrect * remainingPart(squares, before);
      error += ofCorrect;
      const common = Math.max(prediction.noise, row.correct.noise);
      gain += before === squares ? 0 : capped(before / common) - capped(squares / common);
      if (explains(row, prediction) && (!onlyLse || lseFits(row, prediction.lse))) {
        explained++;
        explainedMisfit += misfitOf(row.observed, prediction);
      }
    }
    const lost = pooled
      ? gain * row.vDim < (looks < 3 * fewestLooks ? -lostGain : 0)
      : index + 1 - explained > mayMiss;
    const isHopeless =
      !pooled &&
      !onlyLse &&
      looks >= firstLooks &&
      explained === 0 &&
      1 - left / error < hopelessShare;
    if (lost && (looks >= mostLooks || isHopeless)) {
      complete = index + 1 === damaged.length;
      if (!complete) break;
    }
  }
  const ofLse = lse.result();
  const share = onlyLse
    ? ofLse.correctError === 0
      ? 0
      : 1 - (ofLse.error / ofLse.correctError) ** 2
    : error === 0
      ? 0
      : 1 - left / error;
  return {
    hypothesis,
    rows,
    explained,
    distinct: distinct.size,
    misfit: explainedMisfit / Math.max(explained, 1),
    correctMisfit: correctMisfit / Math.max(rows, 1),
    share,
    slope: slopes.slope(),
    residuals,
    lse: ofLse,
    spared: complete ? sparedRows(hypothesis, sample) : [],
    complete,
  };
}

/** The sound rows that a fault would have spoilt, had it been there. */
function sparedRows(hypothesis: Hypothesis, sample: readonly SampleRow[]): SampleRow[] {
  return sample.filter((row) => {
    if (row.damaged) return false;
    const prediction = hypothesis.predict(row);
    if (prediction === null || prediction === row.correct) return false;
    return !explains(row, prediction) || !lseFits(row, prediction.lse);
  });
}

/**
 * The part of the squared error of all rows that err which a hypothesis explains, below 0 where it makes more of it: rows that it says
 * nothing of count as they are. Where the LSE alone is off, `share` of a hypothesis that leaves the output right; else 0.
 */
export function shareOfAll(
  { hypothesis, share }: Agreement,
  { sample, onlyLse }: HypothesisContext,
): number {
  let [left, error] = [0, 0];
  for (const row of sample.filter(({ damaged }) => damaged)) {
    const prediction = hypothesis.predict(row);
    const before = squaredDistance(row.observed, row.correct.out);
    if (onlyLse && prediction !== null && misfitOf(row.observed, prediction) > damageRatio)
      return 0;
    if (!Number.isFinite(before)) continue;
    const distance =
      prediction === null || !saysSomething(row, prediction)
        ? before
        : squaredDistance(row.observed, prediction.out);
    const sound = hypothesis.sound?.(row) ?? row.correct.out;
    const ofSound = sound === row.correct.out ? before : squaredDistance(row.observed, sound);
    left += distance === 0 ? 0 : Math.max(0, distance + (before - ofSound));
    error += before;
  }
  return onlyLse ? share : error === 0 ? 0 : 1 - left / error;
}

/** The causes that agreements are with, each once. */
export function causesOf(agreements: readonly Agreement[]): string[] {
  return [...new Set(agreements.map(({ hypothesis }) => hypothesis.id))];
}

/** Whether a hypothesis that is borne out by rows together also explains nearly all rows that show their error by themselves. */
export function explainsAlone({ hypothesis }: Agreement, alone: readonly SampleRow[]): boolean {
  const explained = alone.filter((row) => {
    const prediction = hypothesis.predict(row);
    return prediction !== null && explains(row, prediction);
  });
  return explained.length >= explainedShare * alone.length;
}
