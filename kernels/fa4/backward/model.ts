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
import type { KernelSettings } from '../../kernel-model.js';
import {
  checkStoredForward,
  preparedBackward,
} from '../../online-softmax/backward/prepared-backward.js';
import { storedForward } from '../../online-softmax/stored-forward.js';
import { hasMaskMod } from '../features.js';
import { overridesOf, settingsForward } from '../settings.js';
import { backwardFormat, checkOwnKernels, fa4BackwardConfiguration } from './configuration.js';
import { fa4BackwardEvidence, fa4BackwardFeatures } from './evidence.js';
import { fa4BackwardRecipe } from './recipe.js';
import { backwardOverrides, backwardSettings, backwardSettingsOf, ofForward } from './settings.js';

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
  { dout, forward }: BackwardInputs,
  texts: KernelSettings,
): PreparedBackward {
  checkBackwardInputs(problem, dout, forward);
  const { shape, format, configuration } = lawOf(problem, dout, texts);
  if (forward !== null) checkStoredForward('fa4', format, forward);
  return preparedBackward(problem, dout, {
    shape,
    format,
    recipe: fa4BackwardRecipe(problem, format, configuration),
    settings: backwardSettingsOf(configuration),
    evidence: fa4BackwardEvidence(problem, format, configuration),
    deterministic: configuration.deterministic,
    forward: () => forward ?? runForward(problem, texts),
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
