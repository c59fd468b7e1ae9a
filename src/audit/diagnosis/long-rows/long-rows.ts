import { acceptedCauses } from '../../conduct/causes.js';
import { formatGrouped } from '../../../words/index.js';
import { isAccepted } from '../acceptance.js';
import type { Hypothesis, HypothesisContext, SampleRow } from '../hypothesis.js';
import { familiesOfColumns, familiesWithoutValues } from '../hypotheses/families.js';
import { measureAgreement, type Agreement } from '../measure-agreement.js';
import { predictWeighted, softmaxRow, type RowPrediction } from '../prediction.js';
import { RowReader } from '../row-reader.js';
import { ValueColumns } from './value-columns.js';

/**
 * The multiple of the roundings' squares up to which held columns do not contradict a cause: one that is accepted leaves 2.5 times them at
 * most over all columns.
 */
const possibleMisfit = 8;
/** Causes that explain most of the error of the held columns, and are looked at in all columns whatever they leave. */
const mostCandidates = 3;
/** The least part of the squared error that they explain of it: what makes a candidate of all columns. */
const leastShare = 0.1;

/** Words for what is not tried on rows of so many keys. */
export function untriedOnLongRows(keys: number, hasDropout: boolean): string {
  return (
    `of rows of ${formatGrouped(keys)} keys not every cause was tried: none of kernels that quantise their inputs, of numbers that are ` +
    'kept in too short a format or rounded the wrong way, of the exponential, of single keys, of pages and lists of keys, ' +
    `and of tensors and heads that are exchanged${hasDropout ? ', and with dropout none of weights' : ''}`
  );
}

/** Σ (observed − exact)² over some rows, by column. */
function errorsByColumn(sample: readonly SampleRow[], vDim: number): Float64Array {
  const errors = new Float64Array(vDim);
  for (const { observed, correct, damaged } of sample)
    for (let c = 0; damaged && c < vDim; c++) {
      const error = observed[c] - correct.out[c];
      errors[c] += Number.isFinite(error) ? error * error : 0;
    }
  return errors;
}

/** A context whose rows are looked at by the held columns alone. */
export function ofColumns(context: HypothesisContext, values: ValueColumns): HypothesisContext {
  const { input, shape, sample } = context;
  const { columns } = values;
  const narrow = { ...shape, vDim: columns.length };
  const { keys, query, dots } = context.reader;
  const reader = new RowReader(input.problem, narrow, {
    keys,
    query,
    dots,
    values: (kv) => values.held(kv),
  });
  const { magnitude } = input.reference.quantities.out;
  const pick = (numbers: Float64Array) => Float64Array.from(columns, (c) => numbers[c]);
  const narrowed = (row: SampleRow): SampleRow => {
    const sumsOf: SampleRow['sumsOf'] = (weighted) => values.heldSums(weighted);
    const place = { ...row, vDim: columns.length, sumsOf };
    const scores = reader.scores(row.row);
    const { noise } = predictWeighted(place, softmaxRow(scores, values.held(row.kv)));
    const { out, limit, lse } = row.correct;
    const first = row.row * shape.vDim;
    const sizes = pick(magnitude.subarray(first, first + shape.vDim));
    return {
      ...place,
      observed: pick(row.observed),
      correct: { out: pick(out), limit: pick(limit), noise, lse },
      magnitude: sizes.reduce((sum, x) => sum + x * x, 0),
    };
  };
  return {
    ...context,
    isLong: true,
    reader,
    shape: narrow,
    sample: sample.map(narrowed),
    buildRow: (row, damaged) => narrowed(context.buildRow(row, damaged)),
  };
}

/** Whether the held columns of the rows that were looked at leave a cause possible. */
function isPossible(
  { residuals, rows, hypothesis }: Agreement,
  { pooled }: HypothesisContext,
): boolean {
  if (hypothesis.fitted === true || rows === 0) return false;
  if (pooled) return true;
  const { squares, noise } = residuals;
  return squares.every((x, i) => !(x > possibleMisfit * noise[i]));
}

/** A hypothesis of the held columns as one of all columns. */
export function ofAllColumns(hypothesis: Hypothesis, values: ValueColumns): Hypothesis {
  const known = new Map<number, RowPrediction | null>();
  return {
    ...hypothesis,
    predict: (row) => {
      const found = known.get(row.row);
      if (found !== undefined) return found;
      const sumsOf: SampleRow['sumsOf'] = (weighted) => values.allSums(weighted);
      const made = hypothesis.predict({ ...row, sumsOf });
      // A row that it does not touch is known by its identity.
      known.set(row.row, made);
      return made;
    },
  };
}

/**
 * Agreement with a sample of rows of so many keys that V is not held: of hypotheses that need no values, and of those about the weights, which
 * are looked at by the columns that err most; those that these do not contradict, and the nearest, by all columns.
 */
export function tryOnLongRows(context: HypothesisContext): {
  readonly accepted: readonly Agreement[];
  readonly tried: readonly Agreement[];
} {
  const { input, shape, sample } = context;
  const tried: Agreement[] = [];
  const accept = (hypothesis: Hypothesis) => {
    const agreement = measureAgreement(hypothesis, context);
    tried.push(agreement);
    return isAccepted(agreement, context) ? agreement : null;
  };
  const accepted = acceptedCauses(familiesWithoutValues(input.problem), context, accept);
  // Weights that dropout takes away are zeros of V here, which the held columns do not show of all.
  if (input.problem.dropout !== undefined) return { accepted, tried };
  const values = new ValueColumns(input.problem, shape, errorsByColumn(sample, shape.vDim));
  const narrow = ofColumns(context, values);
  const looked: Agreement[] = [];
  for (const family of familiesOfColumns)
    for (const hypothesis of family(narrow)) looked.push(measureAgreement(hypothesis, narrow));
  const nearest = looked
    .filter(({ share }) => share >= leastShare)
    .sort((a, b) => b.share - a.share)
    .slice(0, mostCandidates);
  const chosen = looked.filter((one) => isPossible(one, narrow) || nearest.includes(one));
  return {
    accepted: [
      ...accepted,
      ...chosen.flatMap(({ hypothesis }) => accept(ofAllColumns(hypothesis, values)) ?? []),
    ],
    tried,
  };
}
