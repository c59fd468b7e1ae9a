import type { ReproduceCommand } from '../report/html/index.js';
import type { AuditCommandOptions } from './audit.js';
import { wordsOf, type OptionWord } from './option-words.js';

/** The options that say which output is judged, and how. */
const judgedOptions: readonly OptionWord<AuditCommandOptions>[] = [
  ['--output', ({ output }) => output],
  ['--lse', ({ lse }) => lse],
  ['--exec', ({ exec }) => exec],
  ['--kernel', ({ kernel }) => kernel],
  ['--as', ({ as }) => as],
  ['--premise', ({ premise }) => premise],
  ['--set', ({ set }) => set],
  ['--timeout', ({ timeout }) => (timeout === '60' ? undefined : timeout)],
  [
    '--false-alarm-rate',
    ({ falseAlarmRate }) => (falseAlarmRate === '1e-9' ? undefined : falseAlarmRate),
  ],
];

/** The options that say what the problem is. */
const problemOptions: readonly OptionWord<AuditCommandOptions>[] = [
  ['--scale', ({ scale }) => scale],
  ['--causal', ({ causal }) => causal],
  ['--window', ({ window }) => window],
  ['--softcap', ({ softcap }) => softcap],
  ['--layout', ({ layout }) => layout],
  ['--format', ({ format }) => format],
];

/** The options that say what is reported. */
const reportOptions: readonly OptionWord<AuditCommandOptions>[] = [
  ['--techniques', ({ techniques }) => (techniques ? undefined : false)],
  ['--identify', ({ identify }) => identify],
  ['--compare', ({ compare }) => compare],
  ['--html', ({ html }) => html],
];

/** A path as an argument that is not taken for an option. */
function argument(path: string): string {
  return path.startsWith('-') ? `./${path}` : path;
}

/** The commands that give an audit's report again: this page, the numbers, and what goes deeper. */
export function reproduceCommands(path: string, options: AuditCommandOptions): ReproduceCommand[] {
  const problem = wordsOf(options, problemOptions);
  const audit = [
    'flashproof',
    'audit',
    argument(path),
    ...wordsOf(options, judgedOptions),
    ...problem,
  ];
  return [
    { purpose: 'This page', words: [...audit, ...wordsOf(options, reportOptions)] },
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
