import { printable, readText } from '../../io/index.js';
import { certifyLaunch } from '../../jobs/index.js';
import { fileName, renderCertificatePage } from '../../report/html/launch/index.js';
import { fitLines } from '../../report/layout/index.js';
import { renderCertificate } from '../../report/text/launch/index.js';
import { RequestError } from '../../request-error.js';
import { writeJson, writeText } from '../files/publish.js';
import { rejectClashes } from '../options/given-options.js';
import { createPeriodicProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import { certifyOptions, type CertifyCommandOptions } from './options.js';

/** Of a file of source. */
const mostSourceBytes = 2 ** 24;

/** The sources that are given, by the names of their files. */
async function readSources(paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const sources = new Map<string, string>();
  for (const path of paths) sources.set(fileName(path), await readText(path, mostSourceBytes));
  return sources;
}

/** @throws RequestError for a source that no PTX was compiled from */
function rejectForeign(sources: ReadonlyMap<string, string>, ptx: readonly string[]): void {
  const named = ptx.flatMap((text) =>
    [...text.matchAll(/^\s*\.file\s+\d+\s+"([^"]*)"/gm)].map(([, path]) => fileName(path)),
  );
  const foreign = [...sources.keys()].find((name) => !named.includes(name));
  if (foreign === undefined) return;
  const all = [...new Set(named)];
  throw new RequestError(
    `--source ${printable(foreign)}: ${
      all.length === 0
        ? 'the PTX says nothing of its source; compile it with line information'
        : `the PTX was compiled from ${printable(all.join(', '))}`
    }`,
  );
}

/**
 * Runs `flashproof certify`: runs compiled kernels, one after another, and prints what their run proves. Returns the exit status.
 *
 * @throws RequestError for a request that cannot be carried out
 */
export async function runCertify(
  [path, ...following]: readonly string[],
  options: CertifyCommandOptions,
): Promise<number> {
  rejectClashes(certifyOptions, options);
  const { ptx, tensors, problem, architecture, same, samples, schedules } = options;
  const { contract: contractFile, json, html, quiet, lines = false } = options;
  const sources = await readSources(options.source ?? []);
  const progress = createPeriodicProgress('certify');
  const files = { path, following, ptx, tensors, problem, same, contractFile };
  const request = { ...files, architecture, samples, schedules, contract: false, races: true };
  const { certificate, ptx: text } = await certifyLaunch(
    request,
    toolVersion(),
    progress.update,
  ).finally(progress.done);
  rejectForeign(sources, text);
  if (json !== '-') {
    const { columns } = terminalLooks(process.stdout);
    const printed = renderCertificate(certificate, lines).split('\n');
    // The first line is the verdict.
    const shown = quiet === true ? [printed[0], ''] : fitLines(printed, columns);
    process.stdout.write(shown.join('\n'));
  }
  if (json !== undefined) await writeJson(json, certificate);
  if (html !== undefined)
    await writeText(html, renderCertificatePage(certificate, { ptx: text, sources }));
  return certificate.status === 'certified' ? 0 : 1;
}
