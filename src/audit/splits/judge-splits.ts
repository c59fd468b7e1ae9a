import { decodeToFloat64, formats } from '../../formats/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { decodeOutputs, type GivenOutputs, type KernelOutputs } from '../kernel-outputs.js';
import type { AuditOptions } from '../outputs/audit-options.js';
import { auditOutputs, type Audit } from '../outputs/audit-outputs.js';
import { judgeMerge, type MergeJudgement } from './judge-merge.js';
import type { PartialResults } from './merge-parts.js';
import { otherRules, requestedRule, type SplitRequest, type SplitRule } from './split-rules.js';

/** The judgement of one part. */
export interface JudgedPart {
  /** The number of the part, from 0. */
  readonly split: number;
  readonly audit: Audit;
  /** The part whose keys it covers in place of its own; null where there is none. */
  readonly holds: number | null;
}

/** The judgements of the parts of a problem, and of their merge. */
export interface JudgedSplits {
  readonly rule: SplitRule;
  /** The words of the rule that was asked for, where the parts follow this one instead; null otherwise. */
  readonly instead: string | null;
  readonly parts: readonly JudgedPart[];
  /** Null without the LSE of each part, which the merge needs. */
  readonly merge: MergeJudgement | null;
}

/** Parts to judge. */
export interface SplitAudit {
  readonly problem: Problem;
  /** The outputs of the parts, by split, in canonical shapes. */
  readonly parts: readonly KernelOutputs[];
  /** The outputs that they were merged to. */
  readonly outputs: KernelOutputs;
  readonly request: Omit<SplitRequest, 'keys' | 'splits'>;
}

/** Number of keys of each sequence, or of each batch entry. */
function keysOf({ sequences }: Problem, { batch, keys }: { batch: number; keys: number }) {
  return sequences?.map((sequence) => sequence.keys) ?? new Array<number>(batch).fill(keys);
}

/** The problem of a part: the keys of its ranges, and no sink, which joins when parts are merged. */
function partProblem(problem: Problem, { ranges }: SplitRule, split: number): Problem {
  const { sink: _sink, stored: _stored, ...rest } = problem;
  void [_sink, _stored];
  return { ...rest, keyRanges: ranges[split] };
}

/** All parts in one array; with the sink as another part without value, where there is one. */
function partialResults(
  problem: Problem,
  given: readonly GivenOutputs[],
  withSink: boolean,
): PartialResults {
  const { batch, heads, queries, vDim } = problemShape(problem);
  const rows = batch * heads * queries;
  const { sink } = problem;
  const extra = sink === undefined || !withSink ? 0 : 1;
  const out = new Float64Array((given.length + extra) * rows * vDim);
  const lse = new Float64Array((given.length + extra) * rows);
  given.forEach((part, split) => {
    out.set(part.out.values, split * rows * vDim);
    lse.set(part.lse!.values, split * rows);
  });
  if (extra === 1) {
    const { data, format } = sink!.logits;
    const logits = decodeToFloat64(data, formats[format]);
    for (let row = 0; row < rows; row++)
      lse[given.length * rows + row] = logits[Math.floor(row / queries) % heads];
  }
  return { splits: given.length + extra, rows, dim: vDim, out, lse, layout: { heads, queries } };
}

/** Judges parts by a rule: all of them, or until one fails. */
function judgeParts(
  { problem, parts }: SplitAudit,
  rule: SplitRule,
  options: AuditOptions,
  untilFailure: boolean,
): Audit[] {
  const audits: Audit[] = [];
  for (const [split, outputs] of parts.entries()) {
    const audit = auditOutputs(partProblem(problem, rule, split), outputs, options);
    audits.push(audit);
    if (untilFailure && !audit.verdict.pass) break;
  }
  return audits;
}

/** Whether a part is wrong; a part that no test judges is not. */
function isWrong({ verdict }: Audit): boolean {
  return !verdict.pass && verdict.findings.length > 0;
}

/** Whether an output is wrong, as other keys make it; a wrong LSE alone has another cause. */
function isOutWrong({ verdict }: Audit): boolean {
  return verdict.findings.some(({ quantity }) => quantity === 'out');
}

/** Failing parts whose keys are looked for among those of the others: few, since each takes as many audits. */
const mostSearched = 4;

/** The part whose keys a failing one covers; null where there is none. */
function heldPart(
  { problem, parts }: SplitAudit,
  rule: SplitRule,
  split: number,
  options: AuditOptions,
): number | null {
  const own = JSON.stringify(rule.ranges[split]);
  const found = parts.findIndex(
    (_, other) =>
      JSON.stringify(rule.ranges[other]) !== own &&
      auditOutputs(partProblem(problem, rule, other), parts[split], options).verdict.pass,
  );
  return found < 0 ? null : found;
}

/** The merge of the parts beside the outputs. */
function judgeMerged(
  { problem, parts, outputs }: SplitAudit,
  { premises }: AuditOptions,
): MergeJudgement | null {
  if (parts.some(({ lse }) => lse === null)) return null;
  const shape = problemShape(problem);
  const given = parts.map((part) => decodeOutputs(part, shape));
  const { out, lse } = decodeOutputs(outputs, shape);
  return judgeMerge(
    partialResults(problem, given, true),
    { out, lse },
    partialResults(problem, given, problem.sink?.inLse === true),
    premises?.outputRounding ?? 'nearest',
  );
}

/**
 * Judges the parts of a split problem, each as a problem of its own on the keys of its split, and the merged outputs
 * beside their exact merge. Where parts fail by the keys that are assumed and all pass by another rule that kernels
 * divide keys by, they are judged by that.
 * @param options options of an audit; the parts share the rate of false alarms
 * @throws RequestError for no parts, for boundaries that do not fit, and for a tensor that does not fit the problem
 */
export function judgeSplits(of: SplitAudit, options: AuditOptions = {}): JudgedSplits {
  const { problem, parts } = of;
  if (parts.length === 0)
    throw new RequestError('there are no parts to judge; give the result of one split at least');
  const keys = keysOf(problem, problemShape(problem));
  const request: SplitRequest = { ...of.request, splits: parts.length, keys };
  const asked = requestedRule(request);
  const { falseAlarmRate = 1e-9 } = options;
  const own = { ...options, falseAlarmRate: falseAlarmRate / parts.length };
  const quick = { ...own, diagnose: false };
  const isAll = (audits: readonly Audit[]) =>
    audits.length === parts.length && audits.every(({ verdict }) => verdict.pass);
  const merge = judgeMerged(of, options);
  const found = (
    rule: SplitRule,
    audits: readonly Audit[],
    held: (split: number) => number | null,
  ) => ({
    rule,
    instead: rule === asked ? null : asked.words,
    parts: audits.map((audit, split) => ({ split, audit, holds: held(split) })),
    merge,
  });
  const first = judgeParts(of, asked, quick, false);
  if (!first.some(isWrong)) return found(asked, first, () => null);
  const rules = first.some(isOutWrong) ? otherRules(request, asked) : [];
  for (const rule of rules) {
    const audits = judgeParts(of, rule, quick, true);
    if (isAll(audits)) return found(rule, audits, () => null);
  }
  const audits = first.map((audit, split) =>
    !isWrong(audit) ? audit : auditOutputs(partProblem(problem, asked, split), parts[split], own),
  );
  const wrong = [...audits.keys()].filter((split) => isOutWrong(audits[split]));
  return found(asked, audits, (split) =>
    wrong.slice(0, mostSearched).includes(split) ? heldPart(of, asked, split, quick) : null,
  );
}
