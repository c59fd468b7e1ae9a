import { isUnjudged, type AuditsReport } from '../../report/json/index.js';
import { validateAuditsReport } from '../../report/validation/index.js';
import { renderAuditsJunit } from '../../report/junit/index.js';
import { renderAudits, renderFileReport } from '../../report/text/index.js';
import { writeJson, writeText } from '../files/publish.js';
import { terminalLooks } from '../terminal.js';
import { existingPages } from './page-files.js';
import type { AuditCommandOptions } from './options.js';

/** Exit statuses: every file passes, one fails, one cannot be judged. */
const passed = 0;
const failed = 1;
const wrongRequest = 2;

/** The exit status of an audit of several files. */
export function auditsStatus({ verdict }: Pick<AuditsReport, 'verdict'>): number {
  return verdict.wrong > 0 ? wrongRequest : verdict.pass ? passed : failed;
}

/** Destinations of a report of several files. */
export type AuditsTargets = {
  readonly [Name in 'json' | 'junit' | 'html' | 'full' | 'quiet']?:
    AuditCommandOptions[Name] | undefined;
};

const reportFiles = ['json', 'junit', 'html'] as const;

/** Reports on stderr the files that could not be judged, if no table does. */
function complain({ files }: AuditsReport): void {
  for (const { error } of files.filter(isUnjudged)) process.stderr.write(`flashproof: ${error}\n`);
}

function printAudits(report: AuditsReport, { full, quiet }: AuditsTargets, after: string): void {
  if (quiet === true) {
    complain(report);
    process.stdout.write(`${report.verdict.sentence}\n`);
    return;
  }
  const looks = terminalLooks(process.stdout);
  const details = report.files.flatMap(({ path, report: one }) =>
    full === true && one !== null
      ? [`\n${path}\n\n${renderFileReport(one, { ...looks, full })}`]
      : [],
  );
  process.stdout.write(renderAudits(report, looks) + details.join('') + after);
}

/**
 * Prints the report of several files, and writes the documents that were asked for: one of each kind. The
 * text comes first: a file that cannot be written must not lose the results.
 * @param document the JSON to write; default: the report
 * @param after text to print after the report; default: none
 * @throws RequestError when a file cannot be written
 */
export async function publishAudits(
  report: AuditsReport,
  targets: AuditsTargets,
  { document = report, after = '' }: { readonly document?: object; readonly after?: string } = {},
): Promise<void> {
  // A share that no file falls to has an empty report, which nobody is given.
  if (report.files.length > 0) await validateAuditsReport(report);
  if (reportFiles.every((name) => targets[name] !== '-')) printAudits(report, targets, after);
  else complain(report);
  const { json, junit, html } = targets;
  if (json !== undefined) await writeJson(json, document);
  if (junit !== undefined) await writeText(junit, renderAuditsJunit(report));
  if (html === undefined) return;
  const { renderAuditsPage } = await import('../../report/html/index.js');
  await writeText(html, renderAuditsPage(report, existingPages(html)));
}
