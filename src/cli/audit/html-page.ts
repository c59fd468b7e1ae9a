import { existsSync } from 'node:fs';
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
import { type AuditCommandOptions, auditOptions, outputKeys } from './options.js';
import { kernelModels } from '../../../kernels/index.js';
import type { AttentionReference } from '../../../oracles/index.js';
import type { ElementBounds, JudgedElements } from '../../audit/index.js';
import type { FormatName } from '../../formats/index.js';
import type { TensorFile } from '../../io/index.js';
import { createOutputComparer, exp2Curves, type SourcedTensor } from '../../jobs/index.js';
import { type Problem, quantities } from '../../problem/index.js';
import type { AuditReport, Provenance } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import { readTensorArgument, type TensorReading } from '../files/file-tensors.js';
import type { CommandContext } from '../options/command-rows.js';
import { kernelSettings } from '../options/settings.js';

/** The options that say which output is judged, and how. */
const judgedKeys = [
  ...outputKeys,
  ...(['exec', 'kernel', 'as', 'premise', 'set'] as const),
  ...(['timeout', 'falseAlarmRate', 'rows', 'seed'] as const),
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

/** An output that was judged, with what goes with its report. */
export interface JudgedOutput {
  /** How the outputs to compare with are read. */
  readonly reading: TensorReading;
  readonly output: SourcedTensor;
  readonly falseAlarmRate: number;
  readonly provenance: Provenance;
}

/** What an HTML report needs of an audit while it runs. */
export interface HtmlAudit {
  /** Takes the elements that are judged; see `AuditOptions.onElements`. */
  readonly onElements: (judged: JudgedElements) => void;
  /** Judges the outputs of --compare, and the judged one before them; none without --compare. */
  readonly compare: (
    problem: Problem,
    file: TensorFile,
    judged: JudgedOutput,
  ) => Promise<readonly ComparedOutput[]>;
  /** @param problem null when there was no output to judge */
  readonly render: (
    report: AuditReport,
    problem: Problem | null,
    compared: readonly ComparedOutput[],
    identification: string | null,
  ) => Promise<string>;
}

/** What is compared, and plotted: O. */
const [mainQuantity] = quantities;

/** An output to compare with, and what it is called. */
interface CompareArgument {
  readonly name: string;
  /** As `--output` takes it: `<file>[:<tensor>]`. */
  readonly output: string;
}

/** The name of an output that was given none: its tensor, or its file. */
function defaultName(output: string): string {
  const tensor = output.slice(output.lastIndexOf(':') + 1);
  return tensor === '' ? output : tensor;
}

/**
 * What the --compare options name: `[<name>=]<file>[:<tensor>]`, split at the first equals sign unless
 * the whole of it is an existing path.
 *
 * @param judged the name of the output that the report is of
 * @throws RequestError for an argument without a file or tensor, and for a name given twice
 */
function compareArguments(texts: readonly string[], judged: string): CompareArgument[] {
  const names = new Set([judged]);
  return texts.map((text) => {
    const equals = existsSync(text) ? -1 : text.indexOf('=');
    const output = text.slice(equals + 1);
    const name = equals < 1 ? defaultName(output) : text.slice(0, equals);
    if (equals === 0 || output === '' || output === ':')
      throw new RequestError(
        `--compare is ${JSON.stringify(text)}; give [<name>=]<file>[:<tensor>], an empty file meaning the problem file`,
      );
    if (names.has(name))
      throw new RequestError(
        `two outputs are called ${JSON.stringify(name)}; give this one a name of its own: --compare <name>=${output}`,
      );
    names.add(name);
    return { name, output };
  });
}

/** What the judged output is called beside others. */
function judgedName({ output, exec, kernel }: AuditCommandOptions): string {
  if (kernel !== undefined) return kernel;
  if (exec !== undefined) return 'the live kernel';
  const tensor = output?.slice(output.lastIndexOf(':') + 1);
  return tensor === undefined || tensor === '' ? mainQuantity.name : tensor;
}

/**
 * Prepares the HTML report of one audit.
 * @throws RequestError for a --compare that does not parse
 */
export function createHtmlAudit(
  path: string,
  options: AuditCommandOptions,
  { models = kernelModels }: CommandContext,
): HtmlAudit {
  const name = judgedName(options);
  const others = compareArguments(options.compare ?? [], name);
  let plots: PlotData | null = null;
  let reference: AttentionReference | null = null;
  const bounds = new Map<FormatName, ElementBounds>();
  const isDeclared = options.kernel !== undefined || options.as !== undefined;
  return {
    onElements: (judged) => {
      plots = gatherPlotData(judged);
      if (others.length === 0) return;
      reference = judged.reference;
      if (!isDeclared) bounds.set(judged.outputs.out.format, judged.bounds);
    },
    compare: async (problem, file, { output, reading, falseAlarmRate, provenance }) => {
      if (reference === null) return [];
      const compare = createOutputComparer(problem, reference, falseAlarmRate, provenance, bounds);
      const compared = [compare(name, output)];
      for (const { name, output } of others) {
        const read = await readTensorArgument(output, file, mainQuantity, reading);
        compared.push(compare(name, read));
      }
      return compared;
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
            : exp2Curves(model, problem, kernelSettings(options.set)),
        commands: reproduceCommands(path, options),
      };
      return renderHtml(page);
    },
  };
}
