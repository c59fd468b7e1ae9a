import { levels } from '../../../oracles/index.js';
import { acceptedCauses } from '../conduct/causes.js';
import { bestAgreements, isAccepted, isPossible } from './acceptance.js';
import { describeCorrelations, describeDamage } from './describe-damage.js';
import { type Diagnosis, type DiagnosisInput, unexplained } from './diagnosis.js';
import type { HypothesisContext, SampleRow } from './hypothesis.js';
import { familiesOf } from './hypotheses/families.js';
import {
  explainEmptyRows,
  explainLostRows,
  failsOnlyByLse,
  holdsSomethingForNothing,
  lostRows,
} from './lost-rows.js';
import {
  causesOf,
  explainsAlone,
  measureAgreement,
  misfitOf,
  shareOfAll,
  type Agreement,
} from './measure-agreement.js';
import { structureOf } from '../judge-quantity.js';
import { placeOfRows } from '../rows/index.js';
import { formatCount, formatRoughly } from '../../words/index.js';
import { nearestCandidates } from './nearest-candidates.js';
import { placeOfCause } from './place-of-cause.js';
import { measureRows, type RowDamage } from './row-damage.js';
import {
  damageRatio,
  damagedRows,
  rowBuilder,
  rowsThatFailTogether,
  sampleRows,
} from './row-sample.js';
import { tryOnLongRows, untriedOnLongRows } from './long-rows/long-rows.js';
import { isLong, RowReader } from './row-reader.js';
import { withMaxima } from './rows-by-maximum.js';

/** Clauses joined in one sentence for one cause with several parameters. */
const mostParameters = 3;
/** Causes that may look the same and still be a diagnosis. */
const mostEqual = 6;
/** Alternatives listed as evidence at most. */
const mostListed = 4;

/** One clause per cause, with parameters only where they are certain. */
function clausesOf(best: readonly Agreement[], ids: readonly string[]): string[] {
  return ids.map((id) => {
    const alike = best.filter(({ hypothesis }) => hypothesis.id === id);
    const { hypothesis } = alike[0];
    if (alike.length === 1) return hypothesis.statement;
    if (hypothesis.cause !== undefined) return hypothesis.cause;
    const statements = new Set(alike.map((one) => one.hypothesis.statement));
    return [...statements].slice(0, mostParameters).join(' or ');
  });
}

/** The best hypotheses as one diagnosis. */
function conclude(
  best: readonly [Agreement, ...Agreement[]],
  damaged: readonly number[],
  context: HypothesisContext,
): Diagnosis {
  const { pooled, onlyLse } = context;
  const [first] = best;
  const ids = causesOf(best);
  const clauses = clausesOf(best, ids);
  const techniques = new Set(best.map(({ hypothesis }) => hypothesis.technique));
  const { place, unexplained } = placeOfCause(first.hypothesis, context, damaged);
  const alternatives = best
    .map(({ hypothesis }) => hypothesis.statement)
    .filter((statement) => !clauses.includes(statement));
  const lse = first.lse.rows === 0 ? [] : ['the LSE is what this cause gives'];
  return {
    id: ids[0],
    equivalents: ids.slice(1),
    technique: techniques.size === 1 ? first.hypothesis.technique : null,
    place,
    candidates: [],
    sentence: clauses.join(' or '),
    evidence: [
      pooled
        ? `over ${first.rows} rows together the error is ${formatRoughly(first.slope.value)} ± ${formatRoughly(first.slope.standardError)} times what this cause makes`
        : onlyLse
          ? `${first.explained} of the ${formatCount(first.rows, 'row')} of the sample whose LSE errs are what this cause gives`
          : `${first.explained} of the ${formatCount(first.rows, 'row')} of the sample that err are what this cause gives: their squared error against it is ${formatRoughly(first.misfit)} times what rounding makes, against the correct output ${formatRoughly(first.correctMisfit)} times`,
      ...lse,
      ...(unexplained === 0
        ? []
        : [`${formatCount(unexplained, 'row')} that err beside are not explained by it`]),
      ...(alternatives.length === 0
        ? []
        : [`equally good: ${alternatives.slice(0, mostListed).join('; ')}`]),
    ],
  };
}

/** Agreement of all hypotheses with the sample. */
interface Trial {
  readonly accepted: readonly Agreement[];
  readonly tried: readonly Agreement[];
}

/** Every hypothesis that the sample bears out; those fitted to it only when nothing simpler is. */
function tryHypotheses(context: HypothesisContext): Trial {
  if (context.isLong === true) return tryOnLongRows(context);
  const tried: Agreement[] = [];
  const accepted = acceptedCauses(familiesOf(context.input.problem), context, (hypothesis) => {
    const agreement = measureAgreement(hypothesis, context);
    tried.push(agreement);
    return isAccepted(agreement, context) ? agreement : null;
  });
  const free = accepted.filter(({ hypothesis }) => hypothesis.fitted !== true);
  return { accepted: free.length > 0 ? free : accepted, tried };
}

/**
 * Names the cause of a failed audit. Causes are hypotheses whose exact consequences are held against the
 * output on a sample of rows; the one that leaves nothing but rounding on (nearly) all damaged rows is named,
 * or all that do so equally well. Rows that are NaN, infinite or zero, and an LSE that fails alone, are
 * recognised by their common properties. Without such a cause (`isAccepted` has the criterion) the diagnosis
 * is `unexplained`, with the observations and the nearest causes as evidence.
 *
 * Costs one walk over the weights and, per hypothesis, some tens of rows; memory O(seqlen · dim).
 */
export function diagnose(input: DiagnosisInput): Diagnosis {
  const { problem, reference } = input;
  const { shape } = reference;
  const damage = measureRows(input);
  const special = levels.indexOf('special');
  const onlyLse = failsOnlyByLse(input);
  const ofEmptyRows = onlyLse ? explainEmptyRows(input) : null;
  if (ofEmptyRows !== null) return ofEmptyRows;
  const damaged = damagedRows(input, damage, onlyLse).filter(
    (row) => reference.level[row] !== special,
  );
  const reader = new RowReader(problem, shape);
  const place =
    damaged.length === 0
      ? null
      : withMaxima(placeOfRows(damaged, { ...problem, shape }), damaged, reader);
  const located = onlyLse
    ? ['the output is right, the LSE is not', ...describeDamage(input, damage, damaged, 'LSE')]
    : damaged.length === 0
      ? ['no single row errs by more than rounding explains']
      : describeDamage(input, damage, damaged);
  if (damaged.length > 0 && damaged.every((row) => holdsSomethingForNothing(input, reader, row))) {
    const other = findCause(input, { damage, damaged, reader, onlyLse });
    return {
      id: 'rows-without-keys-not-zero',
      equivalents: [],
      technique: 'normalise',
      place,
      candidates: [],
      sentence: 'rows without visible keys are not zero',
      evidence: located,
      fitting: other.fitting ?? [],
    };
  }
  const lost = onlyLse ? [] : lostRows(input, damaged);
  if (lost.length > 0 && lost.length === damaged.length) {
    const found = explainLostRows(input, reader, lost, damaged) ?? unexplained([], place);
    return { ...found, evidence: [...found.evidence, ...located] };
  }
  const found = findCause(input, { damage, damaged, reader, onlyLse });
  const untried = isLong(shape)
    ? [untriedOnLongRows(shape.keys, problem.dropout !== undefined)]
    : [];
  if ('id' in found) return { ...found, evidence: [...found.evidence, ...located, ...untried] };
  const ofLost = lost.length === 0 ? null : explainLostRows(input, reader, lost, damaged);
  if (ofLost !== null && ofLost.id !== 'rows-not-written')
    return { ...ofLost, evidence: [...ofLost.evidence, ...located] };
  const { contexts, tried, fitting } = found;
  const ofSizes = contexts.slice(0, 1).flatMap((one) => describeCorrelations(one, damage));
  const [context] = contexts;
  const nearest = nearestCandidates(tried, (one) => shareOfAll(one, context));
  const open = unexplained([...located, ...ofSizes, ...untried], place, nearest);
  return { ...open, fitting };
}

interface Failure {
  readonly damage: RowDamage;
  readonly damaged: readonly number[];
  readonly reader: RowReader;
  readonly onlyLse: boolean;
}

/** Whether rows fail together, not single elements alone. */
function failsTogether({ outputs }: DiagnosisInput, damaged: readonly number[]): boolean {
  const { spread } = outputs.out;
  return (
    damaged.length === 0 ||
    structureOf({ outputs }).some(
      ({ rows, statistic, threshold }) => rows > 1 && Math.abs(statistic) > threshold,
    ) ||
    spread.results.some(({ measured, limit }) => measured > limit)
  );
}

function meanMisfit(sample: readonly SampleRow[]): number {
  const misfits = sample.map(({ observed, correct }) => misfitOf(observed, correct));
  return misfits.reduce((a, b) => a + b, 0) / misfits.length;
}

/** Hypotheses that were tried without success, and their contexts. */
interface Attempts {
  readonly contexts: readonly HypothesisContext[];
  readonly tried: readonly Agreement[];
  /** Causes that would leave nothing but rounding, and that too little speaks for. */
  readonly fitting: readonly string[];
}

/**
 * Tries the hypotheses on the rows that show the error by themselves; when none of them is borne out, on
 * rows that fail together.
 */
function findCause(input: DiagnosisInput, failure: Failure): Diagnosis | Attempts {
  const { damage, damaged, reader, onlyLse } = failure;
  const { shape } = input.reference;
  const buildRow = rowBuilder(input, damage, reader);
  const contexts: HypothesisContext[] = [];
  const tried: Agreement[] = [];
  const possible: string[] = [];
  for (const pooled of onlyLse || !failsTogether(input, damaged) ? [false] : [false, true]) {
    const rows = pooled ? rowsThatFailTogether(input, damaged) : damaged;
    const sample = rows.length === 0 ? [] : sampleRows(input, damage, rows, buildRow, pooled);
    if (!sample.some((row) => row.damaged)) continue;
    // Errors that rows show by themselves must be explained row by row.
    if (pooled && meanMisfit(sample) > damageRatio) continue;
    const context = {
      input,
      shape,
      reader,
      sample,
      isLong: isLong(shape),
      noise: damage.noise,
      onlyLse,
      pooled,
      erring: rows,
      buildRow,
    };
    contexts.push(context);
    const trial = tryHypotheses(context);
    tried.push(...trial.tried);
    const fitting = causesOf(trial.tried.filter((one) => isPossible(one, context)));
    possible.push(...fitting);
    // One row that errs by much makes all fail together, and what the others err by is no cause of it.
    const alone = pooled
      ? sampleRows(input, damage, damaged, buildRow, false).filter((row) => row.damaged)
      : [];
    const accepted = trial.accepted.filter((one) => explainsAlone(one, alone));
    const [first, ...others] = bestAgreements(accepted, context);
    if (first === undefined) continue;
    const causes = causesOf([first, ...others]);
    if (causes.length > mostEqual) {
      const open = unexplained(
        [`${causes.length} causes would give this output equally well: ${causes.join(', ')}`],
        placeOfRows(rows, { ...input.problem, shape }),
        nearestCandidates([first, ...others], (one) => shareOfAll(one, context)),
      );
      return { ...open, fitting };
    }
    return { ...conclude([first, ...others], rows, context), fitting };
  }
  return { contexts, tried, fitting: possible };
}
