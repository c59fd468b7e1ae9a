import { stat } from 'node:fs/promises';
import {
  assembleAudits,
  auditRequest,
  describeShard,
  partDocument,
  runAuditUnits,
  wholeShard,
  type AuditRequest,
  type Shard,
} from '../../campaign/index.js';
import {
  atomicWriteFile,
  hashTensorFile,
  machineFiles,
  ownTensor,
  printable,
} from '../../io/index.js';
import { auditFile, compareArguments } from '../../jobs/index.js';
import type { AuditedFile, AuditsReport } from '../../report/json/index.js';
import { renderIdentification } from '../../report/text/attribution/index.js';
import { RequestError } from '../../request-error.js';
import { stated } from '../../words/index.js';
import { openLog, type Campaign } from '../options/campaign.js';
import { commandWords } from '../options/given-options.js';
import { flagOf } from '../options/option-rows.js';
import { createPeriodicProgress, stagedShare } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import { auditStages, type AuditRun } from './audit-settings.js';
import { renderPage } from './html-page.js';
import { auditOptions, outputKeys, type AuditCommandOptions } from './options.js';
import { makePageFolder, pagePath } from './page-files.js';
import { auditsStatus, publishAudits } from './publish-many.js';

/** The options that do not affect the results. */
const presentation: readonly (keyof typeof auditOptions)[] = [
  ...(['json', 'junit', 'html', 'full', 'quiet', 'threads'] as const),
  ...(['shard', 'shardCount', 'journal'] as const),
];

/** The words of the options that affect the results: with the files they are the request. */
function judgingWords(options: AuditCommandOptions): string[] {
  const keys = Object.keys(auditOptions) as (keyof typeof auditOptions)[];
  return commandWords(
    auditOptions,
    options,
    keys.filter((key) => !presentation.includes(key)),
  );
}

/** The options beside outputs that name a tensor which cannot be that of several problems. */
const sharedKeys = [
  ...(['outPartial', 'lsePartial', 'finalState', 'initialState', 'dg', 'dbeta'] as const),
  ...(['dinitialState', 'dfinalState', 'ddt', 'da', 'dd', 'ddtBias'] as const),
];

/** @throws RequestError for outputs in one file, which cannot be those of several problems */
function rejectSharedOutput(options: AuditCommandOptions): void {
  const named = [
    ...[...outputKeys, ...sharedKeys].map((key) => [flagOf(key), options[key]] as const),
    ...compareArguments(options.compare ?? [], '', machineFiles).map(
      ({ output }) => [flagOf('compare'), output] as const,
    ),
  ];
  for (const [flag, text] of named)
    if (text !== undefined && ownTensor(text, machineFiles, '') === null)
      throw new RequestError(
        `${flag} is ${JSON.stringify(text)}, one file for several problems; give ${flag} :<tensor>, which is each problem's own`,
      );
}

/** The size of a file in bytes, used to estimate its time; 1 if it is unknown. */
async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => Math.max(size, 1),
    () => 1,
  );
}

/** The reason that a file could not be judged, in one line; the stack of an internal error goes to stderr. */
function describeError(path: string, error: unknown): string {
  if (error instanceof RequestError) return printable(error.message);
  const [message, stack] =
    error instanceof Error ? [error.message, error.stack ?? ''] : [String(error), ''];
  const said = `${path}: internal error, which is a bug in flashproof: ${message}`;
  process.stderr.write(`flashproof: ${printable(said)}\n${stack}\n`);
  return printable(said);
}

/** Callbacks for the judging of one file. */
interface Watcher {
  /** @param share done share of the file */
  readonly progress: (share: number) => void;
  /** Takes the text of --identify for the file. */
  readonly identified: (text: string) => void;
}

/** Judges one of several files, and writes its page. A file that cannot be judged is reported, and the rest goes on. */
async function judgeOne(
  path: string,
  position: number,
  { options, settings, lasting }: AuditRun,
  { progress, identified }: Watcher,
): Promise<AuditedFile> {
  const share = stagedShare(auditStages(options));
  try {
    const judged = await auditFile(
      path,
      settings,
      (stage, part) => progress(share(stage, part)),
      lasting,
    );
    if (options.html !== undefined) {
      const html = pagePath(options.html, path, position);
      const page = await renderPage(path, judged, { ...options, html });
      if (page !== null) await atomicWriteFile(html, page);
    }
    const identification = judged.result?.identification ?? null;
    if (identification !== null) identified(renderIdentification(identification));
    return { path, report: judged.report, error: null };
  } catch (error) {
    return { path, report: null, error: describeError(path, error) };
  }
}

/** Whether a file still has the bytes that its report was made from. */
async function isCurrent({ path, report }: AuditedFile): Promise<boolean> {
  return hashTensorFile(path).then(
    (sha256) => sha256 === report?.inputs.problem.sha256,
    () => false,
  );
}

/** The verdict of a shard, for its readers. */
function shardVerdict({ verdict, files }: AuditsReport, shard: Shard) {
  const of = describeShard(shard);
  if (files.length === 0)
    return { pass: false, ...stated('NOT JUDGED', `no file falls to ${of}.`) };
  const { pass, status, sentence } = verdict;
  return { pass, status, sentence: sentence.replace(/\.$/, ` (${of} only).`) };
}

/** The files of a run with their results, and the text of --identify for those that it judged itself. */
async function judgeFiles(request: AuditRequest, audit: AuditRun, campaign: Campaign) {
  const { files } = request;
  const shard = campaign.shard ?? wholeShard;
  const sizes = await Promise.all(files.map(sizeOf));
  const total = sizes.reduce(
    (sum, size, i) => (i % shard.count === shard.index - 1 ? sum + size : sum),
    0,
  );
  const log = openLog(campaign, request);
  const progress = createPeriodicProgress('audit');
  const identifications: string[] = [];
  let done = 0;
  try {
    await runAuditUnits(request, {
      shard,
      log,
      isCurrent,
      judge: (path, position) =>
        judgeOne(path, position, audit, {
          progress: (share) => progress.update((done + share * sizes[position]) / total),
          identified: (text) => identifications.push(`\n${printable(path)}\n${text}\n`),
        }),
      finished: (position) => progress.update((done += sizes[position]) / total),
    });
  } finally {
    progress.done();
    log.close();
  }
  return { shard, records: log.records, identified: identifications.join('') };
}

/**
 * Audits several files: a table, and one document of each kind that is asked for. Returns the exit status:
 * 2 where a file could not be judged, else 1 where one fails, else 0.
 * @throws RequestError for a request by which no file can be judged, and for a journal of another
 */
export async function runAudits(
  files: readonly string[],
  audit: AuditRun,
  campaign: Campaign,
): Promise<number> {
  const { options } = audit;
  rejectSharedOutput(options);
  if (options.html !== undefined) await makePageFolder(options.html);
  const request = auditRequest({ version: toolVersion(), files, options: judgingWords(options) });
  const { shard, records, identified } = await judgeFiles(request, audit, campaign);
  const report = assembleAudits(request, shard, records);
  if (campaign.shard === null) {
    await publishAudits(report, options, { after: identified });
    return auditsStatus(report);
  }
  const verdict = shardVerdict(report, shard);
  const part = { request, shard, records, outOfTime: false, execution: null };
  const of = { ...report, verdict: { ...report.verdict, ...verdict } };
  const document = partDocument(part, verdict);
  // The index is that of all files: merge writes it, with the pages that shards have written.
  await publishAudits(of, { ...options, html: undefined }, { document, after: identified });
  // A shard that no file falls to has done its part; whether anything was judged, all of them tell.
  return report.files.length === 0 ? 0 : auditsStatus(report);
}
