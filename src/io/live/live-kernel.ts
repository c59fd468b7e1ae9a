import { posedKvLayout, posedLayout, writeProblem, type TensorFile } from '../index.js';
import {
  featureSettings,
  posedRows,
  quantities,
  type Problem,
  type Quantity,
  type StoredTensors,
  type WrittenOutputs,
} from '../../problem/index.js';
import type { AttentionRequest, FeatureRequest } from './kernel-process.js';
import { startLiveProcess, type LiveAnswer } from './live-process.js';

/**
 * Takes the requested outputs from the file that a kernel wrote for a problem. A RequestError that it
 * throws, for a missing or misshapen tensor, is the kernel's failure.
 */
export type OutputReader<Outputs> = (
  file: TensorFile,
  problem: Problem,
  asked: AskedBeside,
) => Promise<Outputs>;

/** Outputs requested from a kernel beside its output and LSE. */
interface AskedBeside {
  /** Tensors of the problem's file beside the problem's own, as they are stored there. */
  readonly tensors?: StoredTensors;
  /** All requested tensors, by their names; left out where these are the output and the LSE. */
  readonly wants?: readonly string[];
  /** The number of splits of the keys; left out where the kernel chooses. */
  readonly splits?: number | undefined;
}

/**
 * Reads the outputs that a kernel wrote into a file: the first quantity always, since a kernel without
 * it is at fault, and the others where they exist.
 * @param read reads the tensor of a quantity
 * @param known all quantities
 */
export async function writtenOutputs<T>(
  { entries }: TensorFile,
  read: (quantity: Quantity) => Promise<T>,
  known: readonly Quantity[] = quantities,
): Promise<WrittenOutputs<T>> {
  const written: Record<string, T | null> = {};
  for (const [index, quantity] of known.entries()) {
    const { name } = quantity;
    written[name] = index === 0 || entries.has(name) ? await read(quantity) : null;
  }
  return written as unknown as WrittenOutputs<T>;
}

/** A kernel's command that serves one problem after the other. */
export interface LiveKernel<Outputs> {
  /** Folder for the files of problems and outputs: a new path each time, removed by `close`. */
  readonly folder: string;
  /**
   * Requests a problem's outputs; requests queue up. After a crash, a silence or a line that is no
   * answer the command is started anew for the next problem.
   */
  readonly run: (problem: Problem, asked?: AskedBeside) => Promise<LiveAnswer<Outputs>>;
  /** Ends the process and removes the temporary files. */
  readonly close: () => Promise<void>;
}

/** The features that a request states beside the tensors of its file; features that the problem lacks are left out. */
function featureRequest(problem: Problem): FeatureRequest {
  const layout = posedLayout(problem);
  const kvLayout = posedKvLayout(problem);
  const keys = posedRows(problem)?.keys;
  return {
    ...featureSettings(problem),
    ...(keys?.form === 'paged' ? { page_size: keys.slotsPerGroup } : {}),
    ...(kvLayout === null ? {} : { kv_layout: kvLayout }),
    ...(layout === null ? {} : { layout }),
  };
}

/**
 * Writes a problem to a file, in the form of the protocol: safetensors with its settings in the metadata.
 * @returns what the request says of it
 */
async function offerProblem(
  problem: Problem,
  { tensors = {}, wants, splits }: AskedBeside,
  path: string,
): Promise<AttentionRequest> {
  const { scale, causal, window, softcap } = problem;
  // The kernel reads it from the system's cache at once; it is not needed after a loss of power.
  await writeProblem(path, problem, { tensors }, { durable: false });
  return {
    scale,
    causal,
    window: window === null ? null : [window.left, window.right],
    softcap,
    ...featureRequest(problem),
    ...(wants === undefined ? {} : { wants }),
    ...(splits === undefined ? {} : { splits }),
  };
}

/**
 * A kernel's command as `startLiveProcess` starts it, for problems of attention.
 * @param timeoutSeconds time that one answer may take, including the start of the command
 * @param read takes the outputs from the file of an answer
 * @throws RequestError for an empty command, and when no temporary folder can be made
 */
export async function startLiveKernel<Outputs>(
  command: string,
  timeoutSeconds: number,
  read: OutputReader<Outputs>,
): Promise<LiveKernel<Outputs>> {
  interface Asked {
    readonly problem: Problem;
    readonly beside: AskedBeside;
  }
  const { folder, run, close } = await startLiveProcess<Asked, Outputs>(command, timeoutSeconds, {
    offer: ({ problem, beside }, path) => offerProblem(problem, beside, path),
    read: (file, { problem, beside }) => read(file, problem, beside),
  });
  return { folder, run: (problem, beside = {}) => run({ problem, beside }), close };
}
