import type { Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import type {
  BackwardInputs,
  BackwardModel,
  ForwardOutputs,
  PreparedBackward,
} from '../../backward/model.js';
import { checkBackwardInputs } from '../../backward/pieces.js';
import type { KernelSetting, KernelSettings } from '../../kernel-model.js';
import { preparedBackward } from '../../online-softmax/backward/prepared-backward.js';
import type { BackwardRecipe } from '../../online-softmax/backward/recipe.js';
import { log2OfE } from '../../online-softmax/backward/row-values.js';
import { storedForward } from '../../online-softmax/query-tiles.js';
import type { OutFormat } from '../../online-softmax/units.js';
import {
  booleanValue,
  checkKeys,
  choiceValue,
  defined,
  givenValues,
  numberValue,
} from '../../setting-values.js';
import { fa4TensorCore } from '../configuration.js';
import { hasMaskMod, hasScoreMod, kernelMask } from '../features.js';
import { forwardSettings, overridesOf, settingsForward } from '../settings.js';
import {
  backwardFormat,
  checkOwnKernels,
  fa4BackwardConfiguration,
  ownKernelsDim,
  type Fa4BackwardConfiguration,
} from './configuration.js';
import { fa4BackwardEvidence, fa4BackwardFeatures } from './evidence.js';

/** Settings of the backward beside those of the forward. */
const backwardSettings: readonly KernelSetting[] = [
  {
    key: 'ctas',
    description:
      'thread blocks that share a chain of dQ, 1 or 2; default 2 from head dimension 128 on',
  },
  {
    key: 'deterministic',
    description: 'whether adds in memory have an order: true or false (default)',
  },
  { key: 'backward.blockQueries', description: 'queries of a block, a multiple of 16' },
  { key: 'backward.blockKeys', description: 'keys of a thread block, a multiple of 16' },
];

/** The forward's part of settings, as text by key. */
function ofForward(texts: KernelSettings): KernelSettings {
  const own = new Set(backwardSettings.map(({ key }) => key));
  return new Map([...texts].filter(([key]) => !own.has(key)));
}

/**
 * The backward's configuration choices, from settings as text by key. @throws RequestError for an unknown key or a
 * bad value
 */
function backwardOverrides(texts: KernelSettings): Partial<Fa4BackwardConfiguration> {
  checkKeys('fa4', [...forwardSettings, ...backwardSettings], texts);
  const given = givenValues(texts);
  return defined({
    architecture: overridesOf(texts).architecture,
    ctas: given('ctas', (key, text) => (choiceValue(key, text, ['1', '2']) === '1' ? 1 : 2)),
    deterministic: given('deterministic', booleanValue),
    blockQueries: given('backward.blockQueries', numberValue),
    blockKeys: given('backward.blockKeys', numberValue),
  });
}

/** A configuration as settings, by key. */
function backwardSettingsOf({
  architecture,
  ctas,
  deterministic,
  blockQueries,
  blockKeys,
}: Fa4BackwardConfiguration): Record<string, string | number | boolean> {
  return {
    architecture,
    ctas,
    deterministic,
    'backward.blockQueries': blockQueries,
    'backward.blockKeys': blockKeys,
  };
}

/** Elements of 16 bits that a thread loads at a time. */
const elementsOfLoad = 8;

/**
 * Columns that the threads of a row load at a time: the widest of 128, 64 and 32 that divides the head dimension,
 * filled up to a multiple of 32. Source: `gmem_k_block_size` in flash_bwd_preprocess.py.
 */
function columnsOfRow(vDim: number): number {
  const filled = 32 * Math.ceil(vDim / 32);
  return [128, 64].find((width) => filled % width === 0) ?? 32;
}

/**
 * FlashAttention-4's backward as a recipe. The scale of the exponents is an fp32 product of the scale and log2 e; with a softcap the scale is applied to the
 * scores before it, and the exponents have log2 e alone. Without a fixed order (`deterministic`), tiles of dQ, and dK and dV of the heads of a group, are
 * added as they come; with one, tiles in ascending order of keys, in descending order for causal and window masks, heads in ascending order. For head
 * dimension 256 dQ has a kernel of its own, and the heads of a group are one chain. Sources: flash_bwd_sm100.py (`softmax_scale_log2`, `spt`,
 * `_dq_semaphore_lock_value`, `epilogue_dK_or_dV_tma`), flash_bwd_postprocess.py, sm100_hd256_2cta_fmha_backward_dqkernel.py and …_dkdvkernel.py, and
 * interface.py of flash_attn/cute in Dao-AILab/flash-attention.
 */
export function fa4BackwardRecipe(
  problem: Problem,
  format: OutFormat,
  { architecture, ctas, deterministic, blockQueries, blockKeys }: Fa4BackwardConfiguration,
): BackwardRecipe {
  const { fround } = Math;
  const softmaxScale = fround(problem.scale);
  const isModified = hasScoreMod(problem);
  const { causal, local } = kernelMask(problem);
  const hasOwnKernels = problem.q.shape[problem.q.shape.length - 1] === ownKernelsDim;
  const order = (causal || local) && !hasOwnKernels ? 'descending' : 'ascending';
  return {
    kernel: 'fa4',
    format,
    tensorCore: fa4TensorCore(architecture, format),
    tiling: { queries: blockQueries, keys: blockKeys * ctas },
    chainOrder: 'ascending',
    productSum: {
      run: elementsOfLoad,
      width: columnsOfRow,
      within: 'column-by-column',
      across: 'nearest-first',
    },
    scoreChange: isModified
      ? { scale: softmaxScale, softcap: problem.softcap, fusesAddend: false }
      : null,
    weight: {
      scale: isModified ? log2OfE : fround(softmaxScale * log2OfE),
      isFused: true,
      unit: 'ex2.approx.ftz.f32',
    },
    softmaxScale,
    queryPass: hasOwnKernels ? 'own' : 'shared',
    queryOrder: deterministic ? order : 'any',
    queryBuffers: 1,
    groupOrder: hasOwnKernels ? 'chain' : deterministic ? 'ascending' : 'any',
    groupScale: 'sum',
  };
}

/** The forward outputs that are stored for a problem. */
function runForward(problem: Problem, texts: KernelSettings): ForwardOutputs {
  const { forward } = settingsForward(problem, ofForward(texts));
  return storedForward(forward.shape, forward.configuration.outFormat, forward);
}

function checkSink({ sink }: Problem): void {
  if (sink?.inLse === false)
    throw new RequestError('fa4 has the sink in its LSE; say that the LSE has it, or leave it out');
}

/**
 * The backward's format and configuration for a problem under some settings.
 * @param dout null where it is not known yet
 * @throws RequestError for a problem and settings that the kernel has no path for
 */
function lawOf(problem: Problem, dout: Tensor | null, texts: KernelSettings) {
  const shape = problemShape(problem);
  checkSink(problem);
  const format = backwardFormat(problem, shape, dout);
  checkOwnKernels(problem, shape);
  const stored = overridesOf(texts).outFormat;
  if (stored !== undefined && stored !== format)
    throw new RequestError(
      `out.format is ${stored}; the backward of fa4 reads ${format}, as q is; leave it out`,
    );
  const configuration = fa4BackwardConfiguration(shape, backwardOverrides(texts));
  return { shape, format, configuration };
}

function prepare(
  problem: Problem,
  inputs: BackwardInputs,
  texts: KernelSettings,
): PreparedBackward {
  const { dout } = inputs;
  checkBackwardInputs(problem, dout, inputs.forward);
  const { shape, format, configuration } = lawOf(problem, dout, texts);
  return preparedBackward(problem, inputs, {
    kernel: 'fa4',
    shape,
    format,
    recipe: fa4BackwardRecipe(problem, format, configuration),
    settings: backwardSettingsOf(configuration),
    evidence: fa4BackwardEvidence(problem, format, configuration),
    deterministic: configuration.deterministic,
    forward: () => runForward(problem, texts),
    diagonal: !hasMaskMod(problem),
  });
}

/**
 * FlashAttention-4's backward for Blackwell, bit for bit: its preprocess, main and postprocess kernels. Without
 * `deterministic` the adds in memory have no order, and `run` makes them in ascending order.
 */
export const fa4Backward: BackwardModel = {
  settings: backwardSettings,
  features: fa4BackwardFeatures,
  promises: {
    formats: ['bf16', 'fp16'],
    sizes: { qkDim: { max: 128 }, vDim: { max: 128 } },
    multiples: { qkDim: 8, vDim: 8 },
  },
  prepare,
  arithmetic: (problem, texts) => {
    const { format } = lawOf(problem, null, texts);
    return {
      description: "FlashAttention-4's backward",
      delta: 'stored-output',
      p: format,
      ds: format,
      weights: 'fp32',
      partials: 'fp32',
      scaleBeforeRounding: false,
    };
  },
  candidates: [{}, { deterministic: 'true' }, { ctas: '1' }, { ctas: '1', deterministic: 'true' }],
};
