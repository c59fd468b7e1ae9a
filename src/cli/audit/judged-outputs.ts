import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import type { KernelModel, KernelSettings } from '../../../kernels/index.js';
import { decodeOutputs, type KernelOutputs } from '../../audit/index.js';
import { emulate } from '../../emulate/index.js';
import { formats, patternsOf } from '../../formats/index.js';
import type { TensorFile } from '../../io/index.js';
import type { SourcedTensor } from '../../jobs/index.js';
import {
  startLiveKernel,
  unaskedTensors,
  writtenOutputs,
  type LiveAnswer,
  type WrittenOutputs,
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
import { readTensorArgument, type TensorReading } from '../files/file-tensors.js';
import { flagOf } from '../options/option-rows.js';
import type { AuditCommandOptions, outputKeys } from './options.js';

/** Outputs to judge, and where they came from. */
export interface JudgedOutputs {
  readonly outputs: KernelOutputs;
  readonly sources: WrittenOutputs<TensorSource>;
  /** Names of what a live kernel wrote beside them, which nothing reads; default none. */
  readonly unasked?: readonly string[];
}

/** A tensor, and where it came from. */
type Sourced = WrittenOutputs<SourcedTensor>;

function judgedOutputs(read: Sourced): JudgedOutputs {
  const each = <T>(part: (sourced: SourcedTensor) => T) =>
    Object.fromEntries(
      Object.entries(read).map(([name, sourced]) => [name, sourced && part(sourced)]),
    ) as unknown as WrittenOutputs<T>;
  return { outputs: each(({ tensor }) => tensor), sources: each(({ source }) => source) };
}

/** What the options say of where the outputs are, by quantity. */
export function outputArguments(
  options: Pick<AuditCommandOptions, (typeof outputKeys)[number]>,
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(quantities.map(({ name, option }) => [name, options[option]]));
}

/**
 * The outputs that options name, or the problem file's own tensors of their names: all of them where the
 * first is not named either.
 * @param named what `<file>[:<tensor>]` each quantity is in, by quantity
 * @param known the quantities that there are
 * @throws RequestError when there are none, or they cannot be read
 */
export async function readOutputs(
  file: TensorFile,
  named: Readonly<Record<string, string | undefined>>,
  reading: TensorReading,
  known: readonly Quantity[] = quantities,
): Promise<JudgedOutputs> {
  const [main] = known;
  const isOwn = named[main.name] === undefined;
  if (isOwn && !file.entries.has(main.name))
    throw new RequestError(
      `${file.path}: has no tensor "${main.name}" to judge; name the kernel's output with ${flagOf(main.option)} <file>[:tensor], or run the kernel with --exec`,
    );
  const read: Record<string, SourcedTensor | null> = {};
  for (const quantity of known) {
    const { name } = quantity;
    const argument = named[name] ?? (isOwn && file.entries.has(name) ? `:${name}` : null);
    read[name] =
      argument === null ? null : await readTensorArgument(argument, file, quantity, reading);
  }
  return judgedOutputs(read as unknown as Sourced);
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
 * Runs a kernel's command on one problem over the process protocol. Nothing of it is left when it has
 * answered: judging may take minutes, in which an interrupt would leave its folder behind.
 * @throws RequestError when there can be no temporary folder
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
    return await kernel.run(problem);
  } finally {
    await kernel.close();
  }
}

/** The command that makes the same outputs: what stands in a report for where they came from. */
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

/** What a report says of where a model's tensor is from. */
export function emulatedSource(name: string, { format, data }: Tensor): TensorSource {
  const sha256 = createHash('sha256').update(patternsOf(data, formats[format])).digest('hex');
  return { path: '', tensor: name, sha256, format };
}

/** How a pass of a kernel model is run. */
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
