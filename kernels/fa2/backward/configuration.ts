import type { Tensor } from '../../../src/formats/index.js';
import type { Problem, ProblemShape } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import type { BackwardTiling } from '../../online-softmax/backward/recipe.js';
import type { OutFormat } from '../../online-softmax/units.js';
import { kernelHeadDim, type Fa2Architecture, type Fa2Configuration } from '../configuration.js';

/** Every choice of FlashAttention-2's backward that changes its bits. */
export interface Fa2BackwardConfiguration extends Pick<
  Fa2Configuration,
  'architecture' | 'build' | 'multiprocessors'
> {
  /** Whether thread blocks have a sum of dQ each, which are added in order. */
  readonly deterministic: boolean;
}

/**
 * Queries and keys of a block, by head dimension. Source: run_mha_bwd_hdim… in csrc/flash_attn/src/flash_bwd_launch_template.h of
 * Dao-AILab/flash-attention: by shared memory, which is small on sm_89.
 */
export function fa2BackwardTiling(headDim: number, architecture: Fa2Architecture): BackwardTiling {
  const isSmall = architecture === 'sm_89';
  switch (kernelHeadDim(headDim)) {
    case 32:
      return { queries: 128, keys: 128 };
    case 64:
      return { queries: isSmall ? 64 : 128, keys: 128 };
    case 96:
      return { queries: 64, keys: 128 };
    case 128:
      return { queries: 64, keys: isSmall ? 64 : 128 };
    case 192:
      return { queries: 64, keys: 64 };
    default:
      return { queries: 64, keys: isSmall ? 32 : 64 };
  }
}

/** Columns of a row that the threads that sum D read at a time. Source: kBlockKSmem in kernel_traits.h. */
export function columnsOfRow(vDim: number): number {
  return kernelHeadDim(vDim) % 64 === 0 ? 64 : 32;
}

/**
 * Number of thread blocks that share a head's keys, each with a sum of dQ. Source: run_flash_bwd_seqk_parallel in
 * flash_bwd_launch_template.h.
 *
 * @param problem in packed sequences each is a head's own
 */
export function queryBuffers(
  { batch, heads }: Pick<ProblemShape, 'batch' | 'heads'>,
  problem: Pick<Problem, 'sequences'>,
  { deterministic, multiprocessors }: Fa2BackwardConfiguration,
): number {
  const sequences = problem.sequences?.length ?? batch;
  return deterministic ? Math.ceil(multiprocessors / (sequences * heads)) : 1;
}

/**
 * The format of the operands.
 * @param dout null where it is not known yet
 * @throws RequestError for an operand of another format than Q
 */
export function backwardFormat({ q }: Problem, dout: Tensor | null): OutFormat {
  if (dout !== null && dout.format !== q.format)
    throw new RequestError(`q is ${q.format} but dout is ${dout.format}; make them equal`);
  // The forward's configuration has refused all others.
  return q.format as OutFormat;
}
