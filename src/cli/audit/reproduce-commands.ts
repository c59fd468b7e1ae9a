import type { ReproduceCommand } from '../../report/html/index.js';
import { commandWords } from '../options/command-words.js';
import { problemOptions, type ProblemOptions } from '../options/problem-options.js';
import { auditOptions, outputKeys, type AuditCommandOptions } from './options.js';

/** The options that say which output is judged, and how. */
const judgedKeys = [
  ...outputKeys,
  ...(['exec', 'kernel', 'as', 'premise', 'set'] as const),
  ...(['timeout', 'falseAlarmRate'] as const),
];

/** The options that say what the problem is. */
const problemKeys = Object.keys(problemOptions) as (keyof ProblemOptions)[];

/** The options that say what is reported. */
const reportKeys = ['techniques', 'identify', 'compare', 'html'] as const;

/** A path as an argument that is not taken for an option. */
function argument(path: string): string {
  return path.startsWith('-') ? `./${path}` : path;
}

/** The commands that give an audit's report again: this page, the numbers, and what goes deeper. */
export function reproduceCommands(path: string, options: AuditCommandOptions): ReproduceCommand[] {
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
