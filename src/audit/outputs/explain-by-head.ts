import type { Diagnosis } from '../diagnosis/index.js';
import { judgedQuantities, type JudgedOutputs, type JudgedQuantity } from '../judge-quantity.js';
import type { Coordinates } from '../kernel-outputs.js';
import { axisOf } from '../rows/index.js';
import type { ProblemShape } from '../../problem/index.js';
import { partShape } from '../parts/part-plan.js';
import { referenceRows } from '../parts/reference-rows.js';
import type { AttentionReference } from '../../../oracles/index.js';
import type { FoundExplainers } from '../conduct/contract.js';
import type { Verdict } from '../verdict.js';
import { planAudit, type HeadSource, type PreparedAudit } from './plan-audit.js';

/** The place of the element or number that is most wrong; null where all stay within their bounds. */
function worstPlace(judged: JudgedQuantity): Coordinates | null {
  if (judged.row === 'number') {
    const { firstNonFinite, outside, worst } = judged.numbers;
    return firstNonFinite?.at ?? (outside > 0 ? worst!.at : null);
  }
  const { firstNonFinite, outside, worst } = judged.elements;
  return firstNonFinite ?? (outside > 0 ? worst!.at : null);
}

/**
 * A head, counted over [batch, heads], that fails: the first that a test names, 0 where none does.
 * @param heads of a batch
 */
function failingHead(outputs: JudgedOutputs, heads: number): number {
  const failing = judgedQuantities(outputs).flatMap((judged) => {
    const at = worstPlace(judged);
    const spread = judged.row === 'number' ? [] : judged.spread.results;
    return [
      ...(at === null ? [] : [at.batch * heads + at.head]),
      ...judged.structure
        .filter(({ statistic, threshold }) => Math.abs(statistic) > threshold)
        .map(({ head }) => head),
      ...spread.filter(({ measured, limit }) => measured > limit).map(({ head }) => head),
    ];
  });
  return failing[0] ?? 0;
}

/** The diagnosis of a head that was a problem of its own, for readers of the whole. */
function ofHead(diagnosis: Diagnosis, { batch, heads }: ProblemShape, head: number): Diagnosis {
  const place = diagnosis.place && {
    ...diagnosis.place,
    sequences: axisOf([Math.floor(head / heads)], batch),
    heads: axisOf([head % heads], heads),
  };
  return diagnosis.id === 'unexplained'
    ? { ...diagnosis, place }
    : { ...diagnosis, place, sentence: `taking one head alone, ${diagnosis.sentence}` };
}

/**
 * The cause of a failure, looked for in one head alone: the keys of the others are not in memory.
 * @param verdictOf judges the head
 */
export async function explainByHead(
  { options, plan }: PreparedAudit,
  { readHead }: HeadSource,
  {
    reference,
    outputs,
  }: { readonly reference: AttentionReference; readonly outputs: JudgedOutputs },
  verdictOf: (alone: PreparedAudit) => Pick<Verdict, 'diagnosis' | 'premise'>,
): Promise<FoundExplainers<Diagnosis>> {
  const { shape } = reference;
  const head = failingHead(outputs, shape.heads);
  const { heads, queries } = shape;
  const { problem, out, lse } = await readHead(head);
  const part = { head, firstRow: 0, rows: queries };
  const alone = planAudit(
    problem,
    { given: { out, lse }, unjudged: [] },
    {
      ...(options.arithmetic !== undefined && { arithmetic: options.arithmetic }),
      ...(options.falseAlarmRate !== undefined && { falseAlarmRate: options.falseAlarmRate }),
      premises: options.premises,
      strictPremises: options.strictPremises ?? false,
      thinning: plan.settings.thinning,
      reference: referenceRows(reference, partShape(shape, part), head * queries),
    },
    false,
  );
  const { diagnosis, premise } = verdictOf(alone);
  const place = `batch ${Math.floor(head / heads)}, head ${head % heads}`;
  return {
    explainers:
      diagnosis === null
        ? null
        : { diagnose: () => ofHead(diagnosis, shape, head), fitPremise: () => premise },
    note:
      diagnosis === null
        ? `the cause was looked for in ${place} alone, which does not fail by itself`
        : `the cause was looked for in ${place} alone, which what is said of it calls head 0`,
  };
}
