import { formatApart, formatNumber } from '../words/index.js';
import type { Quantity } from '../problem/index.js';
import type { JudgedNumbers, JudgedQuantity, JudgedVectors } from './judge-quantity.js';
import { describePlace } from './kernel-outputs.js';
import {
  type StructureResult,
  type StructureTest,
  structureTests,
} from './structure/structure-result.js';

/** The kind of a fault of a quantity: not a number, beyond its bound, beyond what roundings add up to. */
type Fault = 'non-finite' | 'bound' | 'spread' | 'rms';

/**
 * The test of a declared premise; test/audit/declared-faults.test.ts has the fault that it alone sees, which no size of an error
 * bounds.
 */
type DeclaredTest = 'premise';

/** Names of findings: a structure test's own, else the quantity's with the fault; the output's are bare. */
export type FindingTest =
  | 'non-finite'
  | 'element-bound'
  | 'element-spread'
  | 'rms'
  | DeclaredTest
  | StructureTest
  | `${string}-${Fault}`;

/** One reason to fail a kernel. */
export interface Finding {
  /** The name of the quantity that fails. */
  readonly quantity: string;
  /** The test that found it. */
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

/** The name of the finding of a fault. */
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

/** Statements of failing structure tests. */
const structureStatement: Readonly<
  Record<StructureTest, (result: StructureResult, where: string, what: string) => string>
> = {
  scale: ({ statistic, threshold }, where, what) =>
    Math.abs(1 + statistic) <= 1e-9
      ? `${what} is zero on ${where}`
      : statistic < -1
        ? `${what} runs against what it should be on ${where} (slope on the oracle ${(1 + statistic).toFixed(4)}; rounding explains 1 ± ${formatNumber(threshold)})`
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

/** Findings of vectors: NaN and infinities, then faults of the whole, then single elements, then their spread. */
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
          : `${elements.outside} of ${elements.elements} ${parts} err by more than ${arithmetic} can; the worst by ${formatNumber(error)} where at most ${formatNumber(bound)}, at ${describePlace(at)}`,
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

/** Findings of numbers: NaN and infinities, then single rows, then the error that all share. */
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

/**
 * All that the tests found wrong, quantity by quantity, the one that explains most first.
 * @param heads the number of heads of a batch
 * @param arithmetic the arithmetic whose bounds the elements were tested against, in words
 */
export function findingsOf(
  outputs: readonly JudgedQuantity[],
  heads: number,
  arithmetic: string,
): readonly Finding[] {
  return outputs
    .flatMap((judged) =>
      judged.row === 'vector'
        ? vectorFindings(judged, heads, arithmetic)
        : numberFindings(judged, heads),
    )
    .filter((finding) => finding !== null);
}
