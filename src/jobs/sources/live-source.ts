import { decodeOutputs } from '../../audit/index.js';
import type { TensorFile } from '../../io/index.js';
import {
  notStarted,
  startLiveKernel,
  unaskedTensors,
  writtenOutputs,
  type LiveAnswer,
} from '../../io/live/index.js';
import {
  gatherOutput,
  problemShape,
  quantities,
  type Problem,
  type Quantity,
} from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import {
  judgedOutputs,
  type JudgedOutputs,
  type KernelSource,
  type SourcedTensor,
} from '../audit/index.js';

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
async function executeKernel(
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

/** A kernel that is a process, run by its command over the process protocol. */
export function liveSource(command: string, timeoutSeconds: number): KernelSource {
  return {
    name: 'the live kernel',
    keepsPosed: true,
    command: () => command,
    open: async () => ({
      takes: [],
      givesGradients: false,
      prepare: ({ file, problem }) => ({
        hasGradients: false,
        reason: null,
        run: async () => {
          const execution = await executeKernel(command, problem, timeoutSeconds);
          if (execution.ok) return { judged: execution.outputs, gradients: null };
          const reason = `the kernel's process ${execution.reason}; replay with the problem ${file.path}`;
          return { failure: { reason, isDeclined: execution.cause === 'unsupported' } };
        },
      }),
    }),
  };
}
