import { formatApart, formatNumber } from '../words/index.js';
import type { Quantity } from '../problem/index.js';
import { gradientStatements } from './gradients/structure/gradient-statistic.js';
import type {
  JudgedNumbers,
  JudgedQuantity,
  JudgedStatistic,
  JudgedVectors,
} from './judge-quantity.js';
import { describePlace } from './kernel-outputs.js';
import { recurrentStatements } from './recurrent/recurrent-statistic.js';
import { describeRows, type Place } from './rows/index.js';
import { isBeyond, type RowsOfHead, type Statement } from './structure/error-statistic.js';
import { structureStatements } from './structure/structure-result.js';

/** The kind of a fault of a quantity: not a number, beyond its bound, beyond what roundings add up to. */
export type Fault = 'non-finite' | 'bound' | 'spread' | 'rms';

/**
 * The test of a declared premise; test/audit/declared-faults.test.ts has the fault that it alone sees, which no size of an error
 * bounds.
 */
type DeclaredTest = 'premise';

/** Names of findings: the fault or the test, in most cases behind the name of the quantity. */
export type FindingTest =
  | 'non-finite'
  | 'element-bound'
  | 'element-spread'
  | 'rms'
  | DeclaredTest
  | JudgedStatistic['test']
  | `${string}-${Fault | JudgedStatistic['test']}`;

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

/** The words that the findings of some quantities differ by from those of others. */
export interface FindingWords {
  /** The arithmetic whose bounds the elements were tested against. */
  readonly arithmetic: string;
  /** The reason why elements with a bound of 0 must be zero. */
  readonly zeros: string;
  /** Whether the findings of statistics are named after their quantity, and not after their test alone. */
  readonly prefixesTests: boolean;
  /** Whether rows of a sample are told by their number too. */
  readonly countsRows: boolean;
  /** The clause on a column whose sum is off, by the name of its quantity; none where there are no such sums. */
  readonly sums: Readonly<Partial<Record<string, string>>>;
}

/** The words of findings of a kernel's outputs, but for the arithmetic. */
export const outputWords: Omit<FindingWords, 'arithmetic'> = {
  zeros: 'where no key is visible',
  prefixesTests: false,
  countsRows: true,
  sums: {},
};

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

function rowsOf(rows: RowsOfHead, judged: JudgedQuantity, { countsRows }: FindingWords): string {
  return describeRows(rows, judged.quantity, judged.heads, countsRows ? rows.rows : null);
}

const scopeOrder = ['head', 'tile', 'row'] as const;

/** Statements on failing statistics, in the order of their findings. */
const statisticStatement: Readonly<Record<JudgedStatistic['test'], Statement>> = {
  ...structureStatements,
  ...gradientStatements,
  ...recurrentStatements,
};

const statisticTests = Object.keys(statisticStatement) as JudgedStatistic['test'][];

/** What a statistic that fails says. */
function statementOf(
  failing: JudgedStatistic,
  judged: JudgedQuantity,
  words: FindingWords,
): string {
  const { name, prose } = judged.quantity;
  const sum = words.sums[name] ?? `the sum of ${prose} is off`;
  return statisticStatement[failing.test](failing, rowsOf(failing, judged, words), prose, sum);
}

/** Where no more than one in so many rows of some heads err, the statistic of one row says more than that of a head. */
const fewRows = 8;

/**
 * What the test of a finding says of the single row, or the tile, that is worst, where few rows of their heads err: a statistic of
 * the whole head thins their errors out. Null where more rows err, or the test has no such result.
 */
export function localStatement(
  { quantity, test }: Finding,
  all: readonly JudgedQuantity[],
  words: FindingWords,
  { rows }: Place,
): string | null {
  const judged = all.find((one) => one.quantity.name === quantity);
  if (judged === undefined || rows === null || rows.count * fewRows > rows.of) return null;
  const narrow = (['row', 'tile'] as const)
    .map((scope) => judged.structure.find((one) => one.test === test && one.scope === scope))
    .find((result) => result !== undefined && isBeyond(result));
  return narrow === undefined ? null : statementOf(narrow, judged, words);
}

/** The findings of failing statistics: for each test its widest failing scope. */
function statisticFindings(judged: JudgedQuantity, words: FindingWords): Finding[] {
  const { quantity, structure } = judged;
  const { name } = quantity;
  return statisticTests.flatMap((test) => {
    const failing = scopeOrder
      .map((scope) => structure.find((result) => result.test === test && result.scope === scope))
      .find((result) => result !== undefined && isBeyond(result));
    if (failing === undefined) return [];
    const statement = statementOf(failing, judged, words);
    const named: FindingTest = words.prefixesTests ? `${name}-${test}` : test;
    return [{ quantity: name, test: named, isWorstCase: false, statement }];
  });
}

/** Findings of elements: NaN and infinities, then faults of the whole, then single elements, then their spread. */
function elementFindings(judged: JudgedVectors<JudgedStatistic>, words: FindingWords): Finding[] {
  const { elements, quantity } = judged;
  const { parts } = quantity;
  const findings: Finding[] = [];
  if (elements.nonFinite > 0)
    findings.push(
      finding(
        judged,
        'non-finite',
        `${elements.nonFinite} of ${elements.elements} ${parts} are NaN or infinite where a correct kernel is not, or the reverse; the first at ${describePlace(elements.firstNonFinite!)}`,
      ),
    );
  findings.push(...statisticFindings(judged, words));
  if (elements.outside > 0) {
    const { at, error, bound } = elements.worst!;
    findings.push(
      finding(
        judged,
        'bound',
        bound === 0
          ? `${elements.outside} of ${elements.elements} ${parts} are not zero ${words.zeros}, the largest ${formatNumber(error)} at ${describePlace(at)}`
          : `${elements.outside} of ${elements.elements} ${parts} err by more than ${words.arithmetic} can; the worst by ${formatNumber(error)} where at most ${formatNumber(bound)}, at ${describePlace(at)}`,
      ),
    );
  }
  return [...findings, ...spreadFindings(judged, words)];
}

function spreadFindings(judged: JudgedVectors<JudgedStatistic>, words: FindingWords): Finding[] {
  const { elements, spread, quantity } = judged;
  const findings: Finding[] = [];
  const failing = [...spread.results].reverse().find(({ measured, limit }) => measured > limit);
  if (failing !== undefined) {
    const { measured, expected, limit } = failing;
    const what = quantity.name === 'out' ? 'error' : `error of ${quantity.prose}`;
    findings.push(
      finding(
        judged,
        'rms',
        `the root mean square ${what} on ${rowsOf(failing, judged, words)} is ${formatNumber(measured)}, where roundings make ${formatNumber(expected)} and at most ${formatNumber(limit)}`,
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
function numberFindings(judged: JudgedNumbers<JudgedStatistic>, words: FindingWords): Finding[] {
  const { numbers, quantity } = judged;
  const { prose, parts } = quantity;
  const findings: Finding[] = [];
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
  return [...findings, ...statisticFindings(judged, words)];
}

/** All that the tests found wrong, quantity by quantity, the finding that explains most first. */
export function findingsOf(
  judged: readonly JudgedQuantity[],
  words: FindingWords,
): readonly Finding[] {
  return judged.flatMap((one) =>
    one.row === 'vector' ? elementFindings(one, words) : numberFindings(one, words),
  );
}
