import { existsSync, readdirSync } from 'node:fs';
import { join, sep } from 'node:path';
import { auditFile, type FileAudit, type PlainFileAudit } from '../../jobs/index.js';
import { printable } from '../../io/index.js';
import { RequestError } from '../../request-error.js';
import { renderJunit } from '../../report/junit/index.js';
import { renderIdentification } from '../../report/text/attribution/index.js';
import { gatherSketch, renderFileReport } from '../../report/text/index.js';
import { validateFileReport } from '../../report/validation/index.js';
import { writeJson, writeText } from '../files/publish.js';
import { readCampaign } from '../options/campaign.js';
import type { CommandContext } from '../options/command-rows.js';
import { createStagedProgress, terminalLooks } from '../terminal.js';
import { auditSettings, auditStages, type AuditRun } from './audit-settings.js';
import { renderPage } from './html-page.js';
import type { AuditCommandOptions } from './options.js';

/** Characters that make a path a pattern. */
const wildcard = /[*?[]/;

/** A path in its parts: both separators on Windows, where patterns come from a shell that leaves them. */
function partsOf(pattern: string): string[] {
  return pattern.split(sep === '\\' ? /[/\\]/ : '/');
}

/** A regular expression for the wildcards of one part: `*` and `?` match any characters, `[a-c]` one of some, `[!a-c]` others. */
function matcher(part: string): RegExp {
  const source = part.replace(
    /\*|\?|\[(!?)([^\]]+)\]|[^*?[]+|\[/g,
    (token, isNegated: string | undefined, characters: string | undefined) => {
      if (token === '*') return '.*';
      if (token === '?') return '.';
      if (characters === undefined) return token.replace(/[.+^${}()|\\/\][]/g, '\\$&');
      return `[${isNegated === '!' ? '^' : ''}${characters.replace(/[\\^[]/g, '\\$&')}]`;
    },
  );
  return new RegExp(`^${source}$`, 'us');
}

/** The entries of a folder in their order; none where it cannot be read. */
function entriesOf(folder: string) {
  try {
    return readdirSync(folder === '' ? '.' : folder, { withFileTypes: true })
      .filter(({ name }) => !name.startsWith('.'))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

/** The paths below a folder that parts of a pattern match, in order; `**` is any number of folders. */
function pathsBelow(folder: string, parts: readonly string[]): string[] {
  const [part, ...rest] = parts;
  if (part === undefined) return existsSync(folder) ? [folder] : [];
  const at = (name: string) => (folder === '' ? name : join(folder, name));
  if (part === '**') {
    const folders = entriesOf(folder).filter((entry) => entry.isDirectory());
    return [
      ...pathsBelow(folder, rest),
      ...folders.flatMap(({ name }) => pathsBelow(at(name), parts)),
    ];
  }
  if (!wildcard.test(part)) return pathsBelow(part === '' ? `${folder}/` : at(part), rest);
  const pattern = matcher(part);
  return entriesOf(folder)
    .filter(({ name }) => pattern.test(name))
    .flatMap(({ name }) => pathsBelow(at(name), rest));
}

/** Whether an argument is a pattern that the shell left unexpanded: no path, and with wildcards. */
function isPattern(argument: string): boolean {
  return wildcard.test(argument) && !existsSync(argument);
}

/**
 * The files that arguments name, in the order given, each once. A pattern gives its matches, by name,
 * hidden files left out.
 * @throws RequestError for a pattern that matches nothing, before any file is judged
 */
function expandFiles(given: readonly string[]): readonly string[] {
  const files = given.flatMap((argument) => {
    if (!isPattern(argument)) return [argument];
    const matched = pathsBelow('', partsOf(argument));
    if (matched.length === 0)
      throw new RequestError(
        `${printable(argument)}: no file matches this pattern; check the folder and the name`,
      );
    return matched;
  });
  return [...new Set(files)];
}

/** Exit statuses of an audit. */
const passed = 0;
const failed = 1;
const wrongRequest = 2;

/** The exit status of an audit: of a chain of which nothing fails, and a link cannot be judged, that of a wrong request. */
function statusOf({ report }: FileAudit | PlainFileAudit): number {
  const { pass, status } = report.verdict;
  const hasError =
    report.kind === 'chain-audit' && report.links.some((link) => link.status === 'ERROR');
  return pass ? passed : hasError && status !== 'FAIL' ? wrongRequest : failed;
}

/** The options that name a file to write a report to. */
const reportFiles = ['json', 'junit', 'html'] as const;

/** The data for the sparklines of --full; null if none are drawn. */
function sketchOf(result: FileAudit['result'], { full }: AuditCommandOptions) {
  // Of a sample of rows a line by query would have holes.
  const isWhole = result !== null && result.report.sample === null;
  return isWhole && terminalLooks(process.stdout).sparklines && full === true
    ? gatherSketch({ reference: result.reference, outputs: result.audit.outputs })
    : null;
}

/**
 * Prints a report and writes the files that were asked for. The text comes first: a file that cannot be
 * written must not lose what was found.
 */
async function publish(
  { report, result }: FileAudit | PlainFileAudit,
  page: string | null,
  options: AuditCommandOptions,
): Promise<void> {
  await validateFileReport(report);
  if (reportFiles.every((name) => options[name] !== '-')) {
    const looks = terminalLooks(process.stdout);
    const identification = result?.identification ?? null;
    const identified =
      identification === null ? '' : `\n${renderIdentification(identification, looks.columns)}\n`;
    process.stdout.write(
      options.quiet === true
        ? `${report.verdict.sentence}\n`
        : renderFileReport(report, {
            ...looks,
            full: options.full === true,
            sketch: sketchOf(result, options),
          }) + identified,
    );
  }
  const { json, junit, html } = options;
  if (json !== undefined) await writeJson(json, report);
  if (junit !== undefined) await writeText(junit, renderJunit([report]));
  if (html !== undefined && page !== null) await writeText(html, page);
}

/** Judges one file, prints and writes the report. Returns the exit status. */
async function runOne(path: string, { options, settings, lasting }: AuditRun): Promise<number> {
  const progress = createStagedProgress('audit', auditStages(options));
  try {
    const audited = await auditFile(path, settings, progress.update, lasting);
    const page = await renderPage(path, audited, options);
    progress.done();
    await publish(audited, page, options);
    return statusOf(audited);
  } finally {
    progress.done();
  }
}

/**
 * Runs `flashproof audit`: judges the outputs, prints and writes the report; of several files, of a pattern
 * and of a share of the work one report of all. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runAudit(
  paths: readonly string[],
  options: AuditCommandOptions,
  context: CommandContext = {},
): Promise<number> {
  const { models, lasting } = context;
  const audit = { options, settings: auditSettings(options, models), lasting };
  const [first] = paths;
  const { shard, shardCount, journal } = options;
  const isDivided = [shard, shardCount, journal].some((option) => option !== undefined);
  if (paths.length === 1 && !isPattern(first) && !isDivided) return runOne(first, audit);
  const { runAudits } = await import('./run-many.js');
  const campaign = readCampaign(options) ?? { shard: null, journal: undefined };
  return runAudits(expandFiles(paths), audit, campaign);
}
