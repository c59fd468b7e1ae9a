import type { FormatName } from '../formats/index.js';
import { formatNumber, stated, type StatedVerdict } from '../words/index.js';
import type { Diagnosis } from './diagnosis/index.js';
import { findingsOf, outputWords, type Finding } from './findings.js';
import type { JudgedQuantity } from './judge-quantity.js';
import { nothingLost, type LostElements } from './element-test.js';
import { placeInBrackets } from './rows/index.js';
import type { PremiseFit } from './premises/premise-fit.js';
import type { UntestedStructure } from './structure/structure-result.js';

/** The findings of an audit, in one sentence and in full. */
export interface Verdict extends StatedVerdict {
  readonly pass: boolean;
  /** Every reason to fail; empty on a pass. */
  readonly findings: readonly Finding[];
  /** The cause of the failure, `unexplained` where no known cause explains it; null on a pass, or where none is asked for. */
  readonly diagnosis: Diagnosis | null;
  /** Whether anything of the output was held against a bound; without, there is no pass. */
  readonly judged: boolean;
  /** The kind of kernel that would pass a failed audit, as far as its numbers tell; null where none is like it. */
  readonly premise: PremiseFit | null;
  /** Further remarks for a reader, such as on the look of an output's values; a clause each. */
  readonly notes: readonly string[];
  /** Tests that could not be made, and why: a pass does not cover their faults. */
  readonly untested: readonly UntestedStructure[];
}

/** Callbacks of a verdict once it knows that the audit fails. */
export interface Explainers {
  readonly diagnose: () => Diagnosis;
  /** @param cause the diagnosis of `diagnose` */
  readonly fitPremise: (findings: readonly Finding[], cause: Diagnosis | null) => PremiseFit | null;
}

/** The hint at a premise that a failed kernel would pass by, without a full stop. */
export function premiseHint({ statement, flags }: PremiseFit): string {
  return `${statement}; if that is what it is, say ${flags}`;
}

/** "FAIL: the cause." — or, where that is unknown, the finding that explains most. */
function failureReason(
  first: Finding,
  diagnosis: Diagnosis | null,
  premise: PremiseFit | null,
  sampled: string,
): string {
  const of = sampled === '' ? '' : ` (judged: ${sampled})`;
  const declared = premise === null ? '' : ` ${premiseHint(premise)}.`;
  if (diagnosis === null) return `${first.statement}${of}.${declared}`;
  if (diagnosis.id !== 'unexplained')
    return `${diagnosis.sentence}${placeInBrackets(diagnosis.place)}${of}.${declared}`;
  return premise === null
    ? `${first.statement}${of}; the cause is unexplained.`
    : `${first.statement}${of}.${declared}`;
}

/** Whether the declared premise explains the kernel's errors. */
export interface PremiseTest {
  /** False where the output passes by the premise alone, and does not have its errors. */
  readonly pass: boolean;
  /** A clause: the measurement beside the prediction; null where there is nothing to say. */
  readonly statement: string | null;
}

/** The evidence that a verdict is reached from. */
export interface Evidence {
  /** The judged quantities in the order of the report; the first is the quantity that the kernel is for. */
  readonly outputs: readonly JudgedQuantity[];
  readonly untested: readonly UntestedStructure[];
  /** The arithmetic whose bounds the elements were tested against, in words. */
  readonly arithmetic: string;
  /** Further remarks for a reader. */
  readonly notes: readonly string[];
  /** The part of each quantity, by name, that is no larger than underflow may take. */
  readonly lost: Readonly<Record<string, LostElements>>;
  /**
   * The output's format and a shorter one that all its values are numbers of, though no exact output is; null where there is
   * none.
   */
  readonly widened: { readonly format: FormatName; readonly from: FormatName } | null;
  /** The reason why a pass means little whatever the kernel computes, in a clause; null where it means something. */
  readonly hollow: string | null;
  /** Tests whether a declared premise explains the output's errors: called once nothing else fails. */
  readonly testPremise: () => PremiseTest;
  /** Number of rows that were judged, and of all rows, where those are not all. */
  readonly sample: { readonly rows: number; readonly of: number } | null;
}

/** The cause of a failure where roundings to a shorter format are errors of the longer one. */
function widened({ format, from }: NonNullable<Evidence['widened']>): Diagnosis {
  return {
    id: 'output-widened',
    equivalents: [],
    technique: 'output-round',
    place: null,
    candidates: [],
    sentence: `the output is widened: a tensor in ${format} whose values are all numbers of ${from}; say --format out=${from} to judge it as that`,
    evidence: [],
  };
}

/** "4096 sampled rows of 4194304"; '' where all rows are judged. */
function sampledRows({ sample }: Evidence): string {
  return sample === null ? '' : `${sample.rows} sampled rows of ${sample.of}`;
}

/** The extent of a quantity, and the part of it that has no bound. */
function extentOf(judged: JudgedQuantity): { readonly all: number; readonly unbounded: number } {
  const { unbounded } = judged.row === 'vector' ? judged.elements : judged.numbers;
  return { all: judged.values.length, unbounded };
}

/** Whether any part of a quantity was held against a bound, or the quantity is empty. */
function isJudged(judged: JudgedQuantity): boolean {
  const { all, unbounded } = extentOf(judged);
  return all === 0 || unbounded < all;
}

/** The part of a quantity that has no bound, in a clause; '' where all of it has one. */
function leftClause(judged: JudgedQuantity): string {
  const { all, unbounded } = extentOf(judged);
  const { prose, parts, row } = judged.quantity;
  if (unbounded === 0) return '';
  if (row === 'vector') return `${unbounded} of ${all} ${parts} have none`;
  return isJudged(judged)
    ? `${prose} of ${unbounded} of ${all} ${parts} has none`
    : `${prose} has none`;
}

/** The part of a quantity that is no larger than underflow, in a clause; '' where there is none. */
function lostClause(judged: JudgedQuantity, { lost }: Evidence): string {
  const { elements } = lost[judged.quantity.name] ?? nothingLost;
  return elements === 0
    ? ''
    : `${elements} of ${judged.values.length} ${judged.quantity.parts} are no larger than underflow, and not judged`;
}

/** The reason of a pass, with the part of each quantity that it does not cover. */
function passReason(evidence: Evidence): string {
  const { outputs } = evidence;
  const checked = outputs.filter(isJudged).map(({ quantity }) => quantity.prose);
  const stay = checked.length === 1 ? 'stays' : 'stay';
  const listed =
    checked.length < 3
      ? checked.join(' and ')
      : `${checked.slice(0, -1).join(', ')} and ${checked[checked.length - 1]}`;
  const worst = outputs.reduce(
    (most, judged) => (judged.row === 'vector' ? Math.max(most, judged.elements.worstRatio) : most),
    0,
  );
  const used = `the worst element uses ${formatNumber(worst * 100)} % of its bound`;
  const left = [
    evidence.hollow ?? '',
    ...outputs.map(leftClause),
    ...outputs.map((one) => lostClause(one, evidence)),
  ].filter((part) => part !== '');
  const sampled = sampledRows(evidence);
  const where = sampled === '' ? '' : ` in ${sampled}`;
  return `${listed} ${stay} within what rounding explains${where}; ${[used, ...left].join('; ')}.`;
}

/** The finding that a premise does not explain the output's errors. */
function premiseFinding({ quantity }: JudgedQuantity, { statement }: PremiseTest): Finding {
  return {
    quantity: quantity.name,
    test: 'premise',
    isWorstCase: false,
    statement: statement ?? 'the premise is not borne out',
  };
}

/**
 * Pass when every test passes. A fail gives its cause, from `diagnose`, and the findings, the one that
 * explains most first: a wrong scale of a whole head before a bias, then single elements, then the LSE; NaN
 * and infinities before all.
 *
 * @param explainers called once the audit fails; null where no cause is wanted
 */
export function reachVerdict(evidence: Evidence, explainers: Explainers | null): Verdict {
  const { outputs, arithmetic, notes, untested } = evidence;
  const [main] = outputs;
  const { all, unbounded } = extentOf(main);
  const isLost = (evidence.lost[main.quantity.name] ?? nothingLost).isAll;
  const judged = unbounded < all && !isLost;
  const measured = findingsOf(outputs, { ...outputWords, arithmetic });
  const premiseTest =
    measured.length === 0 && judged ? evidence.testPremise() : { pass: true, statement: null };
  const findings = premiseTest.pass ? measured : [premiseFinding(main, premiseTest)];
  const common = { findings, judged, notes, untested };
  if (!premiseTest.pass)
    return {
      pass: false,
      ...stated('FAIL', `${findings[0].statement}.`),
      diagnosis: null,
      premise: null,
      ...common,
    };
  if (findings.length > 0) {
    // An output that is rounded to another format errs like many a kernel, but is not from any of them.
    const isWidened = evidence.widened !== null && findings[0].quantity === main.quantity.name;
    const diagnosis = isWidened ? widened(evidence.widened) : (explainers?.diagnose() ?? null);
    const premise = isWidened ? null : (explainers?.fitPremise(findings, diagnosis) ?? null);
    const reason = failureReason(findings[0], diagnosis, premise, sampledRows(evidence));
    return { pass: false, ...stated('FAIL', reason), diagnosis, premise, ...common };
  }
  const unexplained = { diagnosis: null, premise: null, ...common };
  const said = premiseTest.statement === null ? '' : ` ${premiseTest.statement}.`;
  if (judged)
    return { pass: true, ...stated('PASS', `${passReason(evidence)}${said}`), ...unexplained };
  const reason =
    all === 0
      ? `${main.quantity.prose} has no elements.`
      : isLost
        ? `nothing in ${main.quantity.prose} is larger than underflow, which may take all of it.`
        : `no element has a bound under the premises (${arithmetic}); scores, weights or sums leave the range of their formats everywhere.`;
  return { pass: false, ...stated('NOT JUDGED', reason), ...unexplained };
}
