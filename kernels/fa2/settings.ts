import type { KernelSetting, KernelSettings } from '../kernel-model.js';
import { checkKeys, choiceValue, defined, givenValues, numberValue } from '../setting-values.js';
import { fa2Architectures, type Fa2Configuration, type Fa2Overrides } from './configuration.js';

/** Settings of the forward. */
export const forwardSettings: readonly KernelSetting[] = [
  { key: 'architecture', description: 'sm_80, sm_89, sm_90 (default) or sm_120' },
  {
    key: 'build',
    description: 'pytorch (default), or flash-attn: the package, with use_fast_math',
  },
  {
    key: 'splits',
    description:
      'parts of the keys whose results are combined, 1 (default) to 128; auto: as the kernel chooses',
  },
  {
    key: 'multiprocessors',
    description:
      'of the GPU, which decide how many splits auto is, and sums of dQ; default 108, 142, 132 or 170',
  },
];

/**
 * The forward's configuration choices, from settings as text by key.
 * @param others settings that there may be beside them
 * @throws RequestError for an unknown key or a bad value
 */
export function overridesOf(
  texts: KernelSettings,
  others: readonly KernelSetting[] = [],
): Fa2Overrides {
  checkKeys('fa2', [...forwardSettings, ...others], texts);
  const given = givenValues(texts);
  return defined({
    architecture: given('architecture', (key, text) => choiceValue(key, text, fa2Architectures)),
    build: given('build', (key, text) =>
      choiceValue(key, text, ['pytorch', 'flash-attn'] as const),
    ),
    splits: given('splits', (key, text) => (text === 'auto' ? text : numberValue(key, text))),
    multiprocessors: given('multiprocessors', numberValue),
  });
}

/** The configuration as settings, by key. */
export function settingsOf({ architecture, build, splits, multiprocessors }: Fa2Configuration) {
  return { architecture, build, splits, multiprocessors };
}
