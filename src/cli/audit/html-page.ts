import {
  type ComparedOutput,
  gatherPlotData,
  type HtmlReport,
  type PlotData,
  renderHtml,
  type ReproduceCommand,
} from '../../report/html/index.js';
import { commandWords } from '../options/given-options.js';
import { problemOptions, type ProblemOptions } from '../options/shared-options.js';
import { type AuditCommandOptions, auditOptions, gradientKeys, outputKeys } from './options.js';
import { kernelModels } from '../../../kernels/index.js';
import type { JudgedElements } from '../../audit/index.js';
import { exp2Curves, settingsOfForward } from '../../jobs/index.js';
import type { Problem } from '../../problem/index.js';
import type { AuditReport } from '../../report/json/index.js';
import { kernelSettings } from '../options/settings.js';
import type { CommandContext } from '../options/command-rows.js';

/** The options that select the output to judge, and the way to judge it. */
const judgedKeys = [
  ...outputKeys,
  ...gradientKeys,
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

/** The HTML report of an audit, which collects data while the audit runs. */
export interface HtmlAudit {
  /** Takes the elements that are judged; see `AuditOptions.onElements`. */
  readonly onElements: (judged: JudgedElements) => void;
  /** @param problem null when there was no output to judge */
  readonly render: (
    report: AuditReport,
    problem: Problem | null,
    compared: readonly ComparedOutput[],
    identification: string | null,
  ) => Promise<string>;
}

/** Prepares the HTML report of one audit. */
export function createHtmlAudit(
  path: string,
  options: AuditCommandOptions,
  { models = kernelModels }: CommandContext,
): HtmlAudit {
  let plots: PlotData | null = null;
  return {
    onElements: (judged) => {
      plots = gatherPlotData(judged);
    },
    render: (report, problem, compared, identification) => {
      const name = options.kernel ?? options.as;
      const model = models.find((known) => known.name === name);
      const page: HtmlReport = {
        report,
        plots,
        compared,
        identification,
        exp2:
          model === undefined || problem === null
            ? []
            : exp2Curves(
                model,
                problem,
                settingsOfForward({ ...options, models }, kernelSettings(options.set), true),
              ),
        commands: reproduceCommands(path, options),
      };
      return renderHtml(page);
    },
  };
}
