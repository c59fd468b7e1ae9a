import { memoryModels } from '../machine/index.js';
import { kernelModels, kernelVariants, noVariant } from '../../kernels/index.js';
import { premiseNames, premisePresets, premiseWords } from '../audit/index.js';
import { knownInstructions } from '../conform/index.js';
import { formats } from '../formats/index.js';
import { layouts } from '../io/index.js';
import { tuningNames } from '../profile/index.js';
import { lawIds, laws, regimeNames, scoreRegimeNames, sizeNames } from '../../properties/index.js';
import { machineNames } from './machine-list.js';
import { architectureNames, techniqueNames } from './profile.js';

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
const tensors = ['q', 'k', 'v', 'out', 'lse'];

/**
 * What may follow an option, or stand for an argument, where that is one of some names: by
 * `<command> <option>` or `<command> <argument>`, or by the option alone where it means the same in every
 * command. A name that a shell would split or expand is one for its script to quote. An option that is not
 * here is followed by a file, a number or free text.
 */
export const completionValues: Readonly<Record<string, readonly string[]>> = {
  '--kernel': models,
  '--as': [...models, ...Object.keys(premisePresets)],
  '--premise': premiseChoices,
  '--set': settings,
  '--variant': variants,
  '--layout': layouts,
  '--output-format': formatNames,
  '--formats': formatNames,
  '--property': lawIds,
  '--promise': lawIds.flatMap((id) =>
    [...laws[id].strengths, 'none'].map((strength) => `${id}=${strength}`),
  ),
  '--multiples': sizeNames.map((name) => `${name}=`),
  'check --regime': regimeNames,
  'profile --regime': scoreRegimeNames,
  '--format': tensors.flatMap((tensor) => formatNames.map((format) => `${tensor}=${format}`)),
  'profile --format': formatNames,
  'profile --architecture': architectureNames,
  '--tuning': tuningNames,
  '--degree': ['1', '2', '3', '4', '5'],
  '--ctas': ['1', '2'],
  '--schedule': ['in-order', 'timed', 'random:', ...machineNames(kernelModels).adversarial],
  '--mutant': machineNames(kernelModels).mutants.map(({ id }) => id),
  '--model': Object.keys(memoryModels),
  '--shard': ['auto'],
  'emulate model': [...models, 'list'],
  'profile technique': techniqueNames,
  'conform instruction': knownInstructions,
};
