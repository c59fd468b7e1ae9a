import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeSafetensors } from '../../../src/io/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { capturedKernel, capturedKernels } from '../../fixtures/captured-ptx.js';
import { boxMullerNumbers, filledProblem, uniformNumbers } from '../../setup/problems.js';

/** An attention kernel of the fixtures, as a template, and the problem that its mutants are run on. */
export interface MutantKernel {
  /** Its name among the fixtures. */
  readonly name: string;
  /** Sizes that take several blocks of keys, with a tail where the kernel can have one. */
  readonly sizes: { readonly queries: number; readonly keys: number; readonly dim: number };
  readonly isCausal: boolean;
  /** The template where the fixtures have none. */
  readonly template?: object;
}

const outputs = (out: string, lse: string) => [
  { name: out, as: 'out', format: 'bf16' },
  { name: lse, as: 'lse', format: 'fp32' },
];

/** The six kernels: two by nvcc, four by Triton; mma.sync, wgmma and tcgen05.mma, by cp.async and by TMA. */
export const mutantKernels: readonly MutantKernel[] = [
  {
    name: 'nvcc-fa4-forward-d64',
    sizes: { queries: 40, keys: 150, dim: 64 },
    isCausal: true,
  },
  {
    name: 'nvcc-fa4-forward-d128',
    sizes: { queries: 24, keys: 140, dim: 128 },
    isCausal: false,
  },
  {
    name: 'triton-sm80-d64',
    sizes: { queries: 64, keys: 100, dim: 64 },
    isCausal: false,
    template: {
      entry: 'attend',
      grid: ['ceil(sq / 64)', 'heads * batch'],
      block: [128],
      dynamicSharedBytes: 24576,
      parameters: [
        ...['q', 'k', 'v', 'O', 'L'].map((tensor) => ({ tensor })),
        ...[{ f32: 'scale' }, { s32: 'heads' }, { s32: 'sq' }, { s32: 'sk' }],
        ...[{ scratch: 0 }, { scratch: 0 }],
      ],
      outputs: outputs('O', 'L'),
    },
  },
  {
    name: 'triton-wgmma-d64-tails-causal',
    sizes: { queries: 50, keys: 90, dim: 64 },
    isCausal: true,
    template: {
      entry: 'attend',
      grid: ['ceil(sq / 64)', 'heads * batch'],
      block: [128],
      dynamicSharedBytes: 40960,
      parameters: [
        ...['q', 'k', 'v', 'O', 'L'].map((tensor) => ({ tensor })),
        ...[{ f32: 'scale' }, { s32: 'sq' }, { s32: 'sk' }, { scratch: 0 }, { scratch: 0 }],
      ],
      outputs: outputs('O', 'L'),
    },
  },
  {
    name: 'triton-sm90-attend-tma-d64-causal-warps',
    sizes: { queries: 70, keys: 100, dim: 64 },
    isCausal: true,
  },
  {
    name: 'triton-sm100-attend-tma-d64-causal-warps',
    sizes: { queries: 70, keys: 100, dim: 64 },
    isCausal: true,
  },
];

/** The files of a kernel and its problem. */
export interface KernelFiles {
  readonly template: string;
  readonly ptx: string;
  readonly problem: string;
  readonly text: string;
  readonly posed: Problem;
}

/** The problem of a kernel: normal numbers, of one head. */
function problemOf({ sizes, isCausal }: MutantKernel, seed: number): Problem {
  return filledProblem(sizes, boxMullerNumbers(uniformNumbers(seed)), { causal: isCausal });
}

interface StructTemplate {
  readonly parameters: readonly { readonly struct?: readonly object[] }[];
}

/**
 * The template without powers of two by a polynomial, which FlashAttention-4 has for some of the weights (the last but one member
 * of its settings says for how many): real values of that polynomial are not attention's, whatever the mutant.
 */
function withoutPolynomial(template: object | undefined): object {
  const { parameters } = template as StructTemplate;
  return {
    ...template,
    parameters: parameters.map(({ struct, ...others }) =>
      struct === undefined ? others : { struct: struct.toSpliced(-2, 1, { s32: 0 }) },
    ),
  };
}

/** Writes a kernel and a problem for it into a folder. @throws Error for a kernel that is not captured */
export async function writeKernel(
  folder: string,
  kernel: MutantKernel,
  seed: number,
): Promise<KernelFiles> {
  const target = join(folder, kernel.name);
  mkdirSync(target, { recursive: true });
  const [template, ptx, problem] = ['template.json', 'kernel.ptx', 'problem.safetensors'].map(
    (file) => join(target, file),
  );
  const { ptx: text } = capturedKernel(kernel.name);
  const known = capturedKernels.find(({ name }) => name === kernel.name)?.template;
  writeFileSync(template, JSON.stringify(kernel.template ?? withoutPolynomial(known)));
  writeFileSync(ptx, text);
  const posed = problemOf(kernel, seed);
  const { q, k, v, causal } = posed;
  await writeSafetensors(problem, { q, k, v }, { causal: String(causal) });
  return { template, ptx, problem, text, posed };
}
