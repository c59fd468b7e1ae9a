import {
  describeRows,
  type ElementTest,
  type JudgedRecurrence,
  type RecurrentIdentity,
  type SpreadTest,
} from '../../../audit/index.js';
import { formatNumber, formatUse, plainText, shareUsed } from '../../../words/index.js';
import {
  describeHeadSample,
  describeReportedRecurrence,
  describeUnsampledHeads,
  fromReported,
  type RecurrentReport,
  type ReportedRecurrentQuantity,
} from '../../json/index.js';
import { heading, type Cell, type Section } from '../../layout/index.js';
import {
  clauseList,
  findingLines,
  inputBlock,
  otherFindingLines,
  verdictLines,
  type AuditRenderOptions,
} from '../audit.js';
import { notesSection, warningsSection } from '../audit-summary.js';
import { failedRowsSection } from '../audit-tests.js';
import { failureSection } from '../failure.js';
import { elementTestRows, labelledCells, statisticRow } from '../gradient-tests.js';
import { joinBlocks, settingOf } from '../setting.js';
import type { TestRow } from '../test-words.js';

/** Every test of a quantity that takes part in the verdict. */
function rowsOf(quantity: ReportedRecurrentQuantity): TestRow[] {
  const { label, heads, rowWord } = quantity;
  const axes = ['batch', 'heads', 'queries', 'vDim'] as const;
  const where = (place: Parameters<typeof describeRows>[0]) =>
    describeRows(place, { axes, rowWord }, heads);
  return [
    ...elementTestRows(quantity, where),
    ...fromReported<JudgedRecurrence['structure']>(quantity.structure).map((one) =>
      statisticRow(label, one, where(one)),
    ),
  ];
}

/** "⟨dO, O⟩ = ⟨dQ, Q⟩". */
function identityName({ sides }: Pick<RecurrentIdentity, 'sides'>): string {
  return sides.join(' = ');
}

/** The worst of each kind of identity, those of the first kinds first. */
function worstIdentities({ identities }: RecurrentReport): RecurrentIdentity[] {
  const use = ({ statistic, threshold }: RecurrentIdentity) =>
    shareUsed(Math.abs(statistic), threshold);
  const worst = new Map<string, RecurrentIdentity>();
  for (const one of fromReported<readonly RecurrentIdentity[]>(identities)) {
    const known = worst.get(identityName(one));
    if (known === undefined || use(one) > use(known)) worst.set(identityName(one), one);
  }
  return [...worst.values()];
}

function identityPlace({ entry, keyHead }: RecurrentIdentity): string {
  return `${entry === 0 ? '' : `batch ${entry}, `}head ${keyHead}`;
}

/** The largest share of its limit that a statistical test of a quantity uses; 0 where there is none. */
function statisticShare(quantity: ReportedRecurrentQuantity): number {
  const rows = rowsOf(quantity).filter(({ isStatistical }) => isStatistical);
  return Math.max(0, ...rows.map(({ found, allowed }) => shareUsed(Math.abs(found), allowed ?? 0)));
}

/** A share that is written out; smaller ones are no more than that. */
const leastShare = 1e-4;

function useText(share: number): string {
  return share > 0 && share < leastShare ? `<${formatUse(leastShare)}` : formatUse(share);
}

function useCell(share: number): Cell {
  return share > 1 ? { text: useText(share), tone: 'failure' } : useText(share);
}

/** The quantities, a row each: elements, those outside, the use of bounds, errors, and the nearest statistic; null where the kernel gave none. */
export function recurrentSection({ quantities }: RecurrentReport): Section | null {
  if (quantities.length === 0) return null;
  return {
    rows: [
      [heading('Judged'), 'elements', 'outside', 'worst', 'median', 'rms', 'expected', 'tests'],
      ...quantities.map((quantity): Cell[] => {
        const { elements, outside, nonFinite, worstRatio, medianRatio } = fromReported<ElementTest>(
          quantity.elements,
        );
        const { measured, expected } = fromReported<SpreadTest>(quantity.spread);
        const wrong = outside + nonFinite;
        return [
          `  ${quantity.label}`,
          String(elements),
          wrong > 0 ? { text: String(wrong), tone: 'failure' } : '0',
          useCell(worstRatio),
          useText(medianRatio),
          formatNumber(measured),
          formatNumber(expected),
          useCell(statisticShare(quantity)),
        ];
      }),
    ],
    numberColumns: 7,
  };
}

/** Sums that are one number in exact arithmetic, the worst of each kind; null where none are judged. */
export function identitiesSection(report: RecurrentReport): Section | null {
  const worst = worstIdentities(report);
  if (worst.length === 0) return null;
  return {
    rows: [
      [heading('Identities'), 'difference', 'allowed', 'used', 'worst at'],
      ...worst.map((one): Cell[] => [
        `  ${identityName(one)}`,
        formatNumber(one.statistic),
        formatNumber(one.threshold),
        useCell(shareUsed(Math.abs(one.statistic), one.threshold)),
        identityPlace(one),
      ]),
    ],
    numberColumns: 3,
  };
}

/** Every test of every quantity: found, allowed, used, and its place; null where there are none. */
export function recurrentTestsSection({ quantities }: RecurrentReport): Section | null {
  if (quantities.length === 0) return null;
  return {
    rows: [
      [heading('Tests'), 'found', 'allowed', 'used', 'worst at'],
      ...quantities.flatMap(rowsOf).map(labelledCells),
    ],
    numberColumns: 3,
  };
}

/** The tests that fail by most; null where none does. */
export function failedRecurrentTests({ quantities }: RecurrentReport): Section | null {
  return failedRowsSection(quantities.flatMap(rowsOf), {});
}

/** The basis on which a kernel of linear attention was judged; null where it gave nothing to judge. */
export function recurrentNotes({ arithmetic, falseAlarmRate }: RecurrentReport): string | null {
  if (arithmetic === null || falseAlarmRate === null) return null;
  return `Worst and median are shares of bounds, those of ${plainText(arithmetic)}; tests is the largest share of its limit that a statistical test uses; false alarms of these: ${falseAlarmRate} at most.`;
}

/** The heads that are judged, and those left out; null where all are judged. */
export function headSampleSection({ sample, problem }: RecurrentReport): Section | null {
  if (sample === null) return null;
  return {
    rows: [
      [heading('Judged'), describeHeadSample(sample, problem)],
      [heading('Not judged'), describeUnsampledHeads(sample)],
    ],
    numberColumns: 0,
  };
}

/** The problem of linear attention in the words of one sentence. */
function recurrenceSection({ problem }: RecurrentReport): Section {
  return { rows: [[heading('Problem'), describeReportedRecurrence(problem)]], numberColumns: 0 };
}

/**
 * The report on a kernel of linear attention for a terminal, newline at the end, as `renderAudit` gives that of others: the verdict,
 * what fails, the problem, and a table of the quantities and of sums that are one number. `full` prints every test and the inputs.
 */
export function renderRecurrent(report: RecurrentReport, options: AuditRenderOptions = {}): string {
  const setting = settingOf(options);
  const { section, indented } = setting;
  const isFull = options.full === true;
  const notes = recurrentNotes(report);
  return joinBlocks([
    verdictLines(report, setting),
    section(failureSection(report)),
    ...(isFull
      ? [
          findingLines(report, setting),
          clauseList('Evidence', report.verdict.diagnosis?.evidence ?? [], setting),
        ]
      : [otherFindingLines(report, setting), section(failedRecurrentTests(report))]),
    [
      ...section(recurrenceSection(report)),
      ...section(headSampleSection(report)),
      ...section(notesSection(report)),
      ...section(warningsSection(report)),
    ],
    [...section(recurrentSection(report)), ...(notes === null ? [] : indented(notes))],
    section(identitiesSection(report)),
    ...(isFull ? [section(recurrentTestsSection(report)), inputBlock(report, setting)] : []),
  ]);
}
