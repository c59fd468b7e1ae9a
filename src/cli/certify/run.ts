import { certifyLaunch } from '../../jobs/index.js';
import { renderCertificatePage } from '../../report/html/launch/index.js';
import { fitLines } from '../../report/layout/index.js';
import { renderCertificate } from '../../report/text/launch/index.js';
import { writeJson, writeText } from '../files/publish.js';
import { rejectClashes } from '../options/given-options.js';
import { createPeriodicProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import { certifyOptions, type CertifyCommandOptions } from './options.js';

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
  const progress = createPeriodicProgress('certify');
  const files = { path, following, ptx, tensors, problem, same, contractFile };
  const request = { ...files, architecture, samples, schedules, contract: false, races: true };
  const { certificate, ptx: text } = await certifyLaunch(
    request,
    toolVersion(),
    progress.update,
  ).finally(progress.done);
  if (json !== '-') {
    const { columns } = terminalLooks(process.stdout);
    const printed = renderCertificate(certificate, lines).split('\n');
    // The first line is the verdict.
    const shown = quiet === true ? [printed[0], ''] : fitLines(printed, columns);
    process.stdout.write(shown.join('\n'));
  }
  if (json !== undefined) await writeJson(json, certificate);
  if (html !== undefined) await writeText(html, renderCertificatePage(certificate, text));
  return certificate.status === 'certified' ? 0 : 1;
}
