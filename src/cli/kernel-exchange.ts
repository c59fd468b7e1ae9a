import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openTensorFile, writeSafetensors, type TensorFile } from '../io/index.js';
import type { Problem } from '../problem/index.js';
import { RequestError } from '../request-error.js';
import type { KernelRequest } from './kernel-process.js';
import { problemMetadata } from './problem-metadata.js';

/**
 * Writes a problem for a live kernel into a folder, as the protocol has it: safetensors with its
 * settings in the metadata, in place of the problem before it. What the kernel wrote for that one is
 * removed, so that nobody takes it for an answer to this.
 * @returns what to ask of the kernel, which is to write its output beside the problem
 */
export async function offerProblem(problem: Problem, folder: string): Promise<KernelRequest> {
  const { q, k, v, scale, causal, window, softcap } = problem;
  const request: KernelRequest = {
    problem: join(folder, 'problem.safetensors'),
    output: join(folder, 'output.safetensors'),
    scale,
    causal,
    window: window === null ? null : [window.left, window.right],
    softcap,
  };
  await rm(request.output, { recursive: true, force: true });
  // The kernel reads it from the system's cache at once; nobody needs it after a loss of power.
  await writeSafetensors(request.problem, { q, k, v }, problemMetadata(problem), {
    durable: false,
  });
  return request;
}

/**
 * What `read` makes of the file that a live kernel wrote.
 * @throws RequestError when there is none, or a tensor of it is missing or cannot be read
 */
export async function withOutputs<T>(
  { output }: KernelRequest,
  read: (file: TensorFile) => Promise<T>,
): Promise<T> {
  if (!existsSync(output)) throw new RequestError('there is no file where it was to write it');
  const file = await openTensorFile(output);
  try {
    return await read(file);
  } finally {
    await file.close();
  }
}
