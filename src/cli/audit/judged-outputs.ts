import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import type { KernelModel, KernelSettings } from '../../../kernels/index.js';
import { decodeOutputs } from '../../audit/index.js';
import { emulate } from '../../emulate/index.js';
import { formats, patternsOf } from '../../formats/index.js';
import type { TensorFile } from '../../io/index.js';
import { judgedOutputs, type JudgedOutputs, type SourcedTensor } from '../../jobs/index.js';
import {
  notStarted,
  startLiveKernel,
  unaskedTensors,
  writtenOutputs,
  type LiveAnswer,
} from '../../live/index.js';
import {
  gatherOutput,
  problemShape,
  quantities,
  type Problem,
  type Quantity,
  type Tensor,
} from '../../problem/index.js';
import type { TensorSource } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import type { AuditCommandOptions, outputKeys } from './options.js';

/** The places of the outputs that the options name, by quantity. */
export function outputArguments(
  options: Pick<AuditCommandOptions, (typeof outputKeys)[number]>,
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(quantities.map(({ name, option }) => [name, options[option]]));
}

/** Reads the tensors that a kernel wrote; a missing or misshapen one is its fault. */
export async function readExecuted(
  file: TensorFile,
  problem: Problem,
  known: readonly Quantity[] = quantities,
): Promise<JudgedOutputs> {
  const read = async (quantity: Quantity): Promise<SourcedTensor> => {
    const { name } = quantity;
    const tensor = gatherOutput(problem, quantity, await file.read(name));
    const sha256 = await file.sha256(name);
    return { tensor, source: { path: file.path, tensor: name, sha256, format: tensor.format } };
  };
  const unasked = unaskedTensors(file, known);
  const judged = { ...judgedOutputs(await writtenOutputs(file, read, known)), unasked };
  // Tells whether their shapes are the problem's.
  decodeOutputs(judged.outputs, problemShape(problem), known);
  return judged;
}

/**
 * Runs a kernel's command on one problem over the process protocol. The process and its folder are gone
 * once it has answered: judging may take minutes, and an interrupt would leave the folder behind.
 * @throws RequestError for a command that cannot be started, and when there can be no temporary folder
 */
export async function executeKernel(
  command: string,
  problem: Problem,
  timeoutSeconds: number,
): Promise<LiveAnswer<JudgedOutputs>> {
  const kernel = await startLiveKernel(command, timeoutSeconds, (file, posed) =>
    readExecuted(file, posed),
  );
  try {
    const answer = await kernel.run(problem);
    if (!answer.ok && answer.cause === 'not-started')
      throw new RequestError(notStarted(command, answer));
    return answer;
  } finally {
    await kernel.close();
  }
}

/** The command that makes the same outputs; it is their source in a report. */
export function emulationCommand(
  model: string,
  set: readonly string[] = [],
  withBackward = false,
): string {
  const settings = set.map((text) => `--set ${text}`);
  return ['flashproof emulate', model, ...settings, ...(withBackward ? ['--backward'] : [])].join(
    ' ',
  );
}

/** The source of a model's tensor in a report. */
export function emulatedSource(name: string, { format, data }: Tensor): TensorSource {
  const sha256 = createHash('sha256').update(patternsOf(data, formats[format])).digest('hex');
  return { path: '', tensor: name, sha256, format };
}

/** Settings of a run of a kernel model's pass. */
export interface ModelRun {
  readonly settings: KernelSettings;
  readonly threads: number | undefined;
}

/**
 * Runs a kernel model on a problem.
 * @throws RequestError for an unknown model or setting and for a problem that the model does not take
 */
export async function emulateOutputs(
  model: KernelModel | string,
  problem: Problem,
  { settings, threads = availableParallelism() }: ModelRun,
): Promise<JudgedOutputs> {
  const { out, lse } = await emulate(problem, model, { settings, threads });
  return {
    outputs: { out, lse },
    sources: { out: emulatedSource('out', out), lse: emulatedSource('lse', lse) },
  };
}
