import { formatNumber, formatUse, plainText } from '../../words/index.js';
import { describePartKeys, type ReportedSplits } from '../json/index.js';
import { heading, type Section } from '../layout/index.js';
import type { Setting } from './setting.js';

/** The parts of a split problem, a row each, and their merge. */
export function splitsSection({ rule, parts, merge }: ReportedSplits): Section {
  const rows = parts.map((part) => [
    `  part ${part.split}`,
    formatUse(Number(part.boundUsed)),
    formatNumber(Number(part.largestError)),
    { text: part.status, tone: part.pass ? ('success' as const) : ('failure' as const) },
    plainText(describePartKeys(part)),
  ]);
  const merged =
    merge === null
      ? [['  merge', '', '', '', 'not judged: the parts have no LSE']]
      : [
          [
            '  merge',
            formatUse(Number(merge.used)),
            '',
            merge.pass
              ? ({ text: 'PASS', tone: 'success' } as const)
              : ({ text: 'FAIL', tone: 'failure' } as const),
            merge.lseUsed === null
              ? 'of what fp32 may err by'
              : `of what fp32 may err by; of the LSE ${formatUse(Number(merge.lseUsed))}`,
          ],
        ];
  return {
    rows: [
      [heading('Parts'), heading('bound used'), heading('largest'), heading(''), plainText(rule)],
      ...rows,
      ...merged,
    ],
    numberColumns: 2,
  };
}

/** The parts as lines; none where there are none. */
export function splitsBlock(
  splits: ReportedSplits | null,
  { section }: Pick<Setting, 'section'>,
): string[] {
  return splits === null ? [] : section(splitsSection(splits));
}
