import type { Tensor } from '../../src/formats/index.js';
import {
  architectures,
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
import { booleanValue } from '../setting-values.js';
import {
  fa2Configuration,
  kernelHeadDim,
  type Fa2Architecture,
  type Fa2Configuration,
} from './configuration.js';
import { fa2Recipe } from './recipe.js';
import { overridesOf } from './settings.js';

/** Every choice of FlashAttention-2's backward that changes its bits. */
interface Fa2BackwardConfiguration extends Pick<
  Fa2Configuration,
  'architecture' | 'build' | 'multiprocessors'
> {
  /** Whether thread blocks have a sum of dQ each, which are added in order. */
  readonly deterministic: boolean;
}

/**
 * Queries and keys of a block, by head dimension. Source: run_mha_bwd_hdim… in csrc/flash_attn/src/flash_bwd_launch_template.h of
 * Dao-AILab/flash-attention: by shared memory, of which sm_89 and sm_120 have less than 144 KB.
 */
function fa2BackwardTiling(headDim: number, architecture: Fa2Architecture): BackwardTiling {
  const isSmall = architectures[architecture].sharedBytes < 144 * 1024;
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
function columnsOfRow(vDim: number): number {
  return kernelHeadDim(vDim) % 64 === 0 ? 64 : 32;
}

/**
 * Number of thread blocks that share a head's keys, each with a sum of dQ. Source: run_flash_bwd_seqk_parallel in
 * flash_bwd_launch_template.h.
 *
 * @param problem in packed sequences each is a head's own
 */
function queryBuffers(
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
function backwardFormat({ q }: Problem, dout: Tensor | null): OutFormat {
  if (dout !== null && dout.format !== q.format)
    throw new RequestError(`q is ${q.format} but dout is ${dout.format}; make them equal`);
  // The forward's configuration has refused all others.
  return q.format as OutFormat;
}

/** Elements of 16 bits that a thread loads at a time. */
const elementsOfLoad = 8;

/**
 * FlashAttention-2's backward as a recipe: a thread block has a block of keys and goes through the queries from the last block to the
 * first; P by the build's exponentials; tiles of dQ by atomic adds, in any order, or `deterministic` in ascending order in a sum for
 * each thread block, which a last kernel adds up; dK and dV of every query head rounded, those of a group added afterwards (at::sum).
 * Sources: csrc/flash_attn/src/flash_bwd_kernel.h, flash_bwd_preprocess_kernel.h and flash_api.cpp of Dao-AILab/flash-attention; the
 * bits of the kernel that nvcc 13.0 compiles from them (docs/emulation.md).
 */
export function fa2BackwardRecipe(
  problem: Problem,
  shape: ProblemShape,
  format: OutFormat,
  configuration: Fa2BackwardConfiguration,
): BackwardRecipe {
  const { fround } = Math;
  const { architecture, build, deterministic } = configuration;
  const isFast = build === 'flash-attn';
  const softmaxScale = fround(problem.scale);
  return {
    kernel: 'fa2',
    format,
    tensorCore: findTensorCoreArithmetic({ instruction: 'mma.sync', architecture, a: format }),
    tiling: fa2BackwardTiling(shape.qkDim, architecture),
    chainOrder: 'descending',
    productSum: {
      run: elementsOfLoad,
      width: columnsOfRow,
      within: 'run-by-run',
      across: 'farthest-first',
    },
    scoreChange: null,
    weight: {
      scale: fround(softmaxScale * Math.LOG2E),
      isFused: isFast,
      unit: isFast ? 'ex2.approx.ftz.f32' : 'ex2.approx.f32',
    },
    softmaxScale,
    queryPass: 'shared',
    queryOrder: deterministic ? 'ascending' : 'any',
    queryBuffers: queryBuffers(shape, problem, configuration),
    groupOrder: 'rounded',
    groupScale: 'each',
  };
}

const settings: readonly KernelSetting[] = [
  {
    key: 'deterministic',
    description: 'whether tiles of dQ are added in an order: true or false (default)',
  },
];

/**
 * The backward's configuration and recipe for a problem under some settings.
 * @param dout null where it is not known yet
 * @throws RequestError for a problem and settings that the kernel has no path for
 */
function lawOf(problem: Problem, dout: Tensor | null, texts: KernelSettings) {
  const shape = problemShape(problem);
  const forward = fa2Configuration(problem, shape, overridesOf(texts, settings));
  const { architecture, build, multiprocessors } = forward;
  const chosen = texts.get('deterministic');
  const deterministic = chosen !== undefined && booleanValue('deterministic', chosen);
  const configuration = { architecture, build, multiprocessors, deterministic };
  const format = backwardFormat(problem, dout);
  const recipe = fa2BackwardRecipe(problem, shape, format, configuration);
  return { shape, format, forward, configuration, recipe };
}

/** Evidence for the bits of the backward, a line each. */
function evidenceOf(
  { architecture, build, deterministic }: Fa2BackwardConfiguration,
  { tensorCore }: BackwardRecipe,
): string[] {
  const isCompared = architecture === 'sm_90' && build === 'pytorch';
  return [
    `matrix products: ${tensorCoreEvidence(tensorCore)}`,
    `ex2: ${specialFunctionEvidence[architecture === 'sm_90' ? 'sm_90' : 'sm_100'].label}`,
    'fp32 add, mul and fma: IEEE 754',
    isCompared
      ? "order of operations: PyTorch's kernels; every captured gradient equals silicon: head dimensions 32 to 256, packed and grouped ones, windows"
      : 'order of operations: [model] FlashAttention-2 sources; no GPU was compared',
    deterministic
      ? 'order of the adds to dQ: ascending within a thread block, then thread block by thread block'
      : 'adds to dQ have no order: these are in ascending order, one of many that a GPU may take',
    'atomic adds flush subnormal numbers: PTX ISA on atom.add.f32',
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
    kernel: 'fa2',
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
        createForward(problem, shape, fa2Recipe(problem, shape, forward)),
      ),
  });
}

/**
 * FlashAttention-2's backward as PyTorch builds and calls it, bit for bit. Without `deterministic` the adds to dQ have no order, and
 * `run` makes them in ascending order.
 */
export const fa2Backward: BackwardModel = {
  settings,
  features: ['sequences'],
  promises: {
    formats: ['bf16', 'fp16'],
    multiples: { qkDim: 8, vDim: 8 },
  },
  prepare,
  arithmetic: (problem, texts) => {
    const { format } = lawOf(problem, null, texts);
    return {
      description: "FlashAttention-2's backward",
      delta: 'stored-output',
      p: format,
      ds: format,
      weights: 'fp32',
      partials: format,
      scaleBeforeRounding: false,
    };
  },
  candidates: [{}, { deterministic: 'true' }],
};
