import type { KernelSetting, KernelSettings } from '../../kernel-model.js';
import {
  booleanValue,
  checkKeys,
  choiceValue,
  defined,
  numberValue,
} from '../../setting-values.js';
import { forwardSettings, overridesOf } from '../settings.js';
import type { Fa4BackwardConfiguration } from './configuration.js';

/** Settings of the backward beside those of the forward. */
export const backwardSettings: readonly KernelSetting[] = [
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
export function ofForward(texts: KernelSettings): KernelSettings {
  const own = new Set(backwardSettings.map(({ key }) => key));
  return new Map([...texts].filter(([key]) => !own.has(key)));
}

/**
 * The backward's configuration choices, from settings as text by key. @throws RequestError for an unknown key or a
 * bad value
 */
export function backwardOverrides(texts: KernelSettings): Partial<Fa4BackwardConfiguration> {
  checkKeys('fa4', [...forwardSettings, ...backwardSettings], texts);
  const given = <T>(key: string, parse: (key: string, text: string) => T): T | undefined => {
    const text = texts.get(key);
    return text === undefined ? undefined : parse(key, text);
  };
  return defined({
    architecture: overridesOf(texts).architecture,
    ctas: given('ctas', (key, text) => (choiceValue(key, text, ['1', '2']) === '1' ? 1 : 2)),
    deterministic: given('deterministic', booleanValue),
    blockQueries: given('backward.blockQueries', numberValue),
    blockKeys: given('backward.blockKeys', numberValue),
  });
}

/** A configuration as settings, by key. */
export function backwardSettingsOf({
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
