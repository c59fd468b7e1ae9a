import type { FileAudit, PlainFileAudit } from '../../jobs/index.js';
import type { ReproduceCommand } from '../../report/html/index.js';
import { renderIdentification } from '../../report/text/attribution/index.js';
import { commandWords } from '../options/given-options.js';
import { problemOptions, type ProblemOptions } from '../options/shared-options.js';
import {
  auditOptions,
  gradientKeys,
  outputKeys,
  linkKeys,
  recurrentKeys,
  type AuditCommandOptions,
} from './options.js';

/** The options that select the output to judge, and the way to judge it. */
const judgedKeys = [
  ...outputKeys,
  ...gradientKeys,
  ...recurrentKeys,
  ...linkKeys,
  ...(['exec', 'kernel', 'launch', 'as', 'premise', 'gradientPremise', 'set'] as const),
  ...(['timeout', 'falseAlarmRate', 'rows', 'seed'] as const),
];

/** The options that define the problem. */
const problemKeys = Object.keys(problemOptions) as (keyof ProblemOptions)[];

/** The options that select the contents of the report. */
const reportKeys = ['techniques', 'identify', 'compare', 'html'] as const;

/** A path as an argument that is not mistaken for an option. */
function argument(path: string): string {
  return path.startsWith('-') ? `./${path}` : path;
}

/** The commands that give an audit's report again: this page, the numbers, and deeper investigations. */
function reproduceCommands(path: string, options: AuditCommandOptions): ReproduceCommand[] {
  const audit = [
    'flashproof',
    'audit',
    argument(path),
    ...commandWords(auditOptions, options, [...judgedKeys, ...problemKeys]),
  ];
  return [
    {
      purpose: 'This page',
      words: [...audit, ...commandWords(auditOptions, options, reportKeys)],
    },
    {
      purpose: 'In the terminal, with the JSON report',
      words: [...audit, '--json', 'report.json'],
    },
    ...(options.identify === true || options.kernel !== undefined
      ? []
      : [{ purpose: 'Which kernel the output looks like', words: [...audit, '--identify'] }]),
    ...(options.as === undefined && options.kernel === undefined
      ? [
          {
            purpose: "By FlashAttention-4's arithmetic, if that is what the kernel does",
            words: [...audit, '--as', 'fa4'],
          },
        ]
      : []),
  ];
}

/** The HTML report of an audit; null where it was not asked for. */
export async function renderPage(
  path: string,
  audited: FileAudit | PlainFileAudit,
  options: AuditCommandOptions,
): Promise<string | null> {
  if (options.html === undefined) return null;
  const { renderChainPage, renderHtml, renderLinkPage, renderRecurrentPage } =
    await import('../../report/html/index.js');
  const { page, result, report } = audited;
  if (report.kind === 'chain-audit')
    return renderChainPage(report, reproduceCommands(path, options).slice(0, 2));
  if (report.kind === 'link-audit')
    return renderLinkPage(report, reproduceCommands(path, options).slice(0, 2));
  if (report.kind === 'recurrent-audit')
    return renderRecurrentPage(report, reproduceCommands(path, options).slice(0, 2));
  if (page === null) return null;
  const identification = result?.identification ?? null;
  return renderHtml({
    ...page,
    identification: identification && renderIdentification(identification),
    commands: reproduceCommands(path, options),
  });
}
