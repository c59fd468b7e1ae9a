import { memoryModels } from '../machine/index.js';
import { kernelModels, kernelVariants } from '../../kernels/index.js';
import { knownInstructions } from '../conform/index.js';
import { formats } from '../formats/index.js';
import { layouts } from '../io/index.js';
import { tuningNames } from '../profile/index.js';
import { lawIds, regimeNames, scoreRegimeNames } from '../../properties/index.js';
import { adversarialNames } from './machine-schedule.js';
import { techniqueNames } from './profile.js';

const models = kernelModels.map(({ name }) => name);
/** Keys with their equals sign: what follows it is the user's. */
const settings = [
  ...new Set(kernelModels.flatMap((model) => model.settings.map(({ key }) => key))),
];
const formatNames = Object.keys(formats);

/**
 * What may follow an option, or stand for an argument, where that is one of some names: by
 * `<command> <option>` or `<command> <argument>`, or by the option alone where it means the same in every
 * command. No name has a space: a shell would split it. An option that is not here is followed by a file,
 * a number or free text.
 */
export const completionValues: Readonly<Record<string, readonly string[]>> = {
  '--kernel': models,
  '--as': models,
  '--set': settings.map((key) => `${key}=`),
  '--variant': kernelVariants.map(({ id }) => id),
  '--layout': layouts,
  '--output-format': formatNames,
  '--formats': formatNames,
  '--property': lawIds,
  '--promise': lawIds.map((id) => `${id}=`),
  'check --regime': regimeNames,
  'profile --regime': scoreRegimeNames,
  'profile --format': formatNames,
  'profile --architecture': ['sm_90', 'sm_100', 'sm_103'],
  '--tuning': tuningNames,
  '--degree': ['1', '2', '3', '4', '5'],
  '--ctas': ['1', '2'],
  '--schedule': ['in-order', 'timed', 'random:', ...adversarialNames()],
  '--model': Object.keys(memoryModels),
  'emulate model': [...models, 'list'],
  'profile technique': techniqueNames,
  'conform instruction': knownInstructions,
};
