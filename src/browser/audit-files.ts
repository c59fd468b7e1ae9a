import { kernelModels } from '../../kernels/index.js';
import { usualFalseAlarmRate, type JudgedElements } from '../audit/index.js';
import {
  declaredFormatNames,
  namesRead,
  parseLayout,
  parseScale,
  parseSoftcap,
  parseWindow,
  printable,
  problemLayout,
  problemNote,
  readProblem,
  unusedInputs,
  type DeclaredFormats,
  type ProblemSettings,
} from '../io/tensors/index.js';
import {
  auditKernel,
  declaredArithmetic,
  declaredModel,
  exp2Curves,
  modelNamed,
  naturalLse,
  readOutputs,
  type ArithmeticRequest,
  type AuditMeans,
} from '../jobs/audit/index.js';
import { gatherPlotData, renderHtml, type PlotData } from '../report/html/index.js';
import type { JudgedReport } from '../report/json/index.js';
import { RequestError } from '../request-error.js';
import type { BlobFiles } from './blob-files.js';

/** Statements about a dump beside its own, in the words of `flashproof audit`; empty for none. */
export interface AuditWords {
  readonly scale: string;
  /** `yes`, `no`, or empty for the file's own value. */
  readonly causal: string;
  readonly window: string;
  readonly softcap: string;
  readonly layout: string;
  /** Declarations `tensor=format`, divided by spaces or commas. */
  readonly format: string;
  /** `file:tensor`, or `:tensor` of the problem's own file. */
  readonly output: string;
  readonly lse: string;
  readonly lseBase: string;
  readonly as: string;
  readonly premise: string;
  /** Number of rows to judge; `all`, or empty for a sample where all would take long. */
  readonly rows: string;
}

/** A dump to judge. */
export interface AuditFilesRequest {
  /** The file of the problem, by its name among `files`. */
  readonly path: string;
  readonly files: BlobFiles;
  readonly words: Partial<AuditWords>;
  readonly threads: number;
  /** The tool's version. */
  readonly version: string;
}

/** The results of an audit. */
export interface AuditedFiles {
  readonly report: JudgedReport;
  /** The report as an HTML page. */
  readonly page: string;
  /** The contents of the file that the command line judges, but this page does not. */
  readonly leftOut: readonly string[];
}

/** Results that only the command line judges. */
const leftToCommand =
  /^(dq|dk|dv|dbias|dsink|out_partial|lse_partial)$|\.(dq|dk|dv|dbias|dsink|out_partial|lse_partial)$/;

/** The flags of the command line with the same meaning. */
function commandWords(path: string, words: Partial<AuditWords>): string[] {
  const flag = (name: string, text = '') => (text === '' ? [] : [`--${name}`, text]);
  const { causal = '' } = words;
  return [
    ...['flashproof', 'audit', path],
    ...(causal === '' ? [] : [causal === 'yes' ? '--causal' : '--no-causal']),
    ...flag('scale', words.scale),
    ...flag('window', words.window),
    ...flag('softcap', words.softcap),
    ...flag('layout', words.layout),
    ...declarations(words).flatMap((text) => flag('format', text)),
    ...flag('output', words.output),
    ...flag('lse', words.lse),
    ...flag('lse-base', words.lseBase),
    ...flag('as', words.as),
    ...flag('premise', words.premise),
    ...flag('rows', words.rows),
  ];
}

function declarations({ format = '' }: Partial<AuditWords>): string[] {
  return format.split(/[\s,]+/).filter((text) => text !== '');
}

function formatsOf(words: Partial<AuditWords>): DeclaredFormats {
  return Object.fromEntries(
    declarations(words).map((text) => {
      const equals = text.lastIndexOf('=');
      const known = declaredFormatNames.find((name) => name === text.slice(equals + 1));
      if (equals < 1 || known === undefined)
        throw new RequestError(
          `a format is ${JSON.stringify(text)}; give <tensor>=<format>, the format one of ${declaredFormatNames.join(', ')}`,
        );
      return [text.slice(0, equals), known];
    }),
  );
}

function settingsOf(words: Partial<AuditWords>): ProblemSettings {
  const given = <T>(text: string | undefined, parse: (text: string) => T): T | undefined =>
    text === undefined || text === '' ? undefined : parse(text);
  return {
    scale: given(words.scale, (text) => parseScale(text)),
    causal: given(words.causal, (text) => text === 'yes'),
    window: given(words.window, (text) => parseWindow(text)),
    softcap: given(words.softcap, (text) => parseSoftcap(text)),
    layout: given(words.layout, (text) => parseLayout(text)),
  };
}

function rowsOf({ rows = '' }: Partial<AuditWords>): number | 'all' | null {
  if (rows === '' || rows === 'all') return rows === '' ? null : rows;
  const count = Number(rows);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new RequestError(
      `rows is ${JSON.stringify(rows)}; give a whole number, 1 or more, or all`,
    );
  return count;
}

/**
 * Judges O and LSE of a dump as `flashproof audit` does: the same verdict, numbers and HTML report.
 * @param progress called with the share of the stages `oracle`, `structure` and `bounds`, from 0 to 1
 * @throws RequestError for a dump that cannot be judged: one line, as the command line gives it
 */
export async function auditFiles(
  { path, files, words, threads, version }: AuditFilesRequest,
  progress: (stage: string, done: number) => void,
  startThreads: AuditMeans['startThreads'],
): Promise<AuditedFiles> {
  const start = performance.now();
  const settings = settingsOf(words);
  const formats = formatsOf(words);
  const file = await files.open(path, { formats });
  const problem = await readProblem(file, settings);
  const reading = { formats, headsFirst: problemLayout(file, settings) === 'bhsd', problem };
  const text = (word: string | undefined) => (word === '' ? undefined : word);
  const named = { out: text(words.output), lse: text(words.lse) };
  const judged = await readOutputs(file, named, reading);
  const { out, lse } = judged.outputs;
  const outputs = { out, lse: lse && naturalLse(lse, text(words.lseBase)) };
  const premise = text(words.premise);
  const arithmetic: ArithmeticRequest = {
    as: text(words.as),
    ...(premise === undefined ? {} : { premise: [premise] }),
    noted: problemNote(file, 'premises'),
    settings: () => new Map(),
  };
  const model = declaredModel(arithmetic);
  const { tensors, notes } = namesRead(file, settings);
  const own = Object.values(judged.sources).flatMap((source) =>
    source?.path === path ? [source.tensor] : [],
  );
  const plots: { gathered: PlotData | null } = { gathered: null };
  const result = await auditKernel(
    {
      problem,
      outputs,
      declared: declaredArithmetic(problem, arithmetic),
      falseAlarmRate: usualFalseAlarmRate,
      rows: { count: rowsOf(words) },
      threads,
      techniques: true,
      measured:
        model === undefined ? null : { model: modelNamed(model), settings: arithmetic.settings() },
      identify: false,
      origin: {
        version,
        problem: { path, sha256: await files.hash(path) },
        outputs: judged.sources,
        command: null,
        unused: unusedInputs(file, { tensors: [...tensors, ...own], notes }),
      },
      start,
    },
    {
      progress,
      onElements: (elements: JudgedElements) => {
        plots.gathered = gatherPlotData(elements);
      },
    },
    { startThreads, files },
  );
  const { report } = result;
  const known = kernelModels.find(({ name }) => name === model);
  const command = commandWords(path, words);
  const page = await renderHtml({
    report,
    plots: plots.gathered,
    exp2: known === undefined ? [] : exp2Curves(known, result.problem, arithmetic.settings()),
    compared: [],
    identification: null,
    commands: [
      { purpose: 'This page', words: [...command, '--html', 'report.html'] },
      {
        purpose: 'In the terminal, with the JSON report',
        words: [...command, '--json', 'report.json'],
      },
    ],
  });
  await file.close();
  const leftOut = [...file.entries.keys()].filter((name) => leftToCommand.test(name));
  return { report, page, leftOut: leftOut.map(printable) };
}
