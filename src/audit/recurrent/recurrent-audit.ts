import { makesGates } from '../../../oracles/index.js';
import {
  recurrentQuantities,
  recurrentQuantityNames,
  recurrentShape,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentQuantityName,
  type RecurrentResults,
  type RecurrentShape,
} from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { listed } from '../../words/index.js';
import { conduct, conductApart, usualFalseAlarmRate, type Contract } from '../conduct/contract.js';
import type { FoundCause } from '../conduct/causes.js';
import type { Crew, StageProgress } from '../conduct/stage.js';
import { findingsOf, outputWords } from '../findings.js';
import type { ReachedVerdict } from '../verdict.js';
import { describeArithmetics } from './declared-arithmetics.js';
import { checkRecurrentDeclaration, type RecurrentDeclaration } from './declaration.js';
import { explainRecurrence } from './explain-recurrence.js';
import { decodeRecurrent, recurrentRows } from './given-quantities.js';
import { headParts, type HeadPart } from './head-part.js';
import { sampledQuantity, sampleHeads, type HeadSample } from './head-sample.js';
import { identityFindings, type RecurrentIdentity } from './judge-identity.js';
import { judgeIdentities, judgeQuantities, type GivenRecurrences } from './judge-measured.js';
import type { JudgedRecurrence } from './judge-recurrence.js';
import { measurePart, type MeasuredPart, type RecurrentPlan } from './measure-part.js';

/** What a kernel of linear attention computed. */
export interface GivenRecurrence {
  /** Tensors in the shapes of `recurrentQuantityShape`. */
  readonly results: RecurrentResults;
  /** What gradients began with; they are judged only with it. */
  readonly gradientInputs?: RecurrentGradientInputs | undefined;
}

/** Options of {@link auditRecurrent}. */
export interface RecurrentAuditOptions {
  /** Default: nothing is declared. */
  readonly declared?: RecurrentDeclaration | undefined;
  /** The probability that the statistical tests fail a correct kernel; default 1e-9. */
  readonly falseAlarmRate?: number | undefined;
  /** Whether the cause of a failure is looked for; default: it is, but not of a sample. */
  readonly diagnose?: boolean | undefined;
  /** The fewest rows of the output to judge, of heads at random, and the seed that draws these; default: all. */
  readonly rows?: { readonly rows: number; readonly seed: number } | undefined;
  readonly progress?: StageProgress | undefined;
}

/** The judgement of a kernel of linear attention. */
export interface RecurrentAudit {
  readonly verdict: ReachedVerdict<FoundCause>;
  readonly shape: RecurrentShape;
  /** In the order of `recurrentQuantities`. */
  readonly quantities: readonly JudgedRecurrence[];
  /** Sums that are one number in exact arithmetic, by key head. */
  readonly identities: readonly RecurrentIdentity[];
  /** The heads that are judged; null for all. */
  readonly sample: HeadSample | null;
  /** The arithmetic that the bounds are of, in words. */
  readonly arithmetic: string;
  readonly falseAlarmRate: number;
}

/** What is judged, and how. */
interface PreparedRecurrence {
  readonly plan: RecurrentPlan;
  readonly shape: RecurrentShape;
  readonly parts: readonly HeadPart[];
  readonly sample: HeadSample | null;
  readonly given: GivenRecurrences;
  readonly falseAlarmRate: number;
  readonly diagnose: boolean;
}

/** A part to measure, with its number. */
export interface RecurrentRequest {
  readonly part: HeadPart;
  readonly index: number;
}

/** The types of what is measured of recurrences. */
export interface RecurrentMeasurements {
  readonly request: RecurrentRequest;
  readonly answer: MeasuredPart;
  readonly data: RecurrentPlan;
  readonly measured: readonly MeasuredPart[];
}

/** The types of the contract of recurrences. */
interface RecurrentTerms extends RecurrentMeasurements {
  readonly plan: PreparedRecurrence;
  readonly cause: FoundCause;
  readonly result: RecurrentAudit;
}

const words = { ...outputWords, prefixesTests: true, zeros: 'where nothing was written' };

/** Says so where a pass means little: all exact values of a quantity are 0. */
function hollowClause(
  { given }: PreparedRecurrence,
  measured: readonly MeasuredPart[],
): string | null {
  const zeros = given.filter(({ name }) =>
    measured.every(({ quantities }) =>
      quantities.every((one) => one.name !== name || one.exact.every((x) => x === 0)),
    ),
  );
  if (zeros.length === 0) return null;
  const names = zeros.map(({ rows }) => rows.quantity.prose);
  return `no exact element of ${listed(names)} is a number other than 0, so that there must only be 0`;
}

/** The contract of linear attention: every result of a kernel, forward and backward. */
export const recurrentContract: Contract<RecurrentTerms> = {
  *stages({ plan, shape, parts }) {
    const measured: MeasuredPart[] = [];
    yield [
      {
        name: 'oracle',
        requests: parts.map((part, index) => ({ part, index })),
        data: plan,
        isDivided: parts.length > 1 && workOf(plan, shape) > leastShared,
        measure: ({ part, index }) => measurePart(plan, part, index),
        settle: (answer, index) => {
          measured[index] = answer;
        },
      },
    ];
    return measured;
  },
  judge(prepared, measured) {
    const { plan, shape, sample, falseAlarmRate, diagnose } = prepared;
    const { task, declared } = plan;
    const quantities = judgeQuantities(prepared, measured);
    const identities = judgeIdentities(prepared, measured);
    const arithmetic = describeArithmetics(task.problem, declared);
    const findingWords = { ...words, arithmetic };
    const own = findingsOf(quantities, findingWords);
    // All identities have the output in them: one that fails by itself says nothing of what it is compared with.
    const isOutputWrong = own.some(({ quantity }) => quantity === 'out');
    const findings = [...own, ...(isOutputWrong ? [] : identityFindings(identities))];
    return {
      evidence: {
        judged: quantities,
        required: quantities,
        findings,
        hollow: hollowClause(prepared, measured),
        sample,
        unjudged: {
          unbounded: (named) => `no element of ${named} has a bound`,
          lost: (named) => `nothing in ${named} is larger than underflow`,
        },
      },
      explainers: diagnose
        ? { diagnose: () => explainRecurrence(prepared, measured, quantities) }
        : null,
      result: (verdict) => ({
        verdict,
        shape,
        quantities,
        identities,
        sample,
        arithmetic,
        falseAlarmRate,
      }),
    };
  },
};

/** The work of an audit that threads are worth, which take a third of a second to start: a second of multiplications, with those of gradients more. */
const leastShared = 2 ** 26;

/** The multiplications of an audit's draws, about. */
function workOf(
  { draws }: RecurrentPlan,
  { batch, tokens, valueHeads, keyDim, valueDim }: RecurrentShape,
): number {
  return draws * batch * tokens * valueHeads * (keyDim + valueDim) * 64;
}

/** The number of draws: fewer where one takes long. */
function drawsOf({ batch, tokens, valueHeads, keyDim, valueDim }: RecurrentShape): number {
  return batch * tokens * valueHeads * (keyDim + valueDim) * 64 < 2 ** 28 ? 32 : 24;
}

/** Why a quantity of a problem is not judged: a clause on all such quantities, and what to say to whoever gives this one; null where it is. */
export function whyUnjudged(
  name: RecurrentQuantityName,
  problem: RecurrentProblem,
  { batch }: Pick<RecurrentShape, 'batch'>,
): { readonly reason: string; readonly refusal: string } | null {
  const { isGradient, of } = recurrentQuantities[name];
  if (problem.mamba2?.z && isGradient) {
    const reason = 'gradients beside a gate z are not judged';
    return {
      reason,
      refusal: `${reason}, and ${name} is one; leave z out, and give the gradient before the gate as dout`,
    };
  }
  if (makesGates(problem) && isGradient) {
    const reason = 'gradients beside A_log, b or gates of base 2 are not judged';
    return { reason, refusal: `${reason}, and ${name} is one; give g and beta` };
  }
  if (batch <= 1 || of !== 'heads') return null;
  return {
    reason: `sums over a batch of ${batch} are not judged`,
    refusal: `${name} is a sum over a batch of ${batch}, and is judged of a batch of 1; give the entries as packed sequences`,
  };
}

/** @throws RequestError for gradients that are not judged */
function refuseGradients(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  given: GivenRecurrences,
): void {
  for (const { name } of given) {
    const why = whyUnjudged(name, problem, shape);
    if (why !== null) throw new RequestError(why.refusal);
  }
}

/**
 * What an audit is made of.
 * @throws RequestError for tensors that do not fit the problem, and where there is nothing to judge
 */
export function prepareRecurrence(
  problem: RecurrentProblem,
  { results, gradientInputs }: GivenRecurrence,
  {
    declared = {},
    falseAlarmRate = usualFalseAlarmRate,
    diagnose,
    rows: few,
  }: RecurrentAuditOptions,
): PreparedRecurrence {
  checkRecurrentDeclaration(declared);
  const shape = recurrentShape(problem);
  const sample = few === undefined ? null : sampleHeads(shape, few);
  const given = recurrentQuantityNames.flatMap((name) => {
    const tensor = results[name];
    if (tensor === undefined) return [];
    const rows = recurrentRows(name, problem, shape);
    if (rows === null)
      throw new RequestError(
        `there is ${name}, which ${problem.family} here has not; leave it out`,
      );
    const decoded = decodeRecurrent(rows, tensor, problem, shape);
    return [sampledQuantity({ name, rows, given: decoded }, sample, shape)];
  });
  refuseGradients(problem, shape, given);
  if (given.length === 0)
    throw new RequestError(
      `there is nothing to judge; give ${recurrentQuantityNames.join(', ')}, or some of them`,
    );
  const gradient = given.find(({ name }) => name.startsWith('d'));
  if (gradient !== undefined && gradientInputs === undefined)
    throw new RequestError(`${gradient.name} needs dout, which the backward pass got; give it`);
  const empty = given.find(({ given: { values } }) => values.length === 0);
  if (shape.batch === 0 && empty !== undefined)
    throw new RequestError(
      `${empty.rows.quantity.prose} has a batch of 0; give at least one entry`,
    );
  const formats: Partial<Record<RecurrentQuantityName, (typeof given)[number]['given']['format']>> =
    Object.fromEntries(given.map((one) => [one.name, one.given.format]));
  const plan = { task: { problem, gradientInputs }, declared, formats, draws: drawsOf(shape) };
  return {
    plan,
    shape,
    parts: sample?.parts ?? headParts(shape),
    sample,
    given,
    falseAlarmRate,
    diagnose: diagnose ?? sample === null,
  };
}

/**
 * Judges what a kernel of linear attention computed: each element against its worst case, the errors' spread, slopes and identities.
 * @throws RequestError for tensors that do not fit the problem
 */
export function auditRecurrent(
  problem: RecurrentProblem,
  given: GivenRecurrence,
  options: RecurrentAuditOptions = {},
): RecurrentAudit {
  return conduct(recurrentContract, prepareRecurrence(problem, given, options), options.progress);
}

/**
 * Judges as {@link auditRecurrent}, its key heads measured by a crew: the result is the same.
 * @throws RequestError for tensors that do not fit the problem
 */
export function auditRecurrentApart(
  problem: RecurrentProblem,
  given: GivenRecurrence,
  options: RecurrentAuditOptions,
  crew: Crew<RecurrentMeasurements>,
): Promise<RecurrentAudit> {
  const prepared = prepareRecurrence(problem, given, options);
  return conductApart(recurrentContract, prepared, crew, options.progress);
}
