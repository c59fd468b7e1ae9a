import {
  describeRows,
  describePlace,
  judgedGradients,
  type ElementTest,
  type ErrorStatistic,
  type GradientRule,
  type GradientStatistic,
  type SpreadTest,
} from '../../audit/index.js';
import { formatNumber, formatShare, shareUsed } from '../../words/index.js';
import { fromReported, type AuditReport, type ReportedGradient } from '../json/index.js';
import { heading, type Cell, type Section } from '../layout/index.js';
import type { TestRow } from './test-words.js';

const sumWords: Readonly<Record<GradientStatistic['test'], string>> = {
  scale: 'slope on the exact gradient, less 1',
  sum: "error of a column's sum",
  pairing: '⟨Q, dQ⟩ less ⟨K, dK⟩, of the sizes of their terms',
};

/** A judged quantity whose tests are named by its label. */
type LabelledTests = Pick<ReportedGradient, 'label' | 'elements' | 'spread'>;

/** A row of a test of a labelled quantity, but for its place. */
function labelledRow(
  label: string,
  test: string,
  scope: string | null,
  [found, allowed]: [number, number],
): Omit<TestRow, 'place'> {
  return {
    test: `${label} ${test}`,
    isStatistical: test !== 'element',
    label: `${label} ${test}${scope === null ? '' : `, ${scope}`}`,
    found,
    allowed,
  };
}

/** A statistic of a labelled quantity, as a row. */
export function statisticRow(
  label: string,
  {
    test,
    scope,
    statistic,
    threshold,
  }: Pick<ErrorStatistic, 'test' | 'scope' | 'statistic' | 'threshold'>,
  place: string,
): TestRow {
  return { ...labelledRow(label, test, scope, [statistic, threshold]), place };
}

/**
 * The tests of elements and of their spread of a labelled quantity that take part in the verdict.
 * @param where the rows of a scope in words
 */
export function elementTestRows(
  { label, elements, spread }: LabelledTests,
  where: (place: Parameters<typeof describeRows>[0]) => string,
): TestRow[] {
  const { worst, nonFinite, firstNonFinite } = fromReported<ElementTest>(elements);
  const spreads = fromReported<SpreadTest>(spread);
  const worstOf = (test: string, found: SpreadTest['worst']): TestRow[] =>
    found === null
      ? []
      : [
          {
            ...labelledRow(label, test, null, [found.error, found.bound]),
            place: describePlace(found.at),
          },
        ];
  return [
    ...(firstNonFinite === null
      ? []
      : [
          {
            test: `${label} not finite`,
            isStatistical: false,
            label: `${label} not finite`,
            found: nonFinite,
            allowed: null,
            place: describePlace(firstNonFinite),
          },
        ]),
    ...worstOf('element', worst),
    ...worstOf('spread', spreads.worst),
    ...spreads.results.map((result) => ({
      ...labelledRow(label, 'rms', result.scope, [result.measured, result.limit]),
      place: where(result),
    })),
  ];
}

/** Every test of a gradient that takes part in the verdict. */
function rowsOf(gradient: ReportedGradient): TestRow[] {
  const { label, name, heads } = gradient;
  const quantity = judgedGradients.find((one) => one.name === name)!;
  const where = (place: Parameters<typeof describeRows>[0]) => describeRows(place, quantity, heads);
  return [
    ...elementTestRows(gradient, where),
    ...fromReported<readonly GradientStatistic[]>(gradient.structure).map((one) =>
      statisticRow(
        label,
        one,
        `${where(one)}${one.column === null ? '' : `, column ${one.column}`}: ${sumWords[one.test]}`,
      ),
    ),
  ];
}

/** Every test of every gradient that takes part in the verdict. */
export function gradientTestRows({ gradients }: Pick<AuditReport, 'gradients'>): TestRow[] {
  return (gradients?.gradients ?? []).flatMap(rowsOf);
}

function shareCell(share: number): Cell {
  return share > 1 ? { text: formatShare(share), tone: 'failure' } : formatShare(share);
}

/** The cells of a test of a labelled quantity: found, allowed, used, and its place. */
export function labelledCells({ label, found, allowed, place }: TestRow): Cell[] {
  return allowed === null
    ? [`  ${label}`, { text: String(found), tone: 'failure' }, '0', '', place]
    : [
        `  ${label}`,
        formatNumber(found),
        formatNumber(allowed),
        shareCell(shareUsed(found, allowed)),
        place,
      ];
}

/** The result of FlashAttention's rule, which decides nothing. */
function ruleRow({ label, flashAttention }: ReportedGradient): Cell[][] {
  if (flashAttention === null) return [];
  const rule = fromReported<GradientRule>(flashAttention);
  return [
    [
      `  ${label} FlashAttention's rule`,
      formatNumber(rule.maxError),
      formatNumber(rule.allowance),
      formatShare(shareUsed(rule.maxError, rule.allowance)),
      `${formatNumber(rule.lowPrecisionMaxError)} in textbook gradients; decides nothing`,
    ],
  ];
}

/** Every test of every gradient: found, allowed, used, and its place. */
export function gradientTestsSection({ gradients }: AuditReport): Section {
  const rows = (gradients?.gradients ?? []).flatMap((gradient): Cell[][] => [
    ...rowsOf(gradient).map(labelledCells),
    ...ruleRow(gradient),
  ]);
  return {
    rows: [[heading('Tests of gradients'), 'found', 'allowed', 'used', 'worst at'], ...rows],
    numberColumns: 3,
  };
}
