import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { auditAccuracy, type KernelOutputs } from '../../src/audit/index.js';
import { openTensorFile, readProblem } from '../../src/io/index.js';
import { lazily } from '../../src/reuse.js';
import type { Problem } from '../../src/problem/index.js';

const folder = fileURLToPath(new URL('../../fixtures/attention/', import.meta.url));

/** The kernels whose outputs are bundled. */
export const kernels = [
  'torch_flash',
  'torch_cudnn',
  'torch_efficient',
  'torch_math',
  'triton_flex',
  'fa4',
] as const;
export type Kernel = (typeof kernels)[number];

/** A captured problem with what every kernel made of it. */
export interface CapturedCase {
  readonly name: string;
  readonly path: string;
  readonly problem: Problem;
  readonly outputs: Readonly<Record<Kernel, KernelOutputs>>;
  /** The problem's exact attention as an audit wants it, computed once. */
  readonly reference: () => AttentionReference;
}

export const casePaths = readdirSync(folder)
  .filter((name) => name.endsWith('.safetensors'))
  .sort()
  .map((name) => join(folder, name));

export async function readCase(path: string): Promise<CapturedCase> {
  const file = await openTensorFile(path);
  try {
    const outputs = {} as Record<Kernel, KernelOutputs>;
    for (const kernel of kernels)
      outputs[kernel] = {
        out: await file.read(`${kernel}.out`),
        lse: file.entries.has(`${kernel}.lse`) ? await file.read(`${kernel}.lse`) : null,
      };
    const name = path.split('/').at(-1)!.replace('.safetensors', '');
    const problem = await readProblem(file);
    const accuracy = auditAccuracy(outputs.fa4.out.format);
    const reference = lazily(() => attentionOracle(problem, { accuracy }));
    return { name, path, problem, outputs, reference };
  } finally {
    await file.close();
  }
}
