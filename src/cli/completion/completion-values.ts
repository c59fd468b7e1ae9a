import { memoryModels } from '../../machine/index.js';
import { kernelModels, kernelVariants, noVariant } from '../../../kernels/index.js';
import { premiseNames, premisePresets, premiseWords } from '../../audit/index.js';
import { knownInstructions } from '../../conform/index.js';
import { formats } from '../../formats/index.js';
import { layouts } from '../../io/index.js';
import { quantities } from '../../problem/index.js';
import { tuningNames } from '../../profile/index.js';
import {
  lawIds,
  laws,
  regimeNames,
  scoreRegimeNames,
  sizeNames,
} from '../../../properties/index.js';
import { machineNames } from '../emulate/machine-list.js';
import type { NameKind } from '../options/option-rows.js';
import { architectureNames, techniqueNames } from '../profile/options.js';

const models = kernelModels.map(({ name }) => name);
const variants = kernelVariants.map(({ id }) => id);

/** Settings of which the values are some names. */
const settingValues: Readonly<Record<string, readonly string[]>> = {
  architecture: architectureNames,
  variant: [noVariant, ...variants],
};

/** Keys with their equals sign, and with each value where those are known; others are the user's. */
const settings = [
  ...new Set(kernelModels.flatMap((model) => model.settings.map(({ key }) => key))),
].flatMap((key) => (settingValues[key] ?? ['']).map((value) => `${key}=${value}`));

/** Presets, and every premise with each value. */
const premiseChoices = [
  ...Object.keys(premisePresets),
  ...premiseNames.flatMap((name) =>
    [...premiseWords[name].values, ...(premiseWords[name].number === null ? [] : [''])].map(
      (value) => `${name}=${value}`,
    ),
  ),
];

const formatNames = Object.keys(formats);
/** The tensors that a file of a problem has by these names; it may have others. */
const tensors = ['q', 'k', 'v', ...quantities.map(({ name }) => name)];

/**
 * The names of each kind that an option or argument takes. A name that a shell would split or expand is
 * one for its script to quote.
 */
export const completionValues: Readonly<Record<NameKind, readonly string[]>> = {
  architecture: architectureNames,
  format: formatNames,
  instruction: knownInstructions,
  'judged-name': [...models, ...Object.keys(premisePresets)],
  'kernel-model': models,
  layout: layouts,
  'listed-model': [...models, 'list'],
  'memory-model': Object.keys(memoryModels),
  multiple: sizeNames.map((name) => `${name}=`),
  mutant: machineNames(kernelModels).mutants.map(({ id }) => id),
  premise: premiseChoices,
  promise: lawIds.flatMap((id) =>
    [...laws[id].strengths, 'none'].map((strength) => `${id}=${strength}`),
  ),
  property: lawIds,
  regime: regimeNames,
  schedule: ['in-order', 'timed', 'random:', ...machineNames(kernelModels).adversarial],
  'score-regime': scoreRegimeNames,
  setting: settings,
  technique: techniqueNames,
  'tensor-format': tensors.flatMap((tensor) => formatNames.map((format) => `${tensor}=${format}`)),
  tuning: tuningNames,
  variant: variants,
};
