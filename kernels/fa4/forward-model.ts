import type { Problem } from '../../src/problem/index.js';
import { kernelModel } from '../kernel-features.js';
import type { KernelModel } from '../kernel-model.js';
import { preparedForward } from '../online-softmax/prepared-forward.js';
import { checkKeys } from '../setting-values.js';
import type { AttributedKernel } from '../techniques.js';
import { fa4Arithmetic, fa4Exponentials, fa4Premises } from './arithmetic.js';
import { attributedFa4Kernel, checkAttributedVariant } from './attributed.js';
import { fa4Backward } from './backward/model.js';
import type { Fa4Format, Fa4Overrides } from './configuration.js';
import { fa4Candidates, fa4Evidence, fa4Promises } from './declarations.js';
import { fa4FeatureEvidence } from './feature-evidence.js';
import { fa4Features } from './features.js';
import { fa4Program } from './machine-program.js';
import {
  fa4SettingsConfiguration,
  forwardSettings,
  overridesOf,
  settingsForward,
  settingsOf,
} from './settings.js';
import { noVariant } from './variants/index.js';

/**
 * The forward on a problem with techniques that can be emulated or exact.
 *
 * @param overrides choices that differ from FlashAttention-4's for this problem
 * @throws RequestError as `createAttributedForward`
 */
export function attributeFa4(problem: Problem, overrides: Fa4Overrides = {}): AttributedKernel {
  return attributedFa4Kernel(problem, overrides, settingsOf);
}

/** FlashAttention-4's forward for Blackwell, bit for bit. */
export const fa4Model: KernelModel = kernelModel({
  name: 'fa4',
  description: "FlashAttention-4's forward, instruction by instruction, bit for bit",
  settings: forwardSettings,
  features: fa4Features,
  emulated: ['scales'],
  prepare: (problem, texts) => {
    const { forward, variant } = settingsForward(problem, texts);
    const { configuration, shape } = forward;
    const format = problem.q.format as Fa4Format;
    return preparedForward(forward, {
      shape,
      outFormat: configuration.outFormat,
      settings: { ...settingsOf(configuration), variant: variant?.id ?? noVariant },
      evidence: [
        ...fa4Evidence(configuration.architecture, format, configuration.splits),
        ...fa4FeatureEvidence(problem),
        ...(variant === null ? [] : [`variant ${variant.id}: ${variant.source}`]),
      ],
    });
  },
  attribute: (problem, texts) => {
    checkKeys('fa4', forwardSettings, texts);
    checkAttributedVariant(texts);
    return attributeFa4(problem, overridesOf(texts));
  },
  arithmetic: (problem, texts) => fa4Arithmetic(problem, fa4SettingsConfiguration(problem, texts)),
  premises: fa4Premises,
  promises: fa4Promises,
  candidates: fa4Candidates,
  unlagged: { 'rescale.threshold': '0' },
  exponentials: (problem, texts) => fa4Exponentials(fa4SettingsConfiguration(problem, texts)),
  program: fa4Program(fa4SettingsConfiguration),
  backward: fa4Backward,
});
