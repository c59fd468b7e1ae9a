import type { Diagnosis } from './diagnosis/index.js';
import { formatApart, formatNumber } from '../words/index.js';
import type { PremiseFit } from './premises/premise-fit.js';
import {
  type StructureResult,
  type StructureTest,
  structureTests,
  type UntestedStructure,
} from './structure/structure-result.js';
import type { JudgedNumbers, JudgedQuantity, JudgedVectors } from './judge-quantity.js';
import { describePlace } from './kernel-outputs.js';
import type { Quantity } from '../problem/index.js';

/** What of a quantity was found wrong: not a number, beyond its bound, beyond what roundings add up to. */
type Fault = 'non-finite' | 'bound' | 'spread' | 'rms';

/** Names of findings: a structure test's own, else the quantity's with the fault; the output's are bare. */
export type FindingTest =
  'non-finite' | 'element-bound' | 'element-spread' | 'rms' | StructureTest | `${string}-${Fault}`;

/** One reason to fail a kernel. */
export interface Finding {
  /** The name of the quantity that fails. */
  readonly quantity: string;
  /** Which test found it. */
  readonly test: FindingTest;
  /** Whether it holds for any roundings, however they depend on one another. */
  readonly isWorstCase: boolean;
  /** A sentence with the evidence. */
  readonly statement: string;
}

const ofOutput: Readonly<Record<Fault, FindingTest>> = {
  'non-finite': 'non-finite',
  bound: 'element-bound',
  spread: 'element-spread',
  rms: 'rms',
};

/** What the finding of a fault is called. */
export function findingTest({ name }: Pick<Quantity, 'name'>, fault: Fault): FindingTest {
  return name === 'out' ? ofOutput[fault] : `${name}-${fault}`;
}

function finding({ quantity }: JudgedQuantity, fault: Fault, statement: string): Finding {
  return {
    quantity: quantity.name,
    test: findingTest(quantity, fault),
    isWorstCase: fault === 'non-finite' || fault === 'bound',
    statement,
  };
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

function percent(value: number): string {
  return `${formatNumber(Math.abs(value) * 100)} %`;
}

function groupName(
  result: Pick<StructureResult, 'scope' | 'head' | 'firstRow' | 'rows' | 'lastRow'>,
  heads: number,
): string {
  const { scope, firstRow, rows, lastRow } = result;
  const batch = Math.floor(result.head / heads);
  const head = `${batch === 0 ? '' : `batch ${batch}, `}head ${result.head % heads}`;
  if (scope === 'row') return `${head}, query ${firstRow}`;
  if (lastRow - firstRow + 1 === rows)
    return scope === 'head' ? head : `${head}, queries ${firstRow} to ${firstRow + rows - 1}`;
  const sampled = `${rows} sampled queries`;
  return `${head}, ${sampled}${scope === 'head' ? '' : ` from ${firstRow} to ${lastRow}`}`;
}

const scopeOrder = ['head', 'tile', 'row'] as const;

/** The structure test's finding at its widest failing scope, or null when it passes. */
function structureFinding(
  test: StructureTest,
  { quantity, structure }: JudgedQuantity,
  heads: number,
): Finding | null {
  const failing = scopeOrder
    .map((scope) => structure.find((result) => result.test === test && result.scope === scope))
    .find((result) => result !== undefined && Math.abs(result.statistic) > result.threshold);
  if (failing === undefined) return null;
  const statement = structureStatement[test](failing, groupName(failing, heads), quantity.prose);
  return { quantity: quantity.name, test, isWorstCase: false, statement };
}

/** What a failing structure test says. */
const structureStatement: Readonly<
  Record<StructureTest, (result: StructureResult, where: string, what: string) => string>
> = {
  scale: ({ statistic, threshold }, where, what) =>
    statistic <= -1 + 1e-9
      ? `${what} is zero on ${where}`
      : `${what} is ${percent(statistic)} ${statistic > 0 ? 'large' : 'small'} on ${where} (slope on the oracle ${(1 + statistic).toFixed(4)}; rounding explains 1 ± ${formatNumber(threshold)})`,
  bias: ({ statistic, threshold }, where, what) =>
    `${what} is ${formatNumber(Math.abs(statistic))} too ${statistic > 0 ? 'high' : 'low'} on average on ${where}; rounding explains ± ${formatNumber(threshold)}`,
  truncation: ({ statistic, threshold }, where, what) =>
    `${what} is rounded ${statistic < 0 ? 'towards' : 'away from'} zero on ${where}: it is ${formatNumber(Math.abs(statistic))} half ulps too ${statistic < 0 ? 'small' : 'large'} on average; rounding to nearest explains ± ${formatNumber(threshold)}`,
  dispersion: ({ statistic, threshold }, where) =>
    `the rows of ${where} are off by factors of their own, ${percent(statistic)} in the root mean square; rounding explains ${percent(threshold)}`,
  'lse-mean': ({ statistic, threshold }, where, what) =>
    `${what} is ${formatNumber(Math.abs(statistic))} too ${statistic > 0 ? 'high' : 'low'} on average on ${where}; rounding explains ± ${formatNumber(threshold)}`,
  'key-tile': ({ statistic, threshold, firstKey, keys }, where) =>
    `on ${where} the error is ${formatNumber(Math.abs(statistic))} times what ${statistic > 0 ? 'leaving out' : 'counting twice'} keys ${firstKey} to ${firstKey! + keys! - 1} does to first order; rounding explains ± ${formatNumber(threshold)}`,
};

/** Of vectors: NaN and infinities, then what fails as a whole, then single elements, then their spread. */
function vectorFindings(judged: JudgedVectors, heads: number, arithmetic: string) {
  const { elements, quantity } = judged;
  const { parts } = quantity;
  const findings: (Finding | null)[] = [];
  if (elements.nonFinite > 0)
    findings.push(
      finding(
        judged,
        'non-finite',
        `${elements.nonFinite} of ${elements.elements} ${parts} are NaN or infinite where a correct kernel is not, or the reverse; the first at ${describePlace(elements.firstNonFinite!)}`,
      ),
    );
  findings.push(...structureTests.map((test) => structureFinding(test, judged, heads)));
  if (elements.outside > 0) {
    const { at, error, bound } = elements.worst!;
    findings.push(
      finding(
        judged,
        'bound',
        bound === 0
          ? `${elements.outside} of ${elements.elements} ${parts} are not zero where no key is visible, the largest ${formatNumber(error)} at ${describePlace(at)}`
          : `${elements.outside} of ${elements.elements} ${parts} err by more than ${arithmetic} can; the worst, ${formatNumber(elements.worstRatio)} times its bound of ${formatNumber(bound)}, at ${describePlace(at)}`,
      ),
    );
  }
  return [...findings, ...spreadFindings(judged, heads)];
}

function spreadFindings(judged: JudgedVectors, heads: number): Finding[] {
  const { elements, spread, quantity } = judged;
  const findings: Finding[] = [];
  const failing = [...spread.results]
    .reverse()
    .find(({ measured, limit }) => measured > 0 && measured > limit);
  if (failing !== undefined) {
    const { measured, expected, limit } = failing;
    const what = quantity.name === 'out' ? 'error' : `error of ${quantity.prose}`;
    findings.push(
      finding(
        judged,
        'rms',
        `the root mean square ${what} on ${groupName(failing, heads)} is ${formatNumber(measured)}, where roundings make ${formatNumber(expected)} and at most ${formatNumber(limit)}`,
      ),
    );
  }
  // Another finding reports the elements beyond the worst case.
  if (spread.outside > elements.outside) {
    const { at, error, bound } = spread.worst!;
    findings.push(
      finding(
        judged,
        'spread',
        `${spread.outside} of ${elements.elements} ${quantity.parts} err by more than independent roundings add up to; the worst by ${formatNumber(error)}, where these make at most ${formatNumber(bound)}, at ${describePlace(at)}`,
      ),
    );
  }
  return findings;
}

/** Of numbers: NaN and infinities, then single rows, then what all have in common. */
function numberFindings(judged: JudgedNumbers, heads: number) {
  const { numbers, quantity } = judged;
  const { prose, parts } = quantity;
  const findings: (Finding | null)[] = [];
  if (numbers.nonFinite > 0) {
    const { at, value, oracle } = numbers.firstNonFinite!;
    findings.push(
      finding(
        judged,
        'non-finite',
        `${prose} of ${numbers.nonFinite} of ${numbers.rows} ${parts} is NaN or infinite where it must not be, or the reverse; first ${value} for ${oracle} at ${describePlace(at)}`,
      ),
    );
  }
  if (numbers.outside > 0) {
    const { at, value, oracle, bound } = numbers.worst!;
    const kind =
      numbers.looksLike === 'base-2'
        ? `${prose} is in base 2: every row fits after a factor of ln 2`
        : numbers.looksLike === 'offset'
          ? `${prose} is ${formatNumber(Math.abs(numbers.mean))} too ${numbers.mean > 0 ? 'high' : 'low'} on every row`
          : `${prose} of ${numbers.outside} of ${numbers.rows} ${parts} is off`;
    const [found, exact] = formatApart(value, oracle);
    findings.push(
      finding(
        judged,
        'bound',
        `${kind}; worst ${found} for ${exact} ± ${formatNumber(bound)} at ${describePlace(at)}`,
      ),
    );
  }
  return [...findings, ...structureTests.map((test) => structureFinding(test, judged, heads))];
}

/** "FAIL: the cause." — or, where that is unknown, the finding that explains most. */
function failureSentence(
  first: Finding,
  diagnosis: Diagnosis | null,
  premise: PremiseFit | null,
  sampled: string,
): string {
  const of = sampled === '' ? '' : ` (judged: ${sampled})`;
  const declared =
    premise === null ? '' : ` ${premise.statement}; if that is what it is, say ${premise.flags}.`;
  if (diagnosis === null) return `FAIL: ${first.statement}${of}.${declared}`;
  if (diagnosis.id !== 'unexplained') return `FAIL: ${diagnosis.sentence}${of}.${declared}`;
  return premise === null
    ? `FAIL: ${first.statement}${of}; the cause is unexplained.`
    : `FAIL: ${first.statement}${of}.${declared}`;
}

/** What a verdict is reached from. */
interface Evidence {
  /** In the order in which the report lists them; the first is what the kernel is for. */
  readonly outputs: readonly JudgedQuantity[];
  readonly untested: readonly UntestedStructure[];
  /** Heads per batch. */
  readonly heads: number;
  /** Whose bounds the elements were tested against, in words. */
  readonly arithmetic: string;
  /** What a reader should know beside. */
  readonly notes: readonly string[];
  /** How many rows were judged of how many, where those are not all. */
  readonly sample: { readonly rows: number; readonly of: number } | null;
}

/** "4096 sampled rows of 4194304"; '' where all rows are judged. */
function sampledRows({ sample }: Evidence): string {
  return sample === null ? '' : `${sample.rows} sampled rows of ${sample.of}`;
}

/** All findings, quantity by quantity, the one that explains most first. */
function findingsOf({ outputs, heads, arithmetic }: Evidence): readonly Finding[] {
  return outputs
    .flatMap((judged) =>
      judged.row === 'vector'
        ? vectorFindings(judged, heads, arithmetic)
        : numberFindings(judged, heads),
    )
    .filter((finding) => finding !== null);
}

/** How much of a quantity there is, and how much of that has no bound. */
function extentOf(judged: JudgedQuantity): { readonly all: number; readonly unbounded: number } {
  const { unbounded } = judged.row === 'vector' ? judged.elements : judged.numbers;
  return { all: judged.values.length, unbounded };
}

/** Whether anything of a quantity was held against a bound, or there is nothing of it. */
function isJudged(judged: JudgedQuantity): boolean {
  const { all, unbounded } = extentOf(judged);
  return all === 0 || unbounded < all;
}

/** What of a quantity has no bound, in a clause; '' where all of it has one. */
function leftClause(judged: JudgedQuantity): string {
  const { all, unbounded } = extentOf(judged);
  const { prose, parts, row } = judged.quantity;
  if (unbounded === 0) return '';
  if (row === 'vector') return `${unbounded} of ${all} ${parts} have none`;
  return isJudged(judged)
    ? `${prose} of ${unbounded} of ${all} ${parts} has none`
    : `${prose} has none`;
}

/** "PASS: …", with how much of each quantity it says nothing about. */
function passSentence(evidence: Evidence): string {
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
  const left = outputs.map(leftClause).filter((part) => part !== '');
  const sampled = sampledRows(evidence);
  const where = sampled === '' ? '' : ` in ${sampled}`;
  return `PASS: ${listed} ${stay} within what rounding explains${where}; ${[used, ...left].join('; ')}.`;
}

/**
 * Pass when every test passes. A fail gives its cause, which `diagnose` is then asked for, and the
 * findings, the one that explains most first: a wrong scale of a whole head before a bias, then
 * single elements, then the LSE; NaN and infinities before all.
 *
 * @param explainers asked once the audit fails; null where no cause is wanted
 */
export function reachVerdict(evidence: Evidence, explainers: Explainers | null): Verdict {
  const { outputs, arithmetic, notes, untested } = evidence;
  const [main] = outputs;
  const { all, unbounded } = extentOf(main);
  const judged = unbounded < all;
  const findings = findingsOf(evidence);
  const common = { findings, judged, notes, untested };
  if (findings.length > 0) {
    const diagnosis = explainers?.diagnose() ?? null;
    const premise = explainers?.fitPremise(findings) ?? null;
    const sentence = failureSentence(findings[0], diagnosis, premise, sampledRows(evidence));
    return { pass: false, sentence, diagnosis, premise, ...common };
  }
  const unexplained = { diagnosis: null, premise: null, ...common };
  if (judged) return { pass: true, sentence: passSentence(evidence), ...unexplained };
  return {
    pass: false,
    sentence:
      all === 0
        ? `NOT JUDGED: ${main.quantity.prose} has no elements.`
        : `NOT JUDGED: no element has a bound under the premises (${arithmetic}); scores, weights or sums leave the range of their formats everywhere.`,
    ...unexplained,
  };
}
