import { axisOf, placeOfRows, type Place } from '../rows/index.js';
import { lseFits, SlopeSums, type Slope } from './agreement-sums.js';
import type { Hypothesis, HypothesisContext, SampleRow } from './hypothesis.js';
import { explainedShare, explains } from './measure-agreement.js';
import type { RowPrediction } from './prediction.js';
import { withMaxima } from './rows-by-maximum.js';

/**
 * The relation of a row to a cause: it errs and is explained, or is not; it is sound where the cause would
 * have spoilt it, or is touched by less than rounding shows; the cause does nothing to it; or nobody looked.
 */
type Status = 'explained' | 'unexplained' | 'against' | 'consistent' | 'untouched' | 'unknown';

/** The place of a cause, and the number of rows that err and that it leaves unexplained. */
export interface PlacedCause {
  readonly place: Place;
  readonly unexplained: number;
}

/** Multiply-adds that predictions may take; for longer problems only a part of the rows is looked at. */
const productBudget = 2 ** 27;
const fewestRows = 64;
/** The squared difference, relative to Σ (Σ w|v|)², below which differences are those of fp64. */
const ofDoubles = 2 ** -76;
const lseOfDoubles = 1e-10;
/** Standard errors that tell a slope from another, and the additional error that a slope may have. */
const slopeDeviations = 4;
const slopeSlack = 0.1;

/** Whether a prediction is the correct result up to fp64's own rounding. */
function isUntouched(row: SampleRow, { out, lse }: RowPrediction): boolean {
  const { correct, magnitude, observedLse } = row;
  if (out === correct.out && lse === correct.lse) return true;
  let squares = 0;
  for (let c = 0; c < out.length; c++)
    if (out[c] !== correct.out[c]) squares += (out[c] - correct.out[c]) ** 2;
  const isSameLse =
    observedLse === null ||
    Number.isNaN(lse) ||
    lse === correct.lse ||
    Math.abs(lse - correct.lse) <= lseOfDoubles;
  return squares <= ofDoubles * magnitude && isSameLse;
}

function statusOf(row: SampleRow, prediction: RowPrediction | null): Status {
  if (prediction === null) return row.damaged ? 'unexplained' : 'untouched';
  const isRight = explains(row, prediction) && lseFits(row, prediction.lse);
  // A row that a cause does not change may be counted among the rows of a head that errs as a whole.
  if (isUntouched(row, prediction)) return isRight ? 'untouched' : 'unexplained';
  return row.damaged ? (isRight ? 'explained' : 'unexplained') : isRight ? 'consistent' : 'against';
}

/** The rows of one head of a sequence, in order. */
interface Group {
  readonly rows: number[];
  readonly status: Status[];
  readonly slopes: SlopeSums;
}

/** Whether an error is the predicted one rather than none. */
function followsCause({ value, standardError }: Slope): boolean {
  const isPredicted = Math.abs(value - 1) <= slopeSlack + slopeDeviations * standardError;
  return isPredicted && value > slopeDeviations * standardError;
}

/** Whether the neighbours of a row that say anything all err in accordance with the cause. */
function liesBetweenErring(status: readonly Status[], at: number): boolean {
  const said = (step: 1 | -1): Status | null => {
    for (let i = at + step; i >= 0 && i < status.length; i += step) {
      const one = status[i];
      if (one !== undefined && one !== 'consistent' && one !== 'unknown') return one;
    }
    return null;
  };
  const sides = [said(-1), said(1)].filter((one) => one !== null);
  return sides.length > 0 && sides.every((one) => one === 'explained');
}

/** The rows of a group that a cause has to do with. */
function rowsStruck(
  { rows, status, slopes }: Group,
  { onlyLse, pooled }: HypothesisContext,
): number[] {
  const errs = status.includes('explained');
  const misses = status.filter((one) => one === 'against' || one === 'unexplained').length;
  // Rows that show a cause together only may miss it like those that it is accepted by.
  const mayMiss = pooled ? (1 - explainedShare) * rows.length : 0;
  const isWhole = misses <= mayMiss;
  if (!errs && (onlyLse || !isWhole || !followsCause(slopes.slope()))) return [];
  if (isWhole && pooled) return rows.filter((_, i) => status[i] !== 'untouched');
  const isSpared = status.includes('against');
  return rows.filter((_, i) => {
    const one = status[i];
    if (one === 'explained') return true;
    if (one !== 'consistent' && one !== 'unknown') return false;
    return !isSpared || liesBetweenErring(status, i);
  });
}

/** Evenly spread entries, `count` at most. */
function spread(rows: readonly number[], count: number): number[] {
  if (rows.length <= count) return [...rows];
  return Array.from({ length: count }, (_, i) => rows[Math.floor((i * rows.length) / count)] ?? 0);
}

/** The columns that a hypothesis changes in some rows; null where it changes all of them. */
function columnsOf(hypothesis: Hypothesis, rows: readonly SampleRow[], vDim: number) {
  const touched = new Set<number>();
  for (const row of rows) {
    const out = hypothesis.predict(row)?.out ?? row.correct.out;
    out.forEach((x, c) => {
      if (Math.abs(x - row.correct.out[c]) > 2 ** -38 * Math.sqrt(row.magnitude)) touched.add(c);
    });
  }
  return touched.size === 0 ? null : axisOf(touched, vDim);
}

/**
 * The place of a cause that was accepted: the rows that err and that it explains, with those between them and
 * in their heads that it touches by less than rounding. Heads whose rows show it together only are in it too.
 *
 * Predicts every row; for problems beyond 2^27 multiply-adds, a part of them.
 * @param erring the rows that err, flat over [batch, heads, queries]
 */
export function placeOfCause(
  hypothesis: Hypothesis,
  context: HypothesisContext,
  erring: readonly number[],
): PlacedCause {
  const { reader, shape, input, buildRow } = context;
  const { keys, qkDim, vDim, heads } = shape;
  const isErring = new Set(erring);
  const all = Array.from(input.reference.quantities.lse.values.keys());
  const affordable = Math.floor(productBudget / Math.max(keys * (qkDim + vDim), 1));
  const count = Math.max(fewestRows, affordable);
  const sound = all.filter((row) => !isErring.has(row));
  const looked = new Set([
    ...spread(erring, Math.max(count - sound.length, Math.ceil(count / 2))),
    ...spread(sound, Math.max(count - erring.length, Math.floor(count / 2))),
  ]);
  const groups = new Map<number, Group>();
  const explained: SampleRow[] = [];
  let unexplained = 0;
  for (const flat of all) {
    const { sequence, head } = reader.place(flat);
    const key = sequence * heads + head;
    const group = groups.get(key) ?? { rows: [], status: [], slopes: new SlopeSums() };
    groups.set(key, group);
    group.rows.push(flat);
    if (!looked.has(flat)) {
      group.status.push(isErring.has(flat) ? 'explained' : 'unknown');
      continue;
    }
    const row = buildRow(flat, isErring.has(flat));
    const prediction = hypothesis.predict(row);
    const status = statusOf(row, prediction);
    group.status.push(status);
    if (status === 'unexplained') unexplained++;
    if (status === 'explained' && explained.length < fewestRows) explained.push(row);
    if (prediction !== null) group.slopes.add(row, prediction, row.correct.out);
  }
  const rows = [...groups.values()].flatMap((group) => rowsStruck(group, context));
  const layout = { ...input.problem, shape };
  const placed = rows.length === 0 ? erring : rows;
  const place = withMaxima(placeOfRows(placed, layout), placed, reader);
  const columns = columnsOf(hypothesis, explained, vDim);
  return {
    place: { ...place, columns },
    unexplained,
  };
}
