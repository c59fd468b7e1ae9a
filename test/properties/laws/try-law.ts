import {
  resolvePromises,
  runCase,
  type AttentionKernel,
  type KernelPromises,
  type LawCase,
  type LawId,
  type LawStrength,
} from '../../../properties/index.js';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  type Tensor,
} from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom, type ProblemFrame } from '../../setup/problems.js';
import { definedAttention } from '../../kernels/features/index.js';

/** Attention by its definition, O in the format of Q and the LSE in fp32: each row of what it sees alone, in the order of its keys. */
export const definedKernel: AttentionKernel = (problem) => {
  const { out, lse } = definedAttention(problem);
  const { batch, heads, queries, vDim } = problemShape(problem);
  const { format } = problem.q;
  return {
    out: {
      format,
      shape: [batch, heads, queries, vDim],
      data: encodeFromFloat64(formats[format], out),
    },
    lse: { format: 'fp32', shape: [batch, heads, queries], data: Float32Array.from(lse) },
  };
};

/** What a law is tried with, beside the case: the kernel that attention is defined by where none is given. */
export interface Trial {
  readonly kernel?: AttentionKernel | undefined;
  readonly strength?: LawStrength | undefined;
  readonly promises?: KernelPromises | undefined;
}

/** What becomes of a law on one case. */
export function tryLaw(id: LawId, lawCase: LawCase, trial: Trial = {}) {
  const { kernel = definedKernel, strength, promises = {} } = trial;
  const resolved = resolvePromises({
    formats: ['fp32', 'fp64', 'bf16', 'fp16'],
    lse: true,
    ...promises,
    ...(strength === undefined ? {} : { laws: { [id]: strength } }),
  });
  return runCase(id, lawCase, kernel, resolved, { diagnose: false });
}

/** What a law asks of a kernel: its status, and the problems in their order. */
export async function askedBy(id: LawId, lawCase: LawCase, trial: Trial = {}) {
  const problems: Problem[] = [];
  const { kernel = definedKernel } = trial;
  const result = await tryLaw(id, lawCase, {
    ...trial,
    kernel: (problem, conditions) => {
      problems.push(problem);
      return kernel(problem, conditions);
    },
  });
  return { result, problems };
}

/** The tensor with one element moved by a thousandth. */
function moved(tensor: Tensor, at: number): Tensor {
  const values = decodeTensor(tensor).map((x, i) => (i === at ? x + (Math.abs(x) + 1) / 1000 : x));
  return { ...tensor, data: encodeFromFloat64(formats[tensor.format], values) };
}

/** The kernel, of whose run `run` one element of O or of the LSE is moved by a thousandth. */
export function movedIn(
  run: number,
  name: 'out' | 'lse',
  at: number,
  kernel: AttentionKernel = definedKernel,
): AttentionKernel {
  let runs = 0;
  return async (problem, conditions) => {
    const given = await kernel(problem, conditions);
    if (runs++ !== run) return given;
    return { ...given, [name]: moved(given[name]!, at) };
  };
}

/** A problem of several batches, grouped heads, and numbers that are all different. */
export function variedProblem(
  changes: Partial<Problem> = {},
  frame: Partial<ProblemFrame> = {},
): Problem {
  const sizes = { batch: 2, heads: 4, kvHeads: 2, queries: 5, keys: 7, dim: 3, vDim: 2 };
  return filledProblem({ ...sizes, format: 'fp32', ...frame }, pseudorandom(20261127), changes);
}

/** The rows of a tensor as texts, in their order. */
export function rowTexts(tensor: Tensor): string[] {
  const width = tensor.shape.at(-1) ?? 1;
  const values = decodeTensor(tensor);
  return Array.from({ length: values.length / width }, (_, row) =>
    values.subarray(row * width, (row + 1) * width).join(),
  );
}

/** Which rows of one tensor the rows of another are; −1 for none. */
export function rowOrigins(of: Tensor, among: Tensor): number[] {
  const known = new Map(rowTexts(among).map((text, row) => [text, row]));
  return rowTexts(of).map((text) => known.get(text) ?? -1);
}

/** A row over [batch, heads, rows] as its three numbers. */
export function apart(row: number, heads: number, rows: number): [number, number, number] {
  const head = Math.floor(row / rows);
  return [Math.floor(head / heads), head % heads, row % rows];
}

/** The same for the rows of Q of a problem. */
export function queryPlace(problem: Problem, row: number): [number, number, number] {
  const { heads, queries } = problemShape(problem);
  return apart(row, heads, queries);
}
