import {
  groupByKind,
  isPass,
  type CheckResult,
  type LawFailure,
  type LawId,
  type LawResult,
  type ResolvedPromises,
} from '../../../../properties/index.js';
import { formatCount, formatNumber } from '../../../words/index.js';
import type {
  CheckFinding,
  CheckReport,
  PropertyName,
  ReportedKernel,
  ReportedPromises,
  ReportedProperty,
  ReportedShards,
  ReportedRecurrentPromises,
  ReportedViolation,
} from './check-document.js';
import { sizeOfProblem } from '../index.js';
import { reportedProblem } from '../index.js';

/** Members of a violation beside the findings of the check. */
export type SavedViolation = Pick<ReportedViolation, 'values' | 'saved' | 'replay'>;

/** The kernel, the settings and the time of a check, and the violations that were saved. */
export interface CheckProvenance {
  readonly version: string;
  readonly kernel: ReportedKernel;
  readonly promises: ResolvedPromises;
  /** The statement of each property, and the reason for it. */
  readonly laws: Readonly<Record<string, { readonly statement: string; readonly reason: string }>>;
  readonly runsPerProperty: number;
  readonly saved: ReadonlyMap<LawId, SavedViolation>;
  /** The reason why the kernel could not be run at all, in a clause; null when it could. */
  readonly execution: string | null;
  /** Whether a property that was never tried fails the kernel; default false. */
  readonly strict?: boolean | undefined;
  /** Default: now. */
  readonly created?: Date;
}

/** The outcome of a law, with its violation as it is reported. */
export interface CheckedLaw<Id extends PropertyName = PropertyName> extends Omit<
  LawResult,
  'id' | 'failure'
> {
  readonly id: Id;
  readonly violation: ReportedViolation | null;
}

/** The provenance of a report whose violations are in reported form already. */
export interface CheckAssembly extends Omit<CheckProvenance, 'saved' | 'promises'> {
  readonly promises: ReportedPromises | ReportedRecurrentPromises;
  /** Given only for linear attention. */
  readonly contract?: 'recurrent';
  readonly shards?: ReportedShards;
}

/** What is reported of a violation that was not saved. */
export const notSaved: SavedViolation = { values: null, saved: null, replay: null };

/**
 * A violation in its reported form, which shares no data with the failure.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function reportedViolation(
  failure: LawFailure,
  saved: SavedViolation = notSaved,
): ReportedViolation {
  const { statement, cause, hint, kind, lawCase, regime, round, runsUntil, secondsUntil, shrinks } =
    failure;
  return {
    statement,
    cause,
    hint,
    kind: { ...kind, equivalents: [...kind.equivalents] },
    choice: lawCase.choice,
    regime,
    round,
    run: runsUntil,
    seconds: secondsUntil,
    simplifications: shrinks,
    problem: reportedProblem(lawCase.problem),
    values: saved.values,
    saved: saved.saved,
    replay: saved.replay,
  };
}

/** The reason why no law is tried on a kernel that cannot be run at all. */
export const kernelDoesNotRun = 'the kernel does not run';

function reportedProperty(result: CheckedLaw, { laws }: CheckAssembly): ReportedProperty {
  const { id, strength, status, runs, tried, unsupported, sizes } = result;
  const { seconds, skipped, violation } = result;
  const { statement, reason } = laws[id];
  return {
    name: id,
    statement,
    reason,
    promise: strength,
    result: status,
    runs,
    tried,
    unsupported,
    sizes,
    seconds,
    skipped,
    violation,
  };
}

/** The promises that are reported: plain data. */
export function reportedPromises(promises: ReportedPromises): ReportedPromises {
  const { formats, causal, window, softcap, groupedHeads, emptyRows, scales } = promises;
  const { specialValues, lse, dims, sizes, blockKeys, rescaleThreshold } = promises;
  const { groupSizes, multiples, features, gradients, deterministic } = promises;
  return {
    formats,
    causal,
    window,
    softcap,
    features,
    groupedHeads,
    emptyRows,
    scales,
    specialValues,
    lse,
    dims,
    sizes,
    blockKeys,
    rescaleThreshold,
    groupSizes,
    multiples,
    ...(gradients === true ? { gradients, deterministic } : {}),
  };
}

/** Number of elements of Q, K and V in a violation's problem. */
const sizeOf = ({ violation }: ReportedProperty): number => sizeOfProblem(violation!.problem);

function reportedFindings(properties: readonly ReportedProperty[]): CheckFinding[] {
  const violated = properties.filter(({ violation }) => violation !== null);
  return groupByKind(violated, ({ violation }) => violation!.kind).map(({ title, violations }) => ({
    title,
    properties: [...violations].sort((a, b) => sizeOf(a) - sizeOf(b)).map(({ name }) => name),
  }));
}

/** Numbers of shards in words, as in "shards 1, 3 of 4"; the empty string for none. */
function shardsInWords(numbers: readonly number[], count: number): string {
  if (numbers.length === 0) return '';
  return `shard${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')} of ${count}`;
}

/**
 * The verdict of a check in a sentence: the properties that hold or not, those that were never tried, and the number of
 * problems.
 */
function checkSentence(
  properties: readonly ReportedProperty[],
  findings: readonly CheckFinding[],
  { seconds, seed, outOfTime }: Pick<CheckResult, 'seconds' | 'seed' | 'outOfTime'>,
  { execution, runsPerProperty, shards, strict = false }: CheckAssembly,
): string {
  if (execution !== null) return `FAIL: ${execution}.`;
  const count = (result: ReportedProperty['result']) =>
    properties.filter((property) => property.result === result).length;
  const [violated, held, untried] = [count('violated'), count('holds'), count('untried')];
  const tried = properties.reduce((sum, property) => sum + property.tried, 0);
  const problems = `${formatCount(tried, 'problem')} in ${formatNumber(seconds)} s, seed ${seed}`;
  const late = shards === undefined ? '' : shardsInWords(shards.outOfTime, shards.count);
  const isPart = shards !== undefined && shards.included.length < shards.count;
  const time = [
    outOfTime ? `; the time was up before each had its ${runsPerProperty}` : '',
    outOfTime && late !== '' ? ` in ${late}` : '',
    isPart ? `; this is ${shardsInWords(shards.included, shards.count)} only` : '',
  ].join('');
  const ofProperties = (n: number) => `${n} ${n === 1 ? 'property' : 'properties'}`;
  // For a part of a check, the other shards tell.
  const gap =
    untried === 0 || isPart ? '' : `, ${untried} ${untried === 1 ? 'was' : 'were'} never tried`;
  const causes =
    findings.length < violated ? `, apparently by ${formatCount(findings.length, 'cause')}` : '';
  if (violated > 0)
    return `FAIL: ${violated} of ${ofProperties(violated + held)} ${violated === 1 ? 'is' : 'are'} violated${causes}${gap} (${problems})${time}.`;
  if (held === 0) return `NOTHING TRIED: no property was tried on any problem${time}.`;
  const holds = `${ofProperties(held)} ${held === 1 ? 'holds' : 'hold'}${gap}`;
  return strict && untried > 0
    ? `FAIL: ${holds}, which --strict does not admit (${problems})${time}.`
    : `PASS: ${holds} (${problems})${time}.`;
}

/** The report of checked laws, whose violations are in reported form already. */
export function assembleCheckReport(
  result: Omit<CheckResult, 'pass' | 'laws'> & { readonly laws: readonly CheckedLaw[] },
  assembly: CheckAssembly,
): CheckReport {
  const { version, kernel, promises, execution, runsPerProperty, shards, contract } = assembly;
  const { created = new Date() } = assembly;
  const properties = result.laws.map((law) => reportedProperty(law, assembly));
  const findings = reportedFindings(properties);
  const { command, model, settings, judgedAs } = kernel;
  return {
    kind: 'check',
    schemaVersion: 1,
    tool: { name: 'flashproof', version },
    created: created.toISOString(),
    seconds: result.seconds,
    ...(contract === undefined ? {} : { contract }),
    kernel: { command, model, settings: { ...settings }, judgedAs },
    promises,
    seed: result.seed,
    runsPerProperty,
    runs: result.runs,
    outOfTime: result.outOfTime,
    ...(shards === undefined ? {} : { shards }),
    verdict: {
      pass:
        execution === null &&
        isPass(result.laws) &&
        !(assembly.strict === true && properties.some(({ result }) => result === 'untried')),
      sentence: checkSentence(properties, findings, result, assembly),
    },
    execution,
    // The behaviour of models is known.
    notes: command === null ? [] : [...result.notes],
    findings,
    properties,
  };
}

/**
 * The report of a check, which shares no data with it.
 * @throws RequestError when a problem's shapes do not fit together
 */
export function createCheckReport(
  result: Omit<CheckResult, 'pass'>,
  { saved, promises, ...provenance }: CheckProvenance,
): CheckReport {
  const laws = result.laws.map(({ failure, ...law }) => ({
    ...law,
    violation: failure === null ? null : reportedViolation(failure, saved.get(law.id)),
  }));
  return assembleCheckReport(
    { ...result, laws },
    { ...provenance, promises: reportedPromises(promises) },
  );
}
