import { formatNumber, listed, stated, type StatedVerdict } from '../words/index.js';
import type { Diagnosis, DiagnosisCandidate } from './diagnosis/index.js';
import type { Finding } from './findings.js';
import type { JudgedQuantity } from './judge-quantity.js';
import type { PremiseFit } from './premises/premise-fit.js';
import { describePlace, placeInBrackets, type Place } from './rows/index.js';
import type { UntestedStructure } from './structure/structure-result.js';

/** A cause that is not surely one, and the part of the squared error that it explains. */
type Candidate = Pick<DiagnosisCandidate, 'sentence' | 'explained'>;

/** The cause of a failure, as far as a verdict tells it. */
export interface Cause {
  /** `unexplained` where no known cause gives these results. */
  readonly id: string;
  /** The cause in words, without its place and its full stop. */
  readonly sentence: string;
  readonly place: Place | null;
  /** The nearest causes where none is named, the one that explains most first; none, or left out, where one is. */
  readonly candidates?: readonly Candidate[];
}

/** The findings on judged quantities, in one sentence and in full. */
export interface ReachedVerdict<C extends Cause> extends StatedVerdict {
  readonly pass: boolean;
  /** Every reason to fail; empty on a pass. */
  readonly findings: readonly Finding[];
  /** The cause of the failure, `unexplained` where no known cause explains it; null on a pass, or where none is asked for. */
  readonly diagnosis: C | null;
  /** Whether something of what has to be judged was held against a bound; without, there is no pass. */
  readonly judged: boolean;
  /** The kind of kernel that would pass a failed audit, as far as its numbers tell; null where none is like it. */
  readonly premise: PremiseFit | null;
}

/** The verdict on the outputs of a kernel. */
export interface Verdict extends ReachedVerdict<Diagnosis> {
  /** Further remarks for a reader, such as on the look of an output's values; a clause each. */
  readonly notes: readonly string[];
  /** Tests that could not be made, and why: a pass does not cover their faults. */
  readonly untested: readonly UntestedStructure[];
}

/** Callbacks of a verdict once it knows that the audit fails. */
export interface Explainers<C extends Cause = Diagnosis> {
  readonly diagnose: () => C;
  /** @param cause the diagnosis of `diagnose` */
  readonly fitPremise?: (findings: readonly Finding[], cause: C | null) => PremiseFit | null;
}

/** The hint at a premise that a failed kernel would pass by, without a full stop. */
export function premiseHint({ statement, flags }: PremiseFit): string {
  return `${statement}; if that is what it is, say ${flags}`;
}

/** By how much of the squared error a cause may come behind the nearest one and be told beside it. */
const asNear = 0.1;

/** A part in per cent: 100 only where nothing but roundings is left. */
function percentOf(part: number): number {
  return part > 1 - 1e-6 ? 100 : Math.floor(part * 100);
}

/** The nearest cause and the next, where it comes as near, with how much they explain, in a clause; null without any. */
export function nearestClause(candidates: readonly Candidate[]): string | null {
  const [first] = candidates;
  if (first === undefined) return null;
  const near = candidates.slice(0, 2).filter((one) => one.explained >= first.explained - asNear);
  const [most, next] = near.map(({ explained }) => percentOf(explained));
  const other = near.length < 2 ? '' : `; or ${near[1].sentence}, ${next} %`;
  return `${first.sentence}, which would explain ${most} % of the squared error${other}`;
}

/** The part of the squared error from which on a headline tells the nearest cause. */
const nearEnough = 0.9;

/** Behind what is wrong: which rows err, that no cause explains it, and the cause that nearly does. */
function unexplainedClauses(statement: string, { place, candidates = [] }: Cause): string {
  const where = place === null ? 'everywhere' : describePlace(place);
  const rows = where === 'everywhere' || statement.includes(where) ? '' : `; what errs is ${where}`;
  const nearest = nearestClause(candidates.filter(({ explained }) => explained >= nearEnough));
  return `${rows}; the cause is unexplained${nearest === null ? '' : `; the nearest known: ${nearest}`}`;
}

/** The reason of a failure: its cause and place, or, where that is unknown, the finding that explains most. Ends with a full stop. */
export function failureReason(
  first: Pick<Finding, 'statement'>,
  diagnosis: Cause | null,
  premise: PremiseFit | null,
  sampled: string,
): string {
  const of = sampled === '' ? '' : ` (judged: ${sampled})`;
  const declared = premise === null ? '' : ` ${premiseHint(premise)}.`;
  if (diagnosis === null) return `${first.statement}${of}.${declared}`;
  if (diagnosis.id !== 'unexplained')
    return `${diagnosis.sentence}${placeInBrackets(diagnosis.place)}${of}.${declared}`;
  return premise === null
    ? `${first.statement}${of}${unexplainedClauses(first.statement, diagnosis)}.`
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
export interface Evidence<C extends Cause = Diagnosis> {
  /** The judged quantities in the order of the report; the first is the quantity that the kernel is for. */
  readonly judged: readonly JudgedQuantity[];
  /** Those of which something has to be held against a bound. */
  readonly required: readonly JudgedQuantity[];
  /** All that the tests found wrong, the finding that explains most first. */
  readonly findings: readonly Finding[];
  /** The cause of a failure that needs no explaining; null, or left out, where there is none. */
  readonly knownCause?: C | null;
  /** What the first finding comes to on the worst of few rows; null, or left out, where it says no more. */
  readonly localStatement?: (place: Place) => string | null;
  /** The reason why a pass means little whatever the kernel computes, in a clause; null, or left out, where it means something. */
  readonly hollow?: string | null;
  /** Further parts that a pass leaves out, a clause each. */
  readonly left?: readonly string[];
  /** Tests whether a declared premise explains the errors: called once nothing else fails. */
  readonly testPremise?: () => PremiseTest;
  /** Number of rows that were judged, and of all rows, where those are not all. */
  readonly sample?: { readonly rows: number; readonly of: number } | null;
  /** Clauses on quantities of which nothing is judged, since there is no bound, or since underflow may take all. */
  readonly unjudged: {
    readonly unbounded: (named: string) => string;
    readonly lost: (named: string) => string;
  };
}

/** "4096 sampled rows of 4194304"; '' where all rows are judged. */
function sampledRows({ sample = null }: Pick<Evidence, 'sample'>): string {
  return sample === null ? '' : `${sample.rows} sampled rows of ${sample.of}`;
}

/** The extent of a quantity, and the part of it that has no bound. */
export function extentOf(judged: JudgedQuantity): {
  readonly all: number;
  readonly unbounded: number;
} {
  return judged.row === 'vector'
    ? { all: judged.elements.elements, unbounded: judged.elements.unbounded }
    : { all: judged.numbers.rows, unbounded: judged.numbers.unbounded };
}

/** Whether there is something of a quantity, and nothing of it has a bound. */
function isUnbounded(judged: JudgedQuantity): boolean {
  const { all, unbounded } = extentOf(judged);
  return all > 0 && unbounded === all;
}

/** The part of a quantity that has no bound, in a clause; '' where all of it has one. */
function leftClause(judged: JudgedQuantity): string {
  const { all, unbounded } = extentOf(judged);
  const { prose, parts } = judged.quantity;
  if (unbounded === 0) return '';
  if (judged.row === 'vector') return `${unbounded} of ${all} ${parts} have none`;
  return isUnbounded(judged)
    ? `${prose} has none`
    : `${prose} of ${unbounded} of ${all} ${parts} has none`;
}

/** "4 of 12 elements", for each quantity with some that are no larger than underflow, and others that are. */
export function lostParts(judged: readonly JudgedQuantity[]): string[] {
  return judged
    .filter(({ lost }) => lost.elements > 0 && !lost.isAll)
    .map((one) => `${one.lost.elements} of ${extentOf(one).all} ${one.quantity.parts}`);
}

/** The names of quantities in a sentence. */
function namesOf(judged: readonly JudgedQuantity[]): string {
  return listed(judged.map(({ quantity }) => quantity.prose));
}

/** The reason of a pass, with the part of each quantity that it does not cover. */
function passReason({ judged, hollow, left = [], ...evidence }: PassEvidence): string {
  const checked = judged.filter((one) => !isUnbounded(one));
  const stay = checked.length === 1 ? 'stays' : 'stay';
  const worst = judged.reduce(
    (most, one) => (one.row === 'vector' ? Math.max(most, one.elements.worstRatio) : most),
    0,
  );
  const used = `the worst element uses ${formatNumber(worst * 100)} % of its bound`;
  const clauses = [hollow ?? '', ...judged.map(leftClause), ...left].filter((part) => part !== '');
  const sampled = sampledRows(evidence);
  const where = sampled === '' ? '' : ` in ${sampled}`;
  return `${namesOf(checked)} ${stay} within what rounding explains${where}; ${[used, ...clauses].join('; ')}.`;
}

/** The part of the evidence that the reason of a pass tells of. */
type PassEvidence = Pick<Evidence, 'judged' | 'hollow' | 'left' | 'sample'>;

/** The reasons why nothing is judged of some quantities, one for each reason that there is. */
function unjudgedReasons({
  required,
  unjudged,
}: Pick<Evidence, 'required' | 'unjudged'>): string[] {
  const empty = required.filter((one) => extentOf(one).all === 0);
  const have = empty.length === 1 ? 'has' : 'have';
  const reasons: readonly (readonly [JudgedQuantity[], (named: string) => string])[] = [
    [empty, (named) => `${named} ${have} no elements`],
    [required.filter(isUnbounded), unjudged.unbounded],
    [required.filter(({ lost }) => lost.isAll), unjudged.lost],
  ];
  return reasons.flatMap(([some, clause]) => (some.length === 0 ? [] : [clause(namesOf(some))]));
}

/** The finding that a premise does not explain the errors of a quantity. */
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
export function reachVerdict<C extends Cause>(
  evidence: Evidence<C>,
  explainers: Explainers<C> | null,
): ReachedVerdict<C> {
  const { findings, knownCause = null, testPremise } = evidence;
  const unjudged = unjudgedReasons(evidence);
  const judged = unjudged.length === 0;
  if (findings.length > 0) {
    const diagnosis = knownCause ?? explainers?.diagnose() ?? null;
    const premise =
      knownCause === null ? (explainers?.fitPremise?.(findings, diagnosis) ?? null) : null;
    const place = diagnosis?.id === 'unexplained' ? diagnosis.place : null;
    const local = place === null ? null : (evidence.localStatement?.(place) ?? null);
    const first = { statement: local ?? findings[0].statement };
    const reason = failureReason(first, diagnosis, premise, sampledRows(evidence));
    return { pass: false, ...stated('FAIL', reason), findings, diagnosis, premise, judged };
  }
  const unexplained = { findings, diagnosis: null, premise: null, judged };
  if (!judged)
    return { pass: false, ...stated('NOT JUDGED', `${unjudged.join('; ')}.`), ...unexplained };
  const test = testPremise?.() ?? { pass: true, statement: null };
  if (!test.pass) {
    const found = premiseFinding(evidence.judged[0], test);
    const reason = stated('FAIL', `${found.statement}.`);
    return { pass: false, ...reason, ...unexplained, findings: [found] };
  }
  const said = test.statement === null ? '' : ` ${test.statement}.`;
  return { pass: true, ...stated('PASS', `${passReason(evidence)}${said}`), ...unexplained };
}
