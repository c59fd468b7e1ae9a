import type { FormatName, Tensor } from '../../../src/formats/index.js';
import type { Problem, ProblemShape } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import type { OutFormat } from '../../online-softmax/units.js';
import type { Fa4Architecture } from '../configuration.js';
import { hasMaskMod, kernelMask } from '../features.js';

/** Every choice of FlashAttention-4's backward that changes its bits. */
export interface Fa4BackwardConfiguration {
  /** sm_90 runs the same operations with Hopper's tensor cores. */
  readonly architecture: Fa4Architecture;
  /** Thread blocks that share one MMA, and with it a chain of dQ over the keys of both. */
  readonly ctas: 1 | 2;
  /** Whether adds in memory have an order. */
  readonly deterministic: boolean;
  /** Queries of a block, and keys of a thread block. */
  readonly blockQueries: number;
  readonly blockKeys: number;
}

/** Queries of a block and keys of a thread block. Source: flash_attn/cute/interface.py. */
const blockSize = 128;
/** The head dimension from which on thread blocks work in pairs. Source: `use_2cta_instrs` in interface.py. */
const pairedHeadDim = 128;

/** Head dimensions of Q and V of the one shape beyond 128 that the kernel takes. */
const wideShape = { qkDim: 192, vDim: 128 } as const;

/**
 * The head dimension, of Q and of V, with kernels of its own: one for dQ, one for dK and dV with 64 keys to a thread block.
 * Source: `use_dedicated_hd256_kernel` in interface.py, sm100_hd256_2cta_fmha_backward.py.
 */
export const ownKernelsDim = 256;
const ownKernelsKeys = 64;

function isOutFormat(format: FormatName): format is OutFormat {
  return format === 'bf16' || format === 'fp16';
}

/**
 * The format of the operands.
 * @param dout null where it is not known yet
 * @throws RequestError for formats and sizes that the kernel has no path for
 */
export function backwardFormat(
  { q, k, v }: Problem,
  { qkDim, vDim }: ProblemShape,
  dout: Tensor | null,
): OutFormat {
  const { format } = q;
  if (!isOutFormat(format))
    throw new RequestError(`q is ${format}; the backward of fa4 takes bf16 and fp16`);
  for (const [name, tensor] of Object.entries({ k, v, ...(dout && { dout }) }))
    if (tensor.format !== format)
      throw new RequestError(`q is ${format} but ${name} is ${tensor.format}; make them equal`);
  const isWide = qkDim === wideShape.qkDim && vDim === wideShape.vDim;
  const fits = (dim: number): boolean => dim >= 8 && dim <= 128 && dim % 8 === 0;
  const hasOwnKernels = qkDim === ownKernelsDim && vDim === ownKernelsDim;
  if (!isWide && !hasOwnKernels && !(fits(qkDim) && fits(vDim)))
    throw new RequestError(
      `head dimensions ${qkDim} and ${vDim}; the backward of fa4 takes multiples of 8 from 8 to 128, 192 with 128, and 256 with 256`,
    );
  return format;
}

/**
 * Checks that a problem needs no feature that the kernels for head dimension 256 lack.
 * @throws RequestError for a window, a softcap, a mask_mod or a sink there
 */
export function checkOwnKernels(problem: Problem, { qkDim }: ProblemShape): void {
  if (qkDim !== ownKernelsDim) return;
  const lacks = Object.entries({
    'a window': kernelMask(problem).local,
    'a softcap': problem.softcap !== null,
    'a mask of its own': hasMaskMod(problem),
    'a sink': problem.sink !== undefined,
  }).flatMap(([what, isAsked]) => (isAsked ? [what] : []));
  if (lacks.length > 0)
    throw new RequestError(
      `the backward of fa4 has kernels of its own for head dimension ${ownKernelsDim}, which take no ${lacks[0].replace(/^a /, '')}`,
    );
}

/**
 * The configuration that FlashAttention-4 would run the backward of a problem in, with the choices of
 * `overrides`.
 * @throws RequestError for a configuration that the kernel does not have
 */
export function fa4BackwardConfiguration(
  { qkDim }: ProblemShape,
  overrides: Partial<Fa4BackwardConfiguration> = {},
): Fa4BackwardConfiguration {
  const configuration: Fa4BackwardConfiguration = {
    architecture: 'sm_100',
    ctas: qkDim >= pairedHeadDim ? 2 : 1,
    deterministic: qkDim === ownKernelsDim,
    blockQueries: blockSize,
    blockKeys: qkDim === ownKernelsDim ? ownKernelsKeys : blockSize,
    ...overrides,
  };
  if (qkDim === ownKernelsDim && !configuration.deterministic)
    throw new RequestError(
      `deterministic is false; the kernels for head dimension ${qkDim} add in one order always`,
    );
  const { ctas, blockQueries, blockKeys } = configuration;
  if (ctas === 2 && qkDim < pairedHeadDim)
    throw new RequestError(
      `ctas is 2; the backward of fa4 pairs thread blocks from head dimension ${pairedHeadDim} on, and this is ${qkDim}`,
    );
  if (ctas === 1 && qkDim > pairedHeadDim)
    throw new RequestError(`ctas is 1; head dimension ${qkDim} has pairs of thread blocks alone`);
  for (const [key, value] of Object.entries({
    'backward.blockQueries': blockQueries,
    'backward.blockKeys': blockKeys,
  }))
    if (!(Number.isInteger(value / 16) && value >= 16 && value <= 256))
      throw new RequestError(`${key} is ${value}; give a multiple of 16 from 16 to 256`);
  return configuration;
}
