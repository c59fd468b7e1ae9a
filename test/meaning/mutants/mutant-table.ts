import type { SemanticVerdict } from './judge-semantic.js';

/** A mutant that was judged. */
export interface JudgedRow extends Pick<
  SemanticVerdict,
  'changesBits' | 'changesReal' | 'isAudited' | 'status' | 'hasFindings'
> {
  readonly kernel: string;
  readonly kind: string;
}

/** Columns of the table: a count of mutants each. */
const columns: Readonly<Record<string, (row: JudgedRow) => boolean>> = {
  mutants: () => true,
  'change bits': ({ changesBits }) => changesBits,
  'fail the audit': ({ isAudited }) => isAudited,
  'change a real value': ({ changesReal }) => changesReal,
  'of these refuted': ({ changesReal, status }) => changesReal && status === 'refuted',
  'by findings': ({ changesReal, hasFindings }) => changesReal && hasFindings,
  incomplete: ({ changesReal, status }) => changesReal && status === 'incomplete',
  certified: isOverlooked,
  'same real values, refuted by findings': ({ changesReal, hasFindings }) =>
    !changesReal && hasFindings,
};

/** Whether a mutant changes a real value and is certified all the same. */
export function isOverlooked({ changesReal, status }: JudgedRow): boolean {
  return changesReal && status === 'certified';
}

/** Whether a mutant leaves the real values and has no finding, and is not certified. */
export function isWronged({ changesReal, hasFindings, status }: JudgedRow): boolean {
  return !changesReal && !hasFindings && status !== 'certified';
}

function lineOf(name: string, rows: readonly JudgedRow[]): string {
  const counts = Object.values(columns).map((counted) => rows.filter(counted).length);
  return `| ${[name, ...counts].join(' | ')} |`;
}

/** A table in Markdown: mutants by kind, by kernel, and all. */
export function mutantTable(rows: readonly JudgedRow[]): string {
  const by = (key: 'kind' | 'kernel') =>
    [...new Set(rows.map((row) => row[key]))].map((name) =>
      lineOf(
        name,
        rows.filter((row) => row[key] === name),
      ),
    );
  const names = Object.keys(columns);
  return [
    `| change or kernel | ${names.join(' | ')} |`,
    `| --- | ${names.map(() => '--:').join(' | ')} |`,
    ...by('kind'),
    ...by('kernel'),
    lineOf('all', rows),
  ].join('\n');
}
