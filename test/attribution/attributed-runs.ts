import { findKernelModel, type AttributedKernel } from '../../kernels/index.js';
import { encodeFromFloat64, formats, type FormatName } from '../../src/formats/index.js';
import type { Candidate } from '../../src/attribution/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';

/** The kernel of a candidate with techniques that can be emulated or exact. */
export function kernelOf(problem: Problem, { model, settings }: Candidate): AttributedKernel {
  return findKernelModel(model).attribute(problem, new Map(Object.entries(settings)));
}

/** Whole outputs and LSEs of a kernel, a run for each list of exact techniques. */
export function runExact(kernel: AttributedKernel, exact: readonly (readonly string[])[]) {
  const { batch, heads, queries, vDim } = kernel.shape;
  const rows = batch * heads * queries;
  const outputs = exact.map(() => new Float64Array(rows * vDim));
  const lse = exact.map(() => new Float64Array(rows));
  const run = kernel.prepareRuns(
    exact.map((names) => new Set(kernel.techniques.filter((name) => !names.includes(name)))),
  );
  for (let piece = 0; piece < kernel.pieces; piece++) {
    const result = run(piece);
    result.outputs.forEach((out, i) => outputs[i].set(out, result.firstRow * vDim));
    result.lse.forEach((values, i) => lse[i].set(values, result.firstRow));
  }
  return { outputs, lse };
}

/** Numbers as a tensor of a format, in the shape of the problem's outputs or LSEs. */
export function tensorOf(
  kernel: AttributedKernel,
  kind: 'out' | 'lse',
  format: FormatName,
  values: Float64Array,
): Tensor {
  const { batch, heads, queries, vDim } = kernel.shape;
  const shape = [batch, heads, queries, ...(kind === 'out' ? [vDim] : [])];
  return { format, shape, data: encodeFromFloat64(formats[format], values) };
}

/** What a kernel with some techniques exact would have written. */
export function dumpOf(
  problem: Problem,
  candidate: Candidate,
  exact: readonly string[],
  format?: FormatName,
): { readonly out: Tensor; readonly lse: Tensor } {
  const kernel = kernelOf(problem, candidate);
  const { outputs, lse } = runExact(kernel, [exact]);
  return {
    out: tensorOf(kernel, 'out', format ?? kernel.outFormat, outputs[0]),
    lse: tensorOf(kernel, 'lse', 'fp32', lse[0]),
  };
}
