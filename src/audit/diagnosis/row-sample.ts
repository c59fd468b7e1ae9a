import { formats, round } from '../../formats/index.js';
import { spanOf } from '../../problem/index.js';
import { outputRounding } from '../bounds/index.js';
import { correctRow } from './prediction.js';
import type { DiagnosisInput } from './diagnosis.js';
import type { SampleRow } from './hypothesis.js';
import type { RowDamage } from './row-damage.js';
import type { RowReader } from './row-reader.js';

/**
 * The multiple of the expected Σ error² from which on a row errs by more than rounding. Over the captured
 * outputs of six correct kernels the largest is 2.5.
 */
export const damageRatio = 4;

/**
 * A head errs as a whole when nine in ten of its rows exceed this multiple, however little single rows
 * do: to pick out those whose roundings happen to add to the fault would misjudge its size. Over the
 * captured outputs of correct kernels even the medians are below 1.
 */
const wholeHeadRatio = 1.5;

/** The ratio from which on a row's roundings do not matter for whether it is picked. */
const clearRatio = 16;

/** Rows of the sample that err, and rows that do not, to hold against a hypothesis. */
const mostDamaged = 64;
const mostSound = 32;
/** Rows of a sample that err together only: none of them shows much, and all are looked at. */
const mostPooled = 128;
const fewestPooled = 24;
const pooledBudget = 2 ** 21;
/** Products with V per hypothesis and sample; longer problems get fewer rows, but not below 16. */
const productBudget = 2 ** 23;
const fewestRows = 16;

/**
 * Standard deviation of a correct kernel's LSE: the weights' errors independent and uniform within their
 * typical bound, an exponential that is off on average by an eighth of its worst, and fp32 roundings.
 */
function lseNoiseOf(
  { bound, outputs: { lse } }: DiagnosisInput,
  reader: RowReader,
  row: number,
  exact: number,
) {
  const { typicalWeight } = bound.row(row);
  let squares = 0;
  for (const s of reader.scores(row)) if (s !== -Infinity) squares += Math.exp(2 * (s - exact));
  const given = lse!.values[row];
  // An LSE that a shorter format holds was rounded to it.
  const format = (['bf16', 'fp16', 'fp32'] as const).find(
    (name) => round(formats[name], given) === given,
  );
  const rounding = format === undefined ? 0 : outputRounding(format, exact, 0) ** 2;
  return Math.sqrt(
    (typicalWeight ** 2 * squares + rounding) / 3 + (typicalWeight / 8) ** 2 + 2 ** -42,
  );
}

/** Σ error² over its expectation; an exact row has ratio 0. */
export function damageOf({ error, noise }: RowDamage, row: number): number {
  return error[row] === 0 ? 0 : error[row] / noise[row];
}

/** At most `count` of the entries, at even distances, first and last among them. */
function spread<T>(entries: readonly T[], count: number): T[] {
  if (entries.length <= count) return [...entries];
  const step = (entries.length - 1) / Math.max(count - 1, 1);
  return Array.from({ length: count }, (_, i) => entries[Math.round(i * step)]);
}

/** Whether one element of a row is farther from the exact value than any correct kernel is. */
function leavesBound(input: DiagnosisInput, row: number): boolean {
  const { out, limit } = correctRow(input, row);
  return out.some(
    (exact, c) => Math.abs(input.outputs.out.values[row * out.length + c] - exact) > limit[c],
  );
}

/** Whether an LSE is farther from the exact one than any correct kernel's, or NaN. */
function lseLeavesBound(
  { reference, outputs: { lse }, bound }: DiagnosisInput,
  row: number,
): boolean {
  const exact = reference.quantities.lse.values[row];
  const given = lse!.values[row];
  if (given === exact) return false;
  return !(Math.abs(given - exact) <= bound.row(row).lse + 2 ** -23 * Math.abs(exact));
}

/** The rows that err, in order: by their output, or by their LSE where that is all that errs. */
export function damagedRows(input: DiagnosisInput, damage: RowDamage, onlyLse: boolean): number[] {
  const rows: number[] = [];
  if (onlyLse) {
    for (let row = 0; row < damage.error.length; row++)
      if (lseLeavesBound(input, row)) rows.push(row);
    return rows;
  }
  const { queries } = input.reference.shape;
  for (let first = 0; first < damage.error.length; first += queries) {
    const ofHead = Array.from({ length: queries }, (_, i) => first + i);
    // Rows of NaN are another matter.
    const ratios = ofHead.map((row) => damageOf(damage, row)).filter(Number.isFinite);
    const lowest = ratios.sort((a, b) => a - b)[Math.floor(ratios.length / 10)] ?? 0;
    // Where nearly all of them err clearly, one that does not is sound.
    const whole = lowest > wholeHeadRatio && lowest <= clearRatio;
    for (const row of ofHead)
      if (whole || damageOf(damage, row) > damageRatio || leavesBound(input, row)) rows.push(row);
  }
  return rows;
}

/**
 * The rows that fail together: those of the widest failing structure test, else of the heads with
 * damaged rows, else all.
 */
export function rowsThatFailTogether(input: DiagnosisInput, damaged: readonly number[]): number[] {
  const ofStructure = rowsOfFailingStructure(input);
  const { queries } = input.reference.shape;
  if (ofStructure.length > 1) return ofStructure;
  const heads = new Set(damaged.map((row) => Math.floor(row / queries)));
  return Array.from(input.reference.quantities.lse.values.keys()).filter(
    (row) => heads.size === 0 || heads.has(Math.floor(row / queries)),
  );
}

/** The rows of the widest failing structure test. */
function rowsOfFailingStructure({ outputs, reference }: DiagnosisInput): number[] {
  const { queries } = reference.shape;
  const failing = outputs.out.structure.filter(
    ({ statistic, threshold }) => Math.abs(statistic) > threshold,
  );
  const widest = failing.reduce<(typeof failing)[number] | null>(
    (best, result) => (best === null || result.rows > best.rows ? result : best),
    null,
  );
  if (widest === null) return [];
  const { head, firstRow, rows } = widest;
  return Array.from({ length: rows }, (_, i) => head * queries + firstRow + i);
}

/** Makes rows of samples from the kernel's outputs and the facts about them. */
export function rowBuilder(
  input: DiagnosisInput,
  damage: RowDamage,
  reader: RowReader,
): (row: number, damaged: boolean) => SampleRow {
  const { reference, bound, outputs } = input;
  const { values: out, format: outputFormat } = outputs.out;
  const lse = outputs.lse?.values ?? null;
  const { queries, vDim } = reference.shape;
  const count = reference.quantities.lse.values.length;
  const rowWithKeys = Array.from({ length: count }, (_, row) => row).find(
    (row) => reader.ranges(row).length > 0,
  );
  return (row, damaged) => {
    const ranges = reader.ranges(row);
    return {
      row,
      head: Math.floor(row / queries),
      query: row % queries,
      kv: reader.kvHead(row),
      ranges,
      span: spanOf(ranges),
      bound: bound.row(row),
      outputFormat,
      vDim,
      elsewhere: bound.row(rowWithKeys ?? row),
      denominator: reference.denominator[row],
      reported: (logarithm) => reader.reportedLse(row, logarithm),
      observed: out.subarray(row * vDim, (row + 1) * vDim),
      observedLse: lse === null ? null : lse[row],
      correct: {
        ...correctRow(input, row),
        noise: damage.noise[row],
        lse: reference.quantities.lse.values[row],
      },
      magnitude: reference.quantities.out.magnitude
        .subarray(row * vDim, (row + 1) * vDim)
        .reduce((sum, x) => sum + x * x, 0),
      lseNoise:
        lse === null
          ? 0
          : ranges.length === 0
            ? bound.row(rowWithKeys ?? row).lse / 3
            : lseNoiseOf(input, reader, row, reference.denominator[row]),
      damaged,
    };
  };
}

/**
 * The rows to try hypotheses on: damaged rows, half of them the worst, where these are clear cases,
 * the others spread over all of them, and sound rows spread over the rest and next to damaged ones.
 */
export function sampleRows(
  input: DiagnosisInput,
  damage: RowDamage,
  damaged: readonly number[],
  build: (row: number, damaged: boolean) => SampleRow,
  pooled: boolean,
): SampleRow[] {
  const { reference } = input;
  const { keys, vDim } = reference.shape;
  const affordable = Math.floor(productBudget / Math.max(keys * vDim, 1));
  const count = Math.max(fewestRows, Math.min(mostDamaged, affordable));
  const ranked = damaged
    .filter((row) => Number.isFinite(damage.error[row]))
    .sort((a, b) => damageOf(damage, b) - damageOf(damage, a));
  const clear = ranked.filter((row) => damageOf(damage, row) >= clearRatio);
  const worst = clear.slice(0, Math.ceil(count / 2));
  const chosen = pooled
    ? spread(
        damaged.filter((row) => Number.isFinite(damage.error[row])),
        Math.max(
          fewestPooled,
          Math.min(mostPooled, Math.floor(pooledBudget / Math.max(keys * vDim, 1))),
        ),
      )
    : [...new Set([...worst, ...spread(ranked, count - worst.length)])];
  const isDamaged = new Set(damaged);
  const sound: number[] = [];
  for (let row = 0; row < reference.quantities.lse.values.length; row++)
    if (!isDamaged.has(row) && damage.error[row] < Infinity) sound.push(row);
  const beside = chosen
    .flatMap((row) => [row - 1, row + 1])
    .filter(
      (row) => row >= 0 && row < reference.quantities.lse.values.length && !isDamaged.has(row),
    );
  const spare = Math.min(mostSound, count);
  const others = new Set([
    ...spread(sound, Math.ceil(spare / 2)),
    ...spread(
      beside.filter((row) => damage.error[row] < Infinity),
      Math.floor(spare / 2),
    ),
  ]);
  return [...chosen, ...(pooled ? [] : others)].map((row) => build(row, isDamaged.has(row)));
}
