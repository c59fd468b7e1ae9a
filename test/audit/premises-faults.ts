import type { KernelOutputs } from '../../src/audit/index.js';
import type { FormatName } from '../../src/formats/index.js';
import { randomValues } from '../../properties/problems/values.js';
import { encodeProblem } from '../../properties/problems/plain-problem.js';
import { problemShape, type Problem } from '../../src/problem/index.js';
import { decode, encode } from './damage.js';
import { runPlainKernel, toFormat } from './declared-kernel.js';

/** Sizes of a problem of normal numbers. */
interface Sizes {
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  readonly qkDim: number;
  readonly vDim: number;
}

/** Two heads of 256 × 256 × 64 normal numbers, as issues of premises are stated of. */
const usual: Sizes = { heads: 2, queries: 256, keys: 256, qkDim: 64, vDim: 64 };

/** A problem of normal numbers. */
export function normalProblem(
  seed: number,
  sizes: Partial<Sizes> = {},
  format: FormatName = 'bf16',
): Problem {
  const { heads, queries, keys, qkDim, vDim } = { ...usual, ...sizes };
  const { normal } = randomValues(seed);
  const normals = (length: number) => Float64Array.from({ length }, () => normal());
  return encodeProblem({
    sizes: { batch: 1, kvHeads: heads, groupSize: 1, queries, keys, qkDim, vDim },
    formats: { q: format, k: format, v: format },
    values: {
      q: normals(heads * queries * qkDim),
      k: normals(heads * keys * qkDim),
      v: normals(heads * keys * vDim),
    },
    scale: 1 / Math.sqrt(qkDim),
    causal: false,
    window: null,
    softcap: null,
  });
}

/** K and V of a problem, key by key as `edit` has them: null for a key that is left out. */
function withKeys(problem: Problem, keys: readonly (number | null)[]): Problem {
  const { batch, kvHeads, keys: all } = problemShape(problem);
  const edited = (name: 'k' | 'v') => {
    const tensor = problem[name];
    const dim = tensor.shape.at(-1)!;
    const values = decode(tensor);
    const to = new Float64Array(batch * kvHeads * keys.length * dim);
    for (let head = 0; head < batch * kvHeads; head++)
      keys.forEach((key, j) => {
        if (key === null) return;
        const from = (head * all + key) * dim;
        to.set(values.subarray(from, from + dim), (head * keys.length + j) * dim);
      });
    const shape = [...tensor.shape.slice(0, -2), keys.length, dim];
    return encode(to, tensor.format, shape);
  };
  return { ...problem, k: edited('k'), v: edited('v') };
}

/** What a plain kernel gives that computes another problem in place of this one. */
function asIf(problem: Problem, other: Problem): KernelOutputs {
  return runPlainKernel({ ...problem, ...other }, () => ({}));
}

/** Kernels with a fault, by name: what they give for a problem. */
export const faultyKernels = {
  'an output 0.5 % too small': (problem: Problem) =>
    runPlainKernel(problem, ({ output }) => ({ output: (x) => output(0.995 * x) })),
  'an output 0.5 % too large': (problem: Problem) =>
    runPlainKernel(problem, ({ output }) => ({ output: (x) => output(1.005 * x) })),
  'a dropped last key': (problem: Problem) => {
    const { keys } = problemShape(problem);
    return asIf(
      problem,
      withKeys(
        problem,
        Array.from({ length: keys - 1 }, (_, j) => j),
      ),
    );
  },
  '16 counted zero keys': (problem: Problem) => {
    const { keys } = problemShape(problem);
    return asIf(
      problem,
      withKeys(
        problem,
        Array.from({ length: keys + 16 }, (_, j) => (j < keys ? j : null)),
      ),
    );
  },
  'one wrong key of one query': (problem: Problem) => {
    const { keys, queries, vDim, heads } = problemShape(problem);
    const right = runPlainKernel(problem, () => ({}));
    const shifted = Array.from({ length: keys }, (_, j) => (j === 5 ? 6 : j));
    const wrong = asIf(problem, withKeys(problem, shifted));
    const row = Math.floor((heads * queries) / 2);
    const out = decode(right.out);
    out.set(decode(wrong.out).subarray(row * vDim, (row + 1) * vDim), row * vDim);
    const lse = decode(right.lse!);
    lse[row] = decode(wrong.lse!)[row];
    return {
      out: encode(out, right.out.format, right.out.shape),
      lse: encode(lse, 'fp32', right.lse!.shape),
    };
  },
  /** Q and K in 8-bit integers by a factor of each row, as quantizing kernels do. */
  'Q and K in int8': (problem: Problem) => {
    const quantized = (name: 'q' | 'k') => {
      const tensor = problem[name];
      const dim = tensor.shape.at(-1)!;
      const values = decode(tensor);
      for (let first = 0; first < values.length; first += dim) {
        const row = values.subarray(first, first + dim);
        const factor = row.reduce((most, x) => Math.max(most, Math.abs(x)), 0) / 127;
        row.forEach((x, i) => (row[i] = Math.round(x / factor) * factor));
      }
      return encode(values, 'fp32', tensor.shape);
    };
    const { q, k } = { q: quantized('q'), k: quantized('k') };
    const outputs = runPlainKernel({ ...problem, q, k }, () => ({
      outputFormat: problem.q.format,
      output: toFormat(problem.q.format),
    }));
    return outputs;
  },
  'a dump widened to fp32': (problem: Problem) => {
    const { out, lse } = runPlainKernel(problem, () => ({}));
    return { out: encode(decode(out), 'fp32', out.shape), lse };
  },
} as const satisfies Readonly<Record<string, (problem: Problem) => KernelOutputs>>;

/** A problem whose tensors hold the same numbers in fp32. */
export function widened(problem: Problem): Problem {
  const wide = (tensor: Problem['q']) => encode(decode(tensor), 'fp32', tensor.shape);
  return { ...problem, q: wide(problem.q), k: wide(problem.k), v: wide(problem.v) };
}
