import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import type { KernelModel } from '../../../kernels/index.js';
import { auditableLse, auditableOutput, type KernelOutputs } from '../../audit/index.js';
import { emulate } from '../../emulate/index.js';
import { formats, patternsOf } from '../../formats/index.js';
import type { TensorFile } from '../../io/index.js';
import { modelNamed } from '../../jobs/index.js';
import { startLiveKernel, type LiveAnswer } from '../../live/index.js';
import { problemShape, type Problem, type Tensor } from '../../problem/index.js';
import type { TensorSource } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import { readTensorArgument, type TensorReading } from '../files/tensor-argument.js';
import { kernelSettings } from '../options/kernel-settings.js';
import type { AuditCommandOptions } from './options.js';

/** Outputs to judge, and where they came from. */
export interface JudgedOutputs {
  readonly outputs: KernelOutputs;
  readonly output: TensorSource;
  readonly lse: TensorSource | null;
}

/**
 * The outputs that --output and --lse name, or the problem file's own `out` and `lse`.
 * @throws RequestError when there are none, or they cannot be read
 */
export async function readOutputs(
  file: TensorFile,
  { output, lse }: Pick<AuditCommandOptions, 'output' | 'lse'>,
  reading: TensorReading,
): Promise<JudgedOutputs> {
  if (output === undefined && !file.entries.has('out'))
    throw new RequestError(
      `${file.path}: has no tensor "out" to judge; name the kernel's output with --output <file>[:tensor], or run the kernel with --exec`,
    );
  const lseArgument = lse ?? (output === undefined && file.entries.has('lse') ? ':lse' : null);
  const readOut = await readTensorArgument(output ?? ':out', file, 'out', reading);
  const readLse =
    lseArgument === null ? null : await readTensorArgument(lseArgument, file, 'lse', reading);
  return {
    outputs: { out: readOut.tensor, lse: readLse?.tensor ?? null },
    output: readOut.source,
    lse: readLse?.source ?? null,
  };
}

/** Reads tensors `out` and `lse` that a kernel wrote; a missing or misshapen one is its fault. */
async function readExecuted(file: TensorFile, problem: Problem): Promise<JudgedOutputs> {
  const read = async (tensor: string) => {
    const value = await file.read(tensor);
    const sha256 = await file.sha256(tensor);
    return { value, source: { path: file.path, tensor, sha256, format: value.format } };
  };
  const shape = problemShape(problem);
  const out = await read('out');
  const lse = file.entries.has('lse') ? await read('lse') : null;
  auditableOutput(out.value, shape);
  if (lse !== null) auditableLse(lse.value, shape);
  return {
    outputs: { out: out.value, lse: lse?.value ?? null },
    output: out.source,
    lse: lse?.source ?? null,
  };
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
  const kernel = await startLiveKernel(command, timeoutSeconds, readExecuted);
  try {
    return await kernel.run(problem);
  } finally {
    await kernel.close();
  }
}

/** The command that makes the same outputs: what stands in a report for where they came from. */
export function emulationCommand(model: string, set: readonly string[] = []): string {
  return ['flashproof emulate', model, ...set.map((text) => `--set ${text}`)].join(' ');
}

function emulatedSource(name: string, { format, data }: Tensor): TensorSource {
  const sha256 = createHash('sha256').update(patternsOf(data, formats[format])).digest('hex');
  return { path: '', tensor: name, sha256, format };
}

/**
 * Runs a kernel model on a problem.
 * @throws RequestError for an unknown model or setting and for a problem that the model does not take
 */
export async function emulateOutputs(
  model: string,
  problem: Problem,
  { set, threads }: Pick<AuditCommandOptions, 'set' | 'threads'>,
  models?: readonly KernelModel[],
): Promise<JudgedOutputs> {
  const { out, lse } = await emulate(problem, modelNamed(model, models), {
    settings: kernelSettings(set),
    threads: threads ?? availableParallelism(),
  });
  return {
    outputs: { out, lse },
    output: emulatedSource('out', out),
    lse: emulatedSource('lse', lse),
  };
}
