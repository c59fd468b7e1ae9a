import { auditableLse, auditableOutput, type KernelOutputs } from '../../audit/index.js';
import type { TensorFile } from '../../io/index.js';
import { startLiveKernel, type LiveAnswer } from '../../live/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import type { TensorSource } from '../../report/json/index.js';

/** Outputs that a live kernel wrote, and where they came from. */
export interface ExecutedOutputs {
  readonly outputs: KernelOutputs;
  readonly output: TensorSource;
  readonly lse: TensorSource | null;
}

/** Reads tensors `out` and `lse` that a kernel wrote; a missing or misshapen one is its fault. */
async function readExecuted(file: TensorFile, problem: Problem): Promise<ExecutedOutputs> {
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
): Promise<LiveAnswer<ExecutedOutputs>> {
  const kernel = await startLiveKernel(command, timeoutSeconds, readExecuted);
  try {
    return await kernel.run(problem);
  } finally {
    await kernel.close();
  }
}
