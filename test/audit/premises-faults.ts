import type { KernelOutputs } from '../../src/audit/index.js';
import type { FormatName } from '../../src/formats/index.js';
import { randomValues } from '../../properties/problems/values.js';
import { encodeProblem } from '../../properties/problems/plain-problem.js';
import { problemShape, type Problem } from '../../src/problem/index.js';
import { decode, encode } from './damage.js';
import { runPlainKernel, toFormat, type PlainArithmetic } from './declared-kernel.js';

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

/** How a kernel computes, where it is not as most do. */
type Changes = (plain: PlainArithmetic) => Partial<PlainArithmetic>;
const plain: Changes = () => ({});

/** Eager attention in bf16: scores are written in it, and P is once it is divided. */
export const asEager: Changes = () => ({ score: toFormat('bf16'), dividesFirst: true });

/** What a kernel gives that computes another problem in place of this one. */
function asIf(problem: Problem, other: Problem, changes: Changes): KernelOutputs {
  return runPlainKernel({ ...problem, ...other }, changes);
}

/** What a kernel gives whose row sums and LSEs have a sink of each head. */
export function runWithSinks(
  problem: Problem,
  logits: readonly number[],
  changes: Changes,
): KernelOutputs {
  const { heads, queries, vDim } = problemShape(problem);
  const { q } = problem;
  const { out, lse } = runPlainKernel(problem, (known) => ({
    ...changes(known),
    outputFormat: 'fp64',
    output: (x) => x,
  }));
  const ofKeys = decode(lse!);
  const withSinks = ofKeys.map((x, row) => {
    const sink = logits[Math.floor(row / queries) % heads];
    return Math.max(x, sink) + Math.log1p(Math.exp(-Math.abs(x - sink)));
  });
  const values = decode(out).map((x, i) => {
    const row = Math.floor(i / vDim);
    return x * Math.exp(ofKeys[row] - withSinks[row]);
  });
  return {
    out: encode(values, q.format, out.shape),
    lse: encode(withSinks, 'fp32', lse!.shape),
  };
}

/** A problem with a sink of each head. */
export function withSinks(problem: Problem, logits: readonly number[]): Problem {
  const tensor = encode(Float64Array.from(logits), 'fp32', [logits.length]);
  return { ...problem, sink: { logits: tensor, inLse: true } };
}

/** A kernel whose output is off by a factor before it is rounded. */
function scaled(problem: Problem, factor: number, changes: Changes): KernelOutputs {
  return runPlainKernel(problem, (known) => {
    const changed = changes(known);
    const { output } = { ...known, ...changed };
    return { ...changed, output: (x) => output(factor * x) };
  });
}

/** Kernels with a fault, by name: what they give for a problem. */
export const faultyKernels = {
  'the sinks of another head': (problem: Problem, changes: Changes = plain) =>
    runWithSinks(problem, [...decode(problem.sink!.logits)].reverse(), changes),
  'an output 0.5 % too small': (problem: Problem, changes: Changes = plain) =>
    scaled(problem, 0.995, changes),
  'an output 0.5 % too large': (problem: Problem, changes: Changes = plain) =>
    scaled(problem, 1.005, changes),
  'a dropped last key': (problem: Problem, changes: Changes = plain) => {
    const { keys } = problemShape(problem);
    return asIf(
      problem,
      withKeys(
        problem,
        Array.from({ length: keys - 1 }, (_, j) => j),
      ),
      changes,
    );
  },
  '16 counted zero keys': (problem: Problem, changes: Changes = plain) => {
    const { keys } = problemShape(problem);
    return asIf(
      problem,
      withKeys(
        problem,
        Array.from({ length: keys + 16 }, (_, j) => (j < keys ? j : null)),
      ),
      changes,
    );
  },
  'one wrong key of one query': (problem: Problem, changes: Changes = plain) => {
    const { keys, queries, vDim, heads } = problemShape(problem);
    const right = runPlainKernel(problem, changes);
    const shifted = Array.from({ length: keys }, (_, j) => (j === 5 ? 6 : j));
    const wrong = asIf(problem, withKeys(problem, shifted), changes);
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
  'a dump widened to fp32': (problem: Problem, changes: Changes = plain) => {
    const { out, lse } = runPlainKernel(problem, changes);
    return { out: encode(decode(out), 'fp32', out.shape), lse };
  },
} as const satisfies Readonly<
  Record<string, (problem: Problem, changes?: Changes) => KernelOutputs>
>;

/** A problem whose tensors hold the same numbers in fp32. */
export function widened(problem: Problem): Problem {
  const wide = (tensor: Problem['q']) => encode(decode(tensor), 'fp32', tensor.shape);
  return { ...problem, q: wide(problem.q), k: wide(problem.k), v: wide(problem.v) };
}
