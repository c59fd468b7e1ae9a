import type { Tensor } from '../../../src/formats/index.js';
import type { Problem, ProblemShape } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import type { BackwardTiling } from '../../online-softmax/backward/recipe.js';
import type { OutFormat } from '../../online-softmax/units.js';
import type { Fa3Mask } from '../mask.js';

/** Every choice of FlashAttention-3's backward that changes its bits. */
export interface Fa3BackwardConfiguration {
  /** Whether adds in memory have an order. */
  readonly deterministic: boolean;
}

/** The first head dimension that has no deterministic backward. Source: mha_bwd in hopper/flash_api.cpp. */
const unorderedDim = 256;

/** Head dimensions that FlashAttention-3 has kernels for. */
const kernelDims = [64, 96, 128, 192, 256] as const;

function kernelDim({ qkDim, vDim }: Pick<ProblemShape, 'qkDim' | 'vDim'>): number {
  return kernelDims.find((dim) => Math.max(qkDim, vDim) <= dim) ?? unorderedDim;
}

/**
 * The backward's reduction of causal and window masks to one kind. Unlike the forward it has a causal mask also for one query.
 * Source: mha_bwd in hopper/flash_api.cpp.
 */
export function fa3BackwardMask(
  { causal, window }: Pick<Problem, 'causal' | 'window'>,
  { queries, keys }: Pick<ProblemShape, 'queries' | 'keys'>,
): Fa3Mask['kind'] {
  const left = window !== null && window.left < keys - 1 ? window.left : -1;
  const given = window !== null && window.right < queries - 1 ? window.right : -1;
  const right = causal ? 0 : given;
  if (left < 0 && right <= 0) return right === 0 ? 'causal' : 'none';
  return 'local';
}

/** Queries and keys of a block. Source: run_mha_bwd_hdim… in hopper/flash_bwd_launch_template.h. */
export function fa3BackwardTiling(
  shape: Pick<ProblemShape, 'qkDim' | 'vDim'>,
  mask: Fa3Mask['kind'],
): BackwardTiling {
  switch (kernelDim(shape)) {
    case 64:
      return { queries: 128, keys: 128 };
    case 96:
      return { queries: 64, keys: 128 };
    case 128:
      return { queries: mask === 'none' ? 80 : 64, keys: 128 };
    case 192:
      return { queries: 64, keys: 96 };
    default:
      return { queries: 64, keys: 80 };
  }
}

/** Columns of a row that the threads that sum D read at a time. Source: kBlockKGmem in hopper/flash_bwd_preprocess_kernel.h. */
export function fa3ColumnsOfRow(vDim: number): number {
  const dim = kernelDim({ qkDim: vDim, vDim });
  return [128, 64].find((width) => dim % width === 0) ?? 32;
}

/**
 * The format of the operands.
 * @param dout null where it is not known yet
 * @throws RequestError for an operand of another format than Q, for head dimensions that differ, and for an order where the kernel has
 * none
 */
export function checkFa3Backward(
  { q }: Problem,
  shape: ProblemShape,
  dout: Tensor | null,
  { deterministic }: Fa3BackwardConfiguration,
): OutFormat {
  if (dout !== null && dout.format !== q.format)
    throw new RequestError(`q is ${q.format} but dout is ${dout.format}; make them equal`);
  if (shape.qkDim !== shape.vDim)
    throw new RequestError(
      `q and v have head dimensions ${shape.qkDim} and ${shape.vDim}; the backward of the fa3 model takes one for both`,
    );
  if (deterministic && kernelDim(shape) === unorderedDim)
    throw new RequestError(
      `deterministic is true; the backward of fa3 has no order for head dimension ${shape.qkDim}; leave it out`,
    );
  // The forward's configuration has refused all others.
  return q.format as OutFormat;
}
