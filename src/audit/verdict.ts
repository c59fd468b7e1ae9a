import type { Diagnosis } from './diagnosis/index.js';
import type { Coordinates } from './error-profile.js';
import type { ElementTest } from './element-test.js';
import type { LseTest } from './lse-test.js';
import { formatApart, formatNumber } from '../words/index.js';
import type { PremiseFit } from './premise-fit.js';
import type { SpreadTest } from './spread-test.js';
import { structureTests, type StructureResult, type StructureTest } from './structure.js';
import type { UntestedStructure } from './untested-structure.js';

/** One reason to fail a kernel. */
export interface Finding {
  /** Which test found it. */
  readonly test:
    | 'non-finite'
    | 'element-bound'
    | 'element-spread'
    | 'rms'
    | 'lse-non-finite'
    | 'lse-bound'
    | StructureTest;
  /** A sentence with the evidence. */
  readonly statement: string;
}

/** What an audit found, in one sentence and in full. */
export interface Verdict {
  readonly pass: boolean;
  /** One sentence: the verdict and its main reason. */
  readonly sentence: string;
  /** Every reason to fail; empty on a pass. */
  readonly findings: readonly Finding[];
  /** What caused the failure, `unexplained` where no known cause does; null on a pass, or unasked. */
  readonly diagnosis: Diagnosis | null;
  /** Whether anything of the output was held against a bound; without, there is no pass. */
  readonly judged: boolean;
  /** What kind of kernel would pass a failed audit, as far as its numbers tell; null where none is like it. */
  readonly premise: PremiseFit | null;
  /** What a reader should know beside, such as what an output's values look like; a clause each. */
  readonly notes: readonly string[];
  /** Tests that could not be made, and why: a pass says nothing of what they look for. */
  readonly untested: readonly UntestedStructure[];
}

/** What a verdict asks for once it knows that the audit fails. */
export interface Explainers {
  readonly diagnose: () => Diagnosis;
  readonly fitPremise: (findings: readonly Finding[]) => PremiseFit | null;
}

/** "head 3, query 17, column 5", with the batch when there is more than one. */
export function describePlace(at: Coordinates): string {
  const batch = at.batch === 0 ? '' : `batch ${at.batch}, `;
  const column = at.column === undefined ? '' : `, column ${at.column}`;
  return `${batch}head ${at.head}, query ${at.query}${column}`;
}

function percent(value: number): string {
  return `${formatNumber(Math.abs(value) * 100)} %`;
}

function groupName(
  result: Pick<StructureResult, 'scope' | 'head' | 'firstRow' | 'rows'>,
  heads: number,
): string {
  const batch = Math.floor(result.head / heads);
  const head = `${batch === 0 ? '' : `batch ${batch}, `}head ${result.head % heads}`;
  if (result.scope === 'head') return head;
  if (result.scope === 'row') return `${head}, query ${result.firstRow}`;
  return `${head}, queries ${result.firstRow} to ${result.firstRow + result.rows - 1}`;
}

const scopeOrder = ['head', 'tile', 'row'] as const;

/** The structure test's finding at its widest failing scope, or null when it passes. */
function structureFinding(
  test: StructureTest,
  results: readonly StructureResult[],
  heads: number,
): Finding | null {
  const failing = scopeOrder
    .map((scope) => results.find((result) => result.test === test && result.scope === scope))
    .find((result) => result !== undefined && Math.abs(result.statistic) > result.threshold);
  if (failing === undefined) return null;
  const where = groupName(failing, heads);
  return { test, statement: structureStatement[test](failing, where) };
}

/** What a failing structure test says. */
const structureStatement: Readonly<
  Record<StructureTest, (result: StructureResult, where: string) => string>
> = {
  scale: ({ statistic, threshold }, where) =>
    statistic <= -1 + 1e-9
      ? `the output is zero on ${where}`
      : `the output is ${percent(statistic)} ${statistic > 0 ? 'large' : 'small'} on ${where} (slope on the oracle ${(1 + statistic).toFixed(4)}; rounding explains 1 ± ${formatNumber(threshold)})`,
  bias: ({ statistic, threshold }, where) =>
    `the output is ${formatNumber(Math.abs(statistic))} too ${statistic > 0 ? 'high' : 'low'} on average on ${where}; rounding explains ± ${formatNumber(threshold)}`,
  truncation: ({ statistic, threshold }, where) =>
    `the output is rounded ${statistic < 0 ? 'towards' : 'away from'} zero on ${where}: it is ${formatNumber(Math.abs(statistic))} half ulps too ${statistic < 0 ? 'small' : 'large'} on average; rounding to nearest explains ± ${formatNumber(threshold)}`,
  dispersion: ({ statistic, threshold }, where) =>
    `the rows of ${where} are off by factors of their own, ${percent(statistic)} in the root mean square; rounding explains ${percent(threshold)}`,
  'lse-mean': ({ statistic, threshold }, where) =>
    `the LSE is ${formatNumber(Math.abs(statistic))} too ${statistic > 0 ? 'high' : 'low'} on average on ${where}; rounding explains ± ${formatNumber(threshold)}`,
  'key-tile': ({ statistic, threshold, firstKey, keys }, where) =>
    `on ${where} the error is ${formatNumber(Math.abs(statistic))} times what ${statistic > 0 ? 'leaving out' : 'counting twice'} keys ${firstKey} to ${firstKey! + keys! - 1} does to first order; rounding explains ± ${formatNumber(threshold)}`,
};

function elementFindings(elements: ElementTest, arithmetic: string): Finding[] {
  const findings: Finding[] = [];
  if (elements.nonFinite > 0)
    findings.push({
      test: 'non-finite',
      statement: `${elements.nonFinite} of ${elements.elements} elements are NaN or infinite where a correct kernel is not, or the reverse; the first at ${describePlace(elements.firstNonFinite!)}`,
    });
  if (elements.outside > 0) {
    const { at, error, bound } = elements.worst!;
    findings.push({
      test: 'element-bound',
      statement:
        bound === 0
          ? `${elements.outside} of ${elements.elements} elements are not zero where no key is visible, the largest ${formatNumber(error)} at ${describePlace(at)}`
          : `${elements.outside} of ${elements.elements} elements err by more than ${arithmetic} can; the worst, ${formatNumber(elements.worstRatio)} times its bound of ${formatNumber(bound)}, at ${describePlace(at)}`,
    });
  }
  return findings;
}

function spreadFindings(spread: SpreadTest, elements: ElementTest, heads: number): Finding[] {
  const findings: Finding[] = [];
  const failing = [...spread.results]
    .reverse()
    .find(({ measured, limit }) => measured > 0 && measured > limit);
  if (failing !== undefined) {
    const { measured, expected, limit } = failing;
    findings.push({
      test: 'rms',
      statement: `the root mean square error on ${groupName(failing, heads)} is ${formatNumber(measured)}, where roundings make ${formatNumber(expected)} and at most ${formatNumber(limit)}`,
    });
  }
  // Elements beyond the worst case are told of already.
  if (spread.outside > elements.outside) {
    const { at, error, bound } = spread.worst!;
    findings.push({
      test: 'element-spread',
      statement: `${spread.outside} of ${elements.elements} elements err by more than independent roundings add up to; the worst by ${formatNumber(error)}, where these make at most ${formatNumber(bound)}, at ${describePlace(at)}`,
    });
  }
  return findings;
}

function lseFindings(lse: LseTest): Finding[] {
  const findings: Finding[] = [];
  if (lse.nonFinite > 0) {
    const { at, lse: value, oracle } = lse.firstNonFinite!;
    findings.push({
      test: 'lse-non-finite',
      statement: `the LSE of ${lse.nonFinite} of ${lse.rows} rows is NaN or infinite where it must not be, or the reverse; first ${value} for ${oracle} at ${describePlace(at)}`,
    });
  }
  if (lse.outside > 0) {
    const { at, lse: value, oracle, bound } = lse.worst!;
    const kind =
      lse.looksLike === 'base-2'
        ? 'the LSE is in base 2: every row fits after a factor of ln 2'
        : lse.looksLike === 'offset'
          ? `the LSE is ${formatNumber(Math.abs(lse.mean))} too ${lse.mean > 0 ? 'high' : 'low'} on every row`
          : `the LSE of ${lse.outside} of ${lse.rows} rows is off`;
    const [found, exact] = formatApart(value, oracle);
    findings.push({
      test: 'lse-bound',
      statement: `${kind}; worst ${found} for ${exact} ± ${formatNumber(bound)} at ${describePlace(at)}`,
    });
  }
  return findings;
}

/** "FAIL: the cause." — or, where that is unknown, the finding that explains most. */
function failureSentence(
  first: Finding,
  diagnosis: Diagnosis | null,
  premise: PremiseFit | null,
): string {
  const declared =
    premise === null ? '' : ` ${premise.statement}; if that is what it is, say ${premise.flags}.`;
  if (diagnosis === null) return `FAIL: ${first.statement}.${declared}`;
  if (diagnosis.id !== 'unexplained') return `FAIL: ${diagnosis.sentence}.${declared}`;
  return premise === null
    ? `FAIL: ${first.statement}; the cause is unexplained.`
    : `FAIL: ${first.statement}.${declared}`;
}

/** What a verdict is reached from. */
export interface Evidence {
  readonly elements: ElementTest;
  readonly spread: SpreadTest;
  readonly structure: readonly StructureResult[];
  readonly untested: readonly UntestedStructure[];
  /** Null where no LSE was given. */
  readonly lse: LseTest | null;
  /** Heads per batch. */
  readonly heads: number;
  /** Whose bounds the elements were tested against, in words. */
  readonly arithmetic: string;
  /** What a reader should know beside. */
  readonly notes: readonly string[];
}

/** All findings, the one that explains most first. */
function findingsOf({
  elements,
  spread,
  structure,
  lse,
  heads,
  arithmetic,
}: Evidence): readonly Finding[] {
  const ofElements = elementFindings(elements, arithmetic);
  return [
    ...ofElements.filter(({ test }) => test === 'non-finite'),
    ...structureTests
      .filter((test) => test !== 'lse-mean')
      .map((test) => structureFinding(test, structure, heads)),
    ...ofElements.filter(({ test }) => test === 'element-bound'),
    ...spreadFindings(spread, elements, heads),
    ...(lse === null ? [] : lseFindings(lse)),
    structureFinding('lse-mean', structure, heads),
  ].filter((finding): finding is Finding => finding !== null);
}

/** "PASS: …", with how much of the output and of the LSE it says nothing about. */
function passSentence({ elements, lse }: Evidence): string {
  const isLseJudged = lse !== null && (lse.rows === 0 || lse.unbounded < lse.rows);
  const checked = isLseJudged ? 'the output and the LSE stay' : 'the output stays';
  const left = [
    elements.unbounded === 0
      ? ''
      : `${elements.unbounded} of ${elements.elements} elements have none`,
    lse === null || lse.unbounded === 0
      ? ''
      : isLseJudged
        ? `the LSE of ${lse.unbounded} of ${lse.rows} rows has none`
        : 'the LSE has none',
  ].filter((part) => part !== '');
  const used = `the worst element uses ${formatNumber(elements.worstRatio * 100)} % of its bound`;
  return `PASS: ${checked} within what rounding explains; ${[used, ...left].join('; ')}.`;
}

/**
 * Pass when every test passes. A fail gives its cause, which `diagnose` is then asked for, and the
 * findings, the one that explains most first: a wrong scale of a whole head before a bias, then
 * single elements, then the LSE; NaN and infinities before all.
 *
 * @param explainers asked once the audit fails; null where no cause is wanted
 */
export function reachVerdict(evidence: Evidence, explainers: Explainers | null): Verdict {
  const { elements, arithmetic, notes, untested } = evidence;
  const judged = elements.unbounded < elements.elements;
  const findings = findingsOf(evidence);
  const common = { findings, judged, notes, untested };
  if (findings.length > 0) {
    const diagnosis = explainers?.diagnose() ?? null;
    const premise = explainers?.fitPremise(findings) ?? null;
    const sentence = failureSentence(findings[0], diagnosis, premise);
    return { pass: false, sentence, diagnosis, premise, ...common };
  }
  const unexplained = { diagnosis: null, premise: null, ...common };
  if (judged) return { pass: true, sentence: passSentence(evidence), ...unexplained };
  return {
    pass: false,
    sentence:
      elements.elements === 0
        ? 'NOT JUDGED: the output has no elements.'
        : `NOT JUDGED: no element has a bound under the premises (${arithmetic}); scores, weights or sums leave the range of their formats everywhere.`,
    ...unexplained,
  };
}
