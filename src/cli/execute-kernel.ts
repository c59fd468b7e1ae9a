import { rmSync } from 'node:fs';
import { auditableLse, auditableOutput, type KernelOutputs } from '../audit/index.js';
import { problemShape, type Problem } from '../problem/index.js';
import type { TensorSource } from '../report/index.js';
import { RequestError } from '../request-error.js';
import { cleanUpWhenInterrupted } from './interruption.js';
import { offerProblem, withOutputs } from './kernel-exchange.js';
import { startKernelProcess, type KernelRequest } from './kernel-process.js';

/** What a live kernel made of a problem, or what its process did wrong. */
export type Execution =
  | {
      readonly ok: true;
      readonly outputs: KernelOutputs;
      readonly output: TensorSource;
      readonly lse: TensorSource | null;
    }
  | { readonly ok: false; readonly reason: string };

/** Reads tensors `out` and `lse` that a kernel wrote; a missing or misshapen one is its fault. */
async function readAnswer(request: KernelRequest, problem: Problem): Promise<Execution> {
  try {
    return await withOutputs(request, async (file) => {
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
        ok: true,
        outputs: { out: out.value, lse: lse?.value ?? null },
        output: out.source,
        lse: lse?.source ?? null,
      };
    });
  } catch (error) {
    if (error instanceof RequestError)
      return { ok: false, reason: `answered but its output cannot be used: ${error.message}` };
    throw error;
  }
}

/**
 * Runs a kernel's command on one problem over the process protocol. The problem is written to
 * `folder` as the protocol has it, [batch, heads, seqlen, dim] safetensors with its settings in the
 * metadata, whatever file it came from; the kernel writes its output beside it. The folder is removed
 * when the kernel has answered, and at an interrupt (SIGINT, SIGTERM, SIGHUP).
 */
export async function executeKernel(
  command: string,
  problem: Problem,
  folder: string,
  timeoutSeconds: number,
): Promise<Execution> {
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  const leaveFolder = cleanUpWhenInterrupted(removeFolder);
  try {
    const request = await offerProblem(problem, folder);
    const kernel = startKernelProcess(command, timeoutSeconds);
    try {
      const answer = await kernel.request(request);
      return answer.ok ? await readAnswer(request, problem) : answer;
    } finally {
      await kernel.close();
    }
  } finally {
    // Judging may take minutes, in which an interrupt would leave the folder behind.
    removeFolder();
    leaveFolder();
  }
}
