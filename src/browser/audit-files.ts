import { usualFalseAlarmRate } from '../audit/index.js';
import {
  declaredFormatNames,
  parseLayout,
  parseScale,
  parseSoftcap,
  parseWindow,
  recurrentFamily,
  type DeclaredFormats,
  type ProblemSettings,
} from '../io/tensors/index.js';
import {
  auditFile,
  linkContractOf,
  seededRows,
  type AuditMeans,
  type TensorPlaces,
} from '../jobs/audit/index.js';
import { renderHtml } from '../report/html/index.js';
import { quoteShellCommand } from '../report/layout/index.js';
import type { AuditReport } from '../report/json/index.js';
import { RequestError } from '../request-error.js';
import type { BlobFiles } from './blob-files.js';

/** The inputs that a file may have under other names. */
const inputNames = ['q', 'k', 'v'] as const;

/** The flags of `flashproof audit` that a page has fields for, by the name of the field, in the order of a command. */
const flags = {
  causal: 'causal',
  scale: 'scale',
  window: 'window',
  softcap: 'softcap',
  layout: 'layout',
  format: 'format',
  output: 'output',
  lse: 'lse',
  lseBase: 'lse-base',
  dout: 'dout',
  dq: 'dq',
  dk: 'dk',
  dv: 'dv',
  dbias: 'dbias',
  dsink: 'dsink',
  outPartial: 'out-partial',
  lsePartial: 'lse-partial',
  as: 'as',
  premise: 'premise',
  rows: 'rows',
} as const satisfies Readonly<Record<keyof TensorPlaces, string>> &
  Readonly<Record<string, string>>;

/**
 * Statements about a dump beside its own, in the words of `flashproof audit`; empty for none. A tensor is `file:tensor`, or
 * `:tensor` of the problem's own file, as q, k and v are that it has under other names; `causal` is `yes`, `no`, or empty for the file's own value; `format` has declarations
 * `tensor=format`, divided by spaces or commas; `rows` is `all`, or empty for a sample where all would take long.
 */
export type AuditWords = Readonly<Record<keyof typeof flags | (typeof inputNames)[number], string>>;

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
  readonly report: AuditReport;
  /** The report as an HTML page. */
  readonly page: string;
  /** The command line with the same meaning, as a shell reads it. */
  readonly command: string;
}

/** The words that are not empty. */
function givenWords(words: Partial<AuditWords>): Partial<AuditWords> {
  return Object.fromEntries(Object.entries(words).filter(([, text]) => text !== ''));
}

/** The command line with the same meaning. */
function commandWords(path: string, words: Partial<AuditWords>): string[] {
  const renamed = Object.entries(placesOf(words)).map(([name, place]) => `${name}=${place}`);
  const given = (Object.keys(flags) as (keyof typeof flags)[]).flatMap((name) => {
    const text = words[name];
    if (text === undefined) return [];
    if (name === 'causal') return [text === 'yes' ? '--causal' : '--no-causal'];
    const texts = name === 'format' ? declarations(words) : [text];
    return texts.flatMap((one) => [`--${flags[name]}`, one]);
  });
  return ['flashproof', 'audit', path, ...renamed.flatMap((one) => ['--tensor', one]), ...given];
}

/** Where q, k and v are that the file has under other names. */
function placesOf(words: Partial<AuditWords>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    inputNames.flatMap((name) => (words[name] === undefined ? [] : [[name, words[name]]])),
  );
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
    text === undefined ? undefined : parse(text);
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

/** @throws RequestError for a file of linear attention, or of a link of the decode chain, before anything is computed */
async function refuseOthers({ path, files }: AuditFilesRequest, formats: DeclaredFormats) {
  const file = await files.open(path, { formats, isOneOfSeveral: true });
  try {
    const contract = linkContractOf(file, { contract: undefined, problem: {} });
    const isRecurrence = recurrentFamily(file, {}) !== null;
    if (contract === null && !isRecurrence) return;
    throw new RequestError(
      `${path}: is ${contract === null ? 'linear attention' : `a ${contract}`}, which pages do not judge; run flashproof audit ${path}`,
    );
  } finally {
    await file.close();
  }
}

/**
 * Judges what a kernel made of a problem, as `flashproof audit` does: the same verdict, numbers and HTML report. Only
 * kernel models are not run here, with which that compares gradients bit by bit.
 * @param progress called with the share of the stages `oracle`, `structure` and `bounds`, from 0 to 1
 * @throws RequestError for a dump that cannot be judged: one line, as the command line gives it
 */
export async function auditFiles(
  request: AuditFilesRequest,
  progress: (stage: string, done: number) => void,
  startThreads: AuditMeans['startThreads'],
): Promise<AuditedFiles> {
  const { path, files, words: fields, threads, version } = request;
  const words = givenWords(fields);
  const formats = formatsOf(words);
  await refuseOthers(request, formats);
  const { premise } = words;
  const { report, page } = await auditFile(
    path,
    {
      ...words,
      version,
      problem: settingsOf(words),
      formats,
      recurrence: {},
      softmaxOptions: [],
      recurrentOptions: [],
      attentionOptions: [],
      linkOptions: [],
      link: { tensors: placesOf(words) },
      source: null,
      premise: premise === undefined ? undefined : [premise],
      modelSettings: () => new Map(),
      falseAlarmRate: usualFalseAlarmRate,
      rows: seededRows({ count: rowsOf(words) }),
      keys: null,
      techniques: true,
      plots: true,
      threads,
    },
    { startThreads, files, hash: files.hash, matchModels: null },
    progress,
  );
  // Others are refused above.
  if (report.kind !== 'audit') throw new Error(`${path} is of another kind: ${report.kind}`);
  const command = commandWords(path, words);
  const commands = [
    { purpose: 'This page', words: [...command, '--html', 'report.html'] },
    {
      purpose: 'In the terminal, with the JSON report',
      words: [...command, '--json', 'report.json'],
    },
  ];
  const rendered = await renderHtml({ ...page!, identification: null, commands });
  return { report, page: rendered, command: `npx ${quoteShellCommand(command)}` };
}
