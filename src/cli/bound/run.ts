import { createTechniqueTable } from '../../attribution/index.js';
import {
  anyKernelArithmetic,
  auditAccuracy,
  forEachRowsBound,
  modelArithmetic,
  resolvePremises,
  type KernelArithmetic,
} from '../../audit/index.js';
import { formats, type FormatName } from '../../formats/index.js';
import {
  hashTensorFile,
  openTensorFile,
  problemNote,
  readProblem,
  type TensorFile,
} from '../../io/index.js';
import { attentionOracle } from '../../../oracles/index.js';
import type { Problem } from '../../problem/index.js';
import { createBoundReport, validateBoundReport } from '../../report/json/index.js';
import { renderBound } from '../../report/text/index.js';
import { RequestError } from '../../request-error.js';
import type { BoundCommandOptions } from './options.js';
import { declaredPremises } from '../declared-arithmetic.js';
import { kernelSettings } from '../options/kernel-settings.js';
import { declaredFormats, problemSettings } from '../options/problem-settings.js';
import { createStagedProgress } from '../terminal/progress.js';
import { terminalLooks } from '../terminal/terminal-looks.js';
import { warnOfUnusedInputs } from '../files/unused-warning.js';
import { toolVersion } from '../tool-version.js';
import { writeJson } from '../files/publish.js';

/** The output's format that was asked for. @throws RequestError for one that does not exist */
function outputFormat({ outputFormat: name }: BoundCommandOptions): FormatName | null {
  if (name === undefined) return null;
  if (!Object.hasOwn(formats, name))
    throw new RequestError(
      `--output-format is ${JSON.stringify(name)}; give one of ${Object.keys(formats).join(', ')}`,
    );
  return name as FormatName;
}

function arithmeticOf(
  file: TensorFile,
  problem: Problem,
  options: BoundCommandOptions,
): KernelArithmetic {
  const format = outputFormat(options);
  const premises = declaredPremises(options, problemNote(file, 'premises'));
  if (premises !== null) {
    if (options.set !== undefined)
      throw new RequestError('--set changes a kernel model; name one with --kernel');
    const output = format ?? problem.q.format;
    return anyKernelArithmetic(problem, output, resolvePremises(problem, output, premises));
  }
  const own = modelArithmetic(
    (options.kernel ?? options.as)!,
    problem,
    kernelSettings(options.set),
  );
  return format === null ? own : { ...own, outputFormat: format };
}

/**
 * Runs `flashproof bound`: the oracle, then the bounds; prints and writes them. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runBound(path: string, options: BoundCommandOptions): Promise<number> {
  const start = performance.now();
  const progress = createStagedProgress('bound', [
    ['oracle', 1],
    ['bounds', 2],
  ]);
  const file = await openTensorFile(path, { formats: declaredFormats(options) });
  try {
    const problem = await readProblem(file, problemSettings(options));
    warnOfUnusedInputs(file);
    const arithmetic = arithmeticOf(file, problem, options);
    const reference = attentionOracle(problem, {
      accuracy: auditAccuracy(arithmetic.outputFormat),
      progress: (done) => progress.update('oracle', done),
    });
    const meter = createTechniqueTable(reference, arithmetic.description);
    forEachRowsBound(problem, reference, arithmetic, meter.visit, {
      progress: (done) => progress.update('bounds', done),
    });
    const table = meter.table();
    progress.done();
    const report = createBoundReport(problem, table, {
      version: toolVersion(),
      problem: { path, sha256: await hashTensorFile(path) },
      seconds: (performance.now() - start) / 1000,
    });
    await validateBoundReport(report);
    if (options.json !== '-' && options.quiet !== true)
      process.stdout.write(renderBound(problem, table, terminalLooks(process.stdout)));
    if (options.json !== undefined) await writeJson(options.json, report);
    return 0;
  } finally {
    progress.done();
    await file.close();
  }
}
