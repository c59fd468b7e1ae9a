import { availableParallelism } from 'node:os';
import { formats, type FormatName } from '../../formats/index.js';
import { hashTensorFile, openTensorFile, problemNote, readProblem } from '../../io/index.js';
import { boundKernel } from '../../jobs/index.js';
import { validateBoundReport } from '../../report/json/index.js';
import { renderBound } from '../../report/text/index.js';
import { RequestError } from '../../request-error.js';
import { writeJson } from '../files/publish.js';
import { warnOfUnusedInputs } from '../files/file-tensors.js';
import type { CommandContext } from '../options/command-rows.js';
import {
  declaredFormats,
  kernelSettings,
  problemSettings,
  rowsRequest,
} from '../options/settings.js';
import { createStagedProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import type { BoundCommandOptions } from './options.js';

/** The output's format that was asked for. @throws RequestError for one that does not exist */
function outputFormat({ outputFormat: name }: BoundCommandOptions): FormatName | null {
  if (name === undefined) return null;
  if (!Object.hasOwn(formats, name))
    throw new RequestError(
      `--output-format is ${JSON.stringify(name)}; give one of ${Object.keys(formats).join(', ')}`,
    );
  return name as FormatName;
}

/**
 * Runs `flashproof bound`: the oracle, then the bounds; prints and writes them. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runBound(
  path: string,
  options: BoundCommandOptions,
  { models }: CommandContext = {},
): Promise<number> {
  const start = performance.now();
  const progress = createStagedProgress('bound', [
    ['oracle', 1],
    ['bounds', 2],
  ]);
  const file = await openTensorFile(path, { formats: declaredFormats(options) });
  try {
    const given = problemSettings(options);
    const problem = await readProblem(file, given);
    warnOfUnusedInputs(file, given);
    const { kernel, as, premise, set } = options;
    const { report, table } = await boundKernel(
      {
        problem,
        kernel,
        as,
        premise,
        noted: problemNote(file, 'premises'),
        settings: () => kernelSettings(set),
        hasSettings: set !== undefined,
        outputFormat: outputFormat(options),
        models,
        rows: rowsRequest(options),
        threads: options.threads ?? availableParallelism(),
        origin: { version: toolVersion(), problem: { path, sha256: await hashTensorFile(path) } },
        start,
      },
      progress.update,
    );
    progress.done();
    await validateBoundReport(report);
    if (options.json !== '-' && options.quiet !== true)
      process.stdout.write(renderBound(report, table, terminalLooks(process.stdout)));
    if (options.json !== undefined) await writeJson(options.json, report);
    return 0;
  } finally {
    progress.done();
    await file.close();
  }
}
