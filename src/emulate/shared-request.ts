import { findKernelModel, type PreparedKernel } from '../../kernels/index.js';
import { formats, patternsOf, storageOf, type PatternArray } from '../formats/index.js';
import type { Problem, Tensor } from '../problem/index.js';

/** A tensor in memory that threads share. */
type SharedTensor = Pick<Tensor, 'format' | 'shape'> & { readonly patterns: PatternArray };

/** What every thread of an emulation is given. */
export interface SharedRequest {
  readonly model: string;
  readonly settings: ReadonlyMap<string, string>;
  readonly problem: Omit<Problem, 'q' | 'k' | 'v'> & {
    readonly q: SharedTensor;
    readonly k: SharedTensor;
    readonly v: SharedTensor;
  };
}

function share({ format, shape, data }: Tensor): SharedTensor {
  const source = patternsOf(data, formats[format]);
  const memory = new SharedArrayBuffer(source.byteLength);
  const View = source.constructor as new (buffer: SharedArrayBuffer) => PatternArray;
  const patterns = new View(memory);
  patterns.set(source);
  return { format, shape, patterns };
}

function unshare({ format, shape, patterns }: SharedTensor): Tensor {
  return { format, shape, data: storageOf(formats[format], patterns) };
}

/** The request with its tensors copied to shared memory. */
export function shareRequest(
  problem: Problem,
  model: string,
  settings: ReadonlyMap<string, string>,
): SharedRequest {
  const { q, k, v } = problem;
  return { model, settings, problem: { ...problem, q: share(q), k: share(k), v: share(v) } };
}

/** The model made ready, on the shared tensors themselves. */
export function prepareShared({ model, settings, problem }: SharedRequest): PreparedKernel {
  const { q, k, v } = problem;
  const tensors = { q: unshare(q), k: unshare(k), v: unshare(v) };
  return findKernelModel(model).prepare({ ...problem, ...tensors }, settings);
}
