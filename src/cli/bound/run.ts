import { availableParallelism } from 'node:os';
import { formats, type FormatName } from '../../formats/index.js';
import {
  hashTensorFile,
  openDeclaring,
  problemLayout,
  problemNote,
  readProblem,
  type TensorFile,
  writeSafetensors,
} from '../../io/index.js';
import {
  boundGradients,
  boundKernel,
  type ArithmeticRequest,
  type GradientBoundRequest,
  type KeptBounds,
  readOutputGradient,
  settingsOfForward,
} from '../../jobs/index.js';
import { parseGradientDeclaration } from '../../audit/index.js';
import { problemShape, type Problem, type Tensor } from '../../problem/index.js';
import { validateBoundReport } from '../../report/validation/index.js';
import { renderBound } from '../../report/text/index.js';
import { RequestError } from '../../request-error.js';
import { writeJson } from '../files/publish.js';
import { warnOfUnusedInputs } from '../files/file-tensors.js';
import { rejectClashes } from '../options/given-options.js';
import type { CommandContext } from '../options/command-rows.js';
import {
  declaredFormats,
  kernelSettings,
  problemSettings,
  rowsRequest,
  tensorPlaces,
} from '../options/settings.js';
import { createStagedProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import { boundOptions, type BoundCommandOptions } from './options.js';

/**
 * The requested format of the output.
 * @throws RequestError for one that does not exist
 */
function outputFormat({ outputFormat: name }: BoundCommandOptions): FormatName | null {
  if (name === undefined) return null;
  if (!Object.hasOwn(formats, name))
    throw new RequestError(
      `--output-format is ${JSON.stringify(name)}; give one of ${Object.keys(formats).join(', ')}`,
    );
  return name as FormatName;
}

/**
 * The request for bounds of the gradients.
 * @throws RequestError for a dO that cannot be read, and for an unknown premise
 */
async function gradientRequest(
  file: TensorFile,
  problem: Problem,
  options: BoundCommandOptions,
  arithmetic: ArithmeticRequest,
): Promise<GradientBoundRequest> {
  const headsFirst = problemLayout(file, problemSettings(options)) === 'bhsd';
  const { tensor } = await readOutputGradient(
    file,
    { named: options.dout, wants: '--backward' },
    { headsFirst, problem },
  );
  const declared = parseGradientDeclaration(options.gradientPremise ?? [], '--gradient-premise');
  const asked = outputFormat(options);
  return { ...arithmetic, problem, dout: tensor, outputFormat: asked, declared };
}

/** Writes the oracle's results, and the bounds, in fp64 and in the shapes of O and of the LSE. */
async function saveElements(path: string, problem: Problem, kept: KeptBounds): Promise<void> {
  const rows = problem.q.shape.slice(0, -1);
  const { vDim } = problemShape(problem);
  const tensorOf = (data: Float64Array, shape: readonly number[]): Tensor => ({
    format: 'fp64',
    shape,
    data,
  });
  await writeSafetensors(
    path,
    {
      out: tensorOf(kept.out, [...rows, vDim]),
      out_bound: tensorOf(kept.outBound, [...rows, vDim]),
      lse: tensorOf(kept.lse, rows),
      lse_bound: tensorOf(kept.lseBound, rows),
    },
    { flashproof: toolVersion() },
  );
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
  rejectClashes(boundOptions, options);
  const start = performance.now();
  const progress = createStagedProgress('bound', [
    ['oracle', 1],
    ['bounds', 2],
    ...(options.backward === true ? [['gradients', 12] as const] : []),
  ]);
  const file = await openDeclaring(path, declaredFormats(options), tensorPlaces(options));
  try {
    const given = problemSettings(options);
    const problem = await readProblem(file, given);
    warnOfUnusedInputs(file, given);
    const { kernel, as, premise, set } = options;
    const arithmetic = {
      kernel,
      as,
      premise,
      noted: problemNote(file, 'premises'),
      models,
    };
    const settings = () => kernelSettings(set);
    const backward =
      options.backward === true
        ? await gradientRequest(file, problem, options, { ...arithmetic, settings })
        : null;
    file.checkDeclared();
    const { save } = options;
    const {
      report: bounded,
      table,
      elements,
    } = await boundKernel(
      {
        problem,
        ...arithmetic,
        settings: () => settingsOfForward(arithmetic, settings(), backward !== null),
        hasSettings: set !== undefined,
        outputFormat: outputFormat(options),
        rows: rowsRequest(save === undefined ? options : { ...options, rows: 'all' }),
        keepsElements: save !== undefined,
        threads: options.threads ?? availableParallelism(),
        origin: { version: toolVersion(), problem: { path, sha256: await hashTensorFile(path) } },
        start,
      },
      progress.update,
    );
    const gradients =
      backward === null
        ? null
        : boundGradients(backward, (done) => progress.update('gradients', done));
    const report = { ...bounded, gradients };
    progress.done();
    await validateBoundReport(report);
    if (options.json !== '-' && options.quiet !== true)
      process.stdout.write(renderBound(report, table, terminalLooks(process.stdout)));
    if (save !== undefined && elements !== null) await saveElements(save, problem, elements);
    if (options.json !== undefined) await writeJson(options.json, report);
    return 0;
  } finally {
    progress.done();
    await file.close();
  }
}
