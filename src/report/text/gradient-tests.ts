import {
  describeRows,
  describePlace,
  judgedGradients,
  type ElementTest,
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

/** Every test of a gradient that takes part in the verdict. */
function rowsOf(gradient: ReportedGradient): TestRow[] {
  const { label, name, heads } = gradient;
  const quantity = judgedGradients.find((one) => one.name === name)!;
  const { worst, nonFinite, firstNonFinite } = fromReported<ElementTest>(gradient.elements);
  const spread = fromReported<SpreadTest>(gradient.spread);
  const where = (place: Parameters<typeof describeRows>[0]) => describeRows(place, quantity, heads);
  const row = (test: string, scope: string | null, [found, allowed]: [number, number]) => ({
    test: `${label} ${test}`,
    isStatistical: test !== 'element',
    label: `${label} ${test}${scope === null ? '' : `, ${scope}`}`,
    found,
    allowed,
  });
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
    ...(worst === null
      ? []
      : [{ ...row('element', null, [worst.error, worst.bound]), place: describePlace(worst.at) }]),
    ...(spread.worst === null
      ? []
      : [
          {
            ...row('spread', null, [spread.worst.error, spread.worst.bound]),
            place: describePlace(spread.worst.at),
          },
        ]),
    ...spread.results.map((result) => ({
      ...row('rms', result.scope, [result.measured, result.limit]),
      place: where(result),
    })),
    ...fromReported<readonly GradientStatistic[]>(gradient.structure).map((one) => ({
      ...row(one.test, one.scope, [one.statistic, one.threshold]),
      place: `${where(one)}${one.column === null ? '' : `, column ${one.column}`}: ${sumWords[one.test]}`,
    })),
  ];
}

/** Every test of every gradient that takes part in the verdict. */
export function gradientTestRows({ gradients }: Pick<AuditReport, 'gradients'>): TestRow[] {
  return (gradients?.gradients ?? []).flatMap(rowsOf);
}

function shareCell(share: number): Cell {
  return share > 1 ? { text: formatShare(share), tone: 'failure' } : formatShare(share);
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
    ...rowsOf(gradient).map(({ label, found, allowed, place }): Cell[] =>
      allowed === null
        ? [`  ${label}`, { text: String(found), tone: 'failure' }, '0', '', place]
        : [
            `  ${label}`,
            formatNumber(found),
            formatNumber(allowed),
            shareCell(shareUsed(found, allowed)),
            place,
          ],
    ),
    ...ruleRow(gradient),
  ]);
  return {
    rows: [[heading('Tests of gradients'), 'found', 'allowed', 'used', 'worst at'], ...rows],
    numberColumns: 3,
  };
}
