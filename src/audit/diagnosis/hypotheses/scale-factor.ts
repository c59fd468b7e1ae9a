import { formats, round, type FormatName } from '../../../formats/index.js';
import {
  type Hypothesis,
  type HypothesisContext,
  type HypothesisFamily,
  rowsToFit,
  type SampleRow,
} from '../hypothesis.js';
import { predictWeighted, softmaxRow, type RowPrediction } from '../prediction.js';

/** Factors that the search starts from: the best of them begins the descent. */
const starts = [-4, -2, -1, -0.5, 0, 0.5, 1, 2, 4].map((power) => 2 ** power);
/** Rows that the start is chosen by, and the factor fitted to. */
const startRows = 8;
const fittedRows = 32;
const steps = 8;
/** Relative change of the factor that its derivative is taken over. */
const step = 2 ** -12;
/** Standard errors within which a closed form is the factor, and the least error that is known of it. */
const formDeviations = 4;
const leastError = 2e-5;

/** A row as it would be with another factor on its scores, before any softcap. */
function withFactor({ reader }: HypothesisContext, row: SampleRow, factor: number): RowPrediction {
  const scores = reader.scoresTimes(row.row, factor);
  return predictWeighted(
    row,
    softmaxRow(scores, reader.valuesOf(row.row, row.kv), Math.abs(factor)),
  );
}

/** The sum of squares that a factor leaves of output and LSE, in units of the rounding. */
function remainder({ observed, observedLse, correct, lseNoise }: SampleRow, of: RowPrediction) {
  let sum = 0;
  of.out.forEach((x, c) => (sum += (observed[c] - x) ** 2));
  const ofOutput = (sum / Math.max(correct.noise, of.noise)) * observed.length;
  const ofLse = observedLse === null ? 0 : ((observedLse - of.lse) / lseNoise) ** 2;
  return Math.min(ofOutput, 1e6) + (Number.isFinite(ofLse) ? Math.min(ofLse, 1e8) : 0);
}

interface Fit {
  readonly factor: number;
  /** Relative to the factor. */
  readonly standardError: number;
}

/** The factor that explains output and LSE best: Gauss and Newton from the best start. */
function fitScaleFactor(context: HypothesisContext, rows: readonly SampleRow[]): Fit | null {
  const first = rows.slice(0, startRows);
  const costs = starts.map((factor) =>
    first.reduce((sum, row) => sum + remainder(row, withFactor(context, row, factor)), 0),
  );
  let factor = starts[costs.indexOf(Math.min(...costs))];
  let curvature = 0;
  for (let i = 0; i < steps; i++) {
    let gradient = 0;
    curvature = 0;
    for (const row of rows.slice(0, rowsToFit(context.shape, fittedRows))) {
      const at = withFactor(context, row, factor);
      const beside = withFactor(context, row, factor * (1 + step));
      const variance = Math.max(row.correct.noise, at.noise) / row.observed.length;
      at.out.forEach((x, c) => {
        const d = (beside.out[c] - x) / step;
        gradient += (d * (row.observed[c] - x)) / variance;
        curvature += d ** 2 / variance;
      });
      const ofLse = row.observedLse === null ? NaN : row.observedLse - at.lse;
      if (!Number.isFinite(ofLse)) continue;
      const d = (beside.lse - at.lse) / step / row.lseNoise;
      gradient += (d * ofLse) / row.lseNoise;
      curvature += d ** 2;
    }
    const change = gradient / curvature;
    if (!Number.isFinite(change)) return null;
    factor *= Math.exp(Math.max(-0.7, Math.min(0.7, change)));
    if (Math.abs(change) < 1e-8) break;
  }
  return { factor, standardError: 1 / Math.sqrt(curvature) };
}

interface ClosedForm {
  readonly name: string;
  readonly scale: number;
}

/** Scales that a slip makes of the one asked for. */
function closedForms({ reader, input }: HypothesisContext): ClosedForm[] {
  const { scale } = reader.problem;
  const { qkDim, vDim } = input.reference.shape;
  const held = (format: FormatName, x: number, rounding: 'nearest-even' | 'toward-zero') =>
    round(formats[format], x, { rounding });
  return [
    { name: '1/√(d + 1)', scale: 1 / Math.sqrt(qkDim + 1) },
    { name: '1/√(d − 1)', scale: 1 / Math.sqrt(qkDim - 1) },
    { name: '1/√(2d)', scale: 1 / Math.sqrt(2 * qkDim) },
    { name: '1/√(d/2)', scale: Math.sqrt(2 / qkDim) },
    { name: '1/d', scale: 1 / qkDim },
    { name: '1/√d', scale: 1 / Math.sqrt(qkDim) },
    { name: "1/√d of V's dimension", scale: 1 / Math.sqrt(vDim) },
    { name: '√2 times the scale', scale: scale * Math.SQRT2 },
    { name: 'the scale over √2', scale: scale * Math.SQRT1_2 },
    { name: 'twice the scale', scale: 2 * scale },
    { name: 'half the scale', scale: scale / 2 },
    { name: 'the scale times log2 e', scale: scale * Math.LOG2E },
    { name: 'the scale times ln 2', scale: scale * Math.LN2 },
    { name: 'the root of the scale', scale: Math.sqrt(Math.abs(scale)) },
    { name: 'the scale squared', scale: scale ** 2 },
    ...(['bf16', 'fp16'] as const).flatMap((format) =>
      (['nearest-even', 'toward-zero'] as const).flatMap((rounding) => {
        const how = rounding === 'nearest-even' ? 'rounded' : 'truncated';
        return [
          { name: `the scale ${how} to ${format}`, scale: held(format, scale, rounding) },
          {
            name: `the scale times log2 e ${how} to ${format}`,
            scale: held(format, scale * Math.LOG2E, rounding) * Math.LN2,
          },
          {
            name: `the scale times log2 e, which is ${how} to ${format}`,
            scale: scale * held(format, Math.LOG2E, rounding) * Math.LN2,
          },
        ];
      }),
    ),
    ...[1.4, 1.44, 1.442, 1.443, 1.4427].map((log2e) => ({
      name: `the scale with ${log2e} for log2 e`,
      scale: scale * log2e * Math.LN2,
    })),
  ];
}

function describeFactor(context: HypothesisContext, { factor, standardError }: Fit): string {
  const { scale } = context.reader.problem;
  const error = Math.max(formDeviations * standardError, leastError);
  const isNear = (ratio: number) => Math.abs(ratio - 1) <= error;
  const forms = closedForms(context).filter((form) => isNear(form.scale / (scale * factor)));
  const known = [...new Map(forms.map((form) => [form.scale, form.name])).values()];
  const digits = Math.max(3, Math.min(8, Math.ceil(-Math.log10(Math.abs(error)))));
  const value = Number(factor.toPrecision(digits));
  const as = known.length === 0 ? '' : `: ${known.join(', or ')}`;
  return `the scale is ${value} times what it should be${as}`;
}

/** The scale wrong by any factor. */
export const scaleFactorHypotheses: HypothesisFamily = function* (context) {
  const damaged = context.sample.filter((row) => row.damaged);
  const fit = fitScaleFactor(context, damaged);
  if (fit === null || Math.abs(fit.factor - 1) < leastError) return;
  const hypothesis: Hypothesis = {
    id: 'scale-factor',
    technique: 'scale-subtract',
    statement: describeFactor(context, fit),
    adjusted: true,
    predict: (row) => withFactor(context, row, fit.factor),
  };
  yield hypothesis;
};
