import { writeRawTensors } from '../../io/index.js';
import { hasFailed, runDocument, runLaunchFile } from '../../jobs/index.js';
import { fitLines } from '../../report/layout/index.js';
import { renderLines, renderRun } from '../../report/text/launch/index.js';
import { writeJson } from '../files/publish.js';
import { terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import type { RunCommandOptions } from './options.js';

/** Exit statuses. */
const [nothingWrong, somethingWrong] = [0, 1];

/**
 * Runs `flashproof run`: a compiled kernel on the emulated machine; saves and prints. Returns the exit status.
 *
 * @throws RequestError for a request that cannot be carried out
 */
export async function runRun(path: string, options: RunCommandOptions): Promise<number> {
  const { save, json, quiet, lines, contract = false, races } = options;
  const { ptx, tensors, schedule, model, architecture } = options;
  const result = await runLaunchFile({
    path,
    ptx,
    tensors,
    contract,
    races,
    schedule,
    model,
    architecture,
  });
  const version = toolVersion();
  if (save !== undefined) await writeRawTensors(save, result.outputs, { flashproof: version });
  if (json !== '-' && quiet !== true) {
    const { columns } = terminalLooks(process.stdout);
    process.stdout.write(fitLines(renderRun(result).split('\n'), columns).join('\n'));
    if (lines === true) process.stdout.write(`\n${renderLines(result)}`);
  }
  if (json !== undefined) await writeJson(json, runDocument(version, result));
  return hasFailed(result) ? somethingWrong : nothingWrong;
}
