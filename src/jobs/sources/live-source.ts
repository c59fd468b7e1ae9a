import { decodeOutputs } from '../../audit/index.js';
import type { TensorFile } from '../../io/index.js';
import { startLiveKernel, unaskedTensors, writtenOutputs } from '../../io/live/index.js';
import {
  gatherOutput,
  problemShape,
  quantities,
  type Problem,
  type Quantity,
} from '../../problem/index.js';
import {
  judgedOutputs,
  type JudgedOutputs,
  type KernelSource,
  type SourcedTensor,
} from '../audit/index.js';
import { executeOnce } from './execute-once.js';
import { liveRecurrenceSource } from './recurrent/live-recurrence.js';

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

/** A kernel that is a process, run by its command over the process protocol. */
export function liveSource(command: string, timeoutSeconds: number): KernelSource {
  return {
    name: 'the live kernel',
    keepsPosed: true,
    recurrence: liveRecurrenceSource(command, timeoutSeconds),
    command: () => command,
    open: async () => ({
      takes: [],
      givesGradients: false,
      prepare: ({ file, problem }) => ({
        hasGradients: false,
        reason: null,
        run: async () => {
          const start = () =>
            startLiveKernel(command, timeoutSeconds, (written, posed) =>
              readExecuted(written, posed),
            );
          const execution = await executeOnce(command, start, problem, file.path);
          return 'failure' in execution
            ? execution
            : { judged: execution.outputs, gradients: null };
        },
      }),
    }),
  };
}
