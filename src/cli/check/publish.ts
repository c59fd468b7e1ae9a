import {
  describeFeature,
  describeRegime,
  featureKinds,
  lawIds,
  laws,
  regimeNames,
} from '../../../properties/index.js';
import { listHead, type ListHead } from '../../jobs/index.js';
import { toolVersion } from '../tool-version.js';
import { renderCheck, renderCheckAnnotations, type CheckNames } from '../../report/text/index.js';
import { renderCheckJunit } from '../../report/junit/index.js';
import type { CheckReport } from '../../report/json/check/index.js';
import { validateCheckReport } from '../../report/validation/index.js';
import type { CheckCommandOptions } from './options.js';
import { terminalLooks } from '../terminal.js';
import { writeJson, writeText } from '../files/publish.js';

/** The properties and regimes, as `check --list --json` writes them. */
export type CheckList = ListHead<'check-list'> & CheckNames;

/** The JSON document of the properties and regimes. */
export function checkList(): CheckList {
  return {
    ...listHead('check-list', toolVersion()),
    properties: lawIds.map((name) => {
      const { statement, reason, strengths, usual } = laws[name];
      return { name, statement, reason, promises: [...strengths, 'none'], usualPromise: usual };
    }),
    features: featureKinds.map((name) => ({ name, description: describeFeature(name) })),
    regimes: regimeNames.map((name) => {
      const { description, provokes } = describeRegime(name);
      return { name, description, provokes };
    }),
  };
}

/**
 * Prints a report, with annotations where GitHub Actions runs it, and writes the files that were asked
 * for. The text comes first: a file that cannot be written must not lose the results.
 * @param document the JSON to write; default the report
 * @throws RequestError when a file cannot be written
 */
export async function publishCheck(
  report: CheckReport,
  { json, junit, quiet }: Pick<CheckCommandOptions, 'json' | 'junit' | 'quiet'>,
  document: object = report,
): Promise<void> {
  await validateCheckReport(report);
  const isTaken = json === '-' || junit === '-';
  if (!isTaken)
    process.stdout.write(
      quiet === true
        ? `${report.verdict.sentence}\n`
        : renderCheck(report, terminalLooks(process.stdout)),
    );
  if (process.env['GITHUB_ACTIONS'] === 'true')
    (isTaken ? process.stderr : process.stdout).write(renderCheckAnnotations(report));
  if (json !== undefined) await writeJson(json, document);
  if (junit !== undefined) await writeText(junit, renderCheckJunit(report));
}
