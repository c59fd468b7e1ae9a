import type { Tensor } from '../../src/formats/index.js';
import {
  findTensorCoreArithmetic,
  specialFunctionEvidence,
  tensorCoreEvidence,
} from '../../src/hardware/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type { BackwardInputs, BackwardModel, PreparedBackward } from '../backward/model.js';
import { checkBackwardInputs } from '../backward/pieces.js';
import type { KernelSetting, KernelSettings } from '../kernel-model.js';
import { preparedBackward } from '../online-softmax/backward/prepared-backward.js';
import type { BackwardRecipe, BackwardTiling } from '../online-softmax/backward/recipe.js';
import { createForward } from '../online-softmax/forward.js';
import { storedForward } from '../online-softmax/query-tiles.js';
import type { OutFormat } from '../online-softmax/units.js';
import { booleanValue, checkKeys } from '../setting-values.js';
import { fa3Configuration } from './configuration.js';
import type { Fa3Mask } from './mask.js';
import { fa3Recipe } from './recipe.js';

/** Every choice of FlashAttention-3's backward that changes its bits. */
interface Fa3BackwardConfiguration {
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
function checkFa3Backward(
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

/** Elements of 16 bits that a thread loads at a time. */
const elementsOfLoad = 8;

/**
 * FlashAttention-3's backward on Hopper as a recipe: a thread block has a block of keys and goes through the queries from the first block
 * to the last; products by wgmma, P and dS rounded between them; tiles of dQ added in fp32 memory, in any order, or `deterministic` in
 * ascending order, with a causal mask in descending order; dK and dV of the heads of a group added likewise, from the first head to the
 * last, dK of each scaled before. Sources: hopper/mainloop_bwd_sm90_tma_gmma_ws.hpp (`store_dq`), hopper/epilogue_bwd.hpp,
 * hopper/flash_bwd_preprocess_kernel.h and hopper/flash_bwd_launch_template.h of Dao-AILab/flash-attention (commit 0251105a, August 2026),
 * and their compilation by nvcc 13.0.
 */
export function fa3BackwardRecipe(
  problem: Problem,
  shape: ProblemShape,
  format: OutFormat,
  { deterministic }: Fa3BackwardConfiguration,
): BackwardRecipe {
  const { fround } = Math;
  const softmaxScale = fround(problem.scale);
  const mask = fa3BackwardMask(problem, shape);
  return {
    kernel: 'fa3',
    format,
    tensorCore: findTensorCoreArithmetic({
      instruction: 'wgmma',
      architecture: 'sm_90',
      a: format,
    }),
    tiling: fa3BackwardTiling(shape, mask),
    chainOrder: 'ascending',
    productSum: {
      run: elementsOfLoad,
      width: fa3ColumnsOfRow,
      within: 'run-by-run',
      across: 'farthest-first',
    },
    scoreChange: null,
    weight: {
      scale: fround(softmaxScale * Math.LOG2E),
      isFused: true,
      unit: 'ex2.approx.ftz.f32',
    },
    softmaxScale,
    queryPass: 'shared',
    queryOrder: !deterministic ? 'any' : mask === 'causal' ? 'descending' : 'ascending',
    queryBuffers: 1,
    groupOrder: deterministic ? 'ascending' : 'any',
    groupScale: 'each',
  };
}

const settings: readonly KernelSetting[] = [
  {
    key: 'deterministic',
    description:
      'whether tiles of dQ, and dK and dV of a group, are added in an order: true or false (default)',
  },
];

/**
 * The backward's configuration and recipe for a problem under some settings.
 * @param dout null where it is not known yet
 * @throws RequestError for a problem and settings that the kernel has no path for
 */
function lawOf(problem: Problem, dout: Tensor | null, texts: KernelSettings) {
  checkKeys('fa3', settings, texts);
  const shape = problemShape(problem);
  const forward = fa3Configuration(problem, shape);
  const chosen = texts.get('deterministic');
  const configuration = {
    deterministic: chosen !== undefined && booleanValue('deterministic', chosen),
  };
  const format = checkFa3Backward(problem, shape, dout, configuration);
  const recipe = fa3BackwardRecipe(problem, shape, format, configuration);
  return { shape, format, forward, configuration, recipe };
}

/** Evidence for the bits of the backward, a line each. */
function evidenceOf(
  { deterministic }: Fa3BackwardConfiguration,
  { tensorCore }: BackwardRecipe,
): string[] {
  return [
    `matrix products: ${tensorCoreEvidence(tensorCore)}`,
    `ex2: ${specialFunctionEvidence.sm_90.label}`,
    'fp32 add, mul and fma: IEEE 754',
    'order of operations: compiled kernel (commit 0251105a, nvcc 13.0); every captured gradient equals silicon: head dimensions 64 and 128',
    deterministic
      ? 'order of the adds in memory: as the semaphores of the kernel order them'
      : 'adds in memory have no order: these are in ascending order, one of many that a GPU may take',
    'adds in memory flush subnormal numbers: PTX ISA on cp.reduce.async.bulk',
  ];
}

function prepare(
  problem: Problem,
  inputs: BackwardInputs,
  texts: KernelSettings,
): PreparedBackward {
  const { dout } = inputs;
  checkBackwardInputs(problem, dout, inputs.forward);
  const { shape, format, forward, configuration, recipe } = lawOf(problem, dout, texts);
  return preparedBackward(problem, inputs, {
    kernel: 'fa3',
    shape,
    format,
    recipe,
    settings: { ...configuration },
    evidence: evidenceOf(configuration, recipe),
    deterministic: configuration.deterministic,
    forward: () =>
      storedForward(
        shape,
        format,
        createForward(problem, shape, fa3Recipe(problem, shape, forward)),
      ),
  });
}

/**
 * FlashAttention-3's backward on Hopper, bit for bit: its preprocess, main and postprocess kernels. Without `deterministic` the adds in
 * memory have no order, and `run` makes them in ascending order.
 */
export const fa3Backward: BackwardModel = {
  settings,
  features: [],
  promises: {
    formats: ['bf16', 'fp16'],
    multiples: { qkDim: 8, vDim: 8 },
  },
  prepare,
  arithmetic: (problem, texts) => {
    const { format } = lawOf(problem, null, texts);
    return {
      description: "FlashAttention-3's backward",
      delta: 'stored-output',
      p: format,
      ds: format,
      weights: 'fp32',
      partials: 'fp32',
      scaleBeforeRounding: false,
    };
  },
  candidates: [{}, { deterministic: 'true' }],
};
