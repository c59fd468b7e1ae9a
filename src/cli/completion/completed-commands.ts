import type { Argument, Command, Option } from 'commander';
import { NamedArgument } from '../options/command-rows.js';
import { type Completes, NamedOption, type NameKind } from '../options/option-rows.js';
import { memoryModels } from '../../machine/index.js';
import {
  kernelModels,
  kernelVariants,
  noVariant,
  recurrentFaults,
  recurrentModels,
} from '../../../kernels/index.js';
import {
  gradientPremiseNames,
  gradientPremiseWords,
  premiseNames,
  premisePresets,
  recurrentPremises,
  recurrentPresets,
  premiseWords,
} from '../../audit/index.js';
import { knownInstructions } from '../../conform/index.js';
import { formats } from '../../formats/index.js';
import { declaredFormatNames, layouts, problemInputNames } from '../../io/index.js';
import { quantities } from '../../problem/index.js';
import { tuningNames } from '../../profile/index.js';
import {
  dimensionNames,
  featureKinds,
  lawIds,
  laws,
  limitedDimensions,
  recurrentLawIds,
  recurrentLaws,
  recurrentRegimeNames,
  regimeNames,
  scoreRegimeNames,
  sizeNames,
} from '../../../properties/index.js';
import { machineNames } from '../../jobs/index.js';
import { architectureNames, techniqueNames } from '../profile/options.js';

/** The candidates that a shell offers after an option, or for an argument. */
export type Completion =
  | { readonly kind: 'names'; readonly names: readonly string[] }
  | { readonly kind: 'files' }
  /** A number or free text, which has no candidates. */
  | { readonly kind: 'nothing' };

/** An option, as completion needs it. */
export interface CompletedOption {
  /** The long flag, as in `--json`. */
  readonly long: string;
  /** The short flag, as in `-q`. */
  readonly short: string | null;
  readonly description: string;
  /** Completion of its value; null for a flag. */
  readonly value: Completion | null;
}

/** An argument as completion needs it. */
export interface CompletedArgument {
  readonly name: string;
  readonly repeats: boolean;
  readonly value: Completion;
}

/** A command as completion needs it. */
export interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletedOption[];
  readonly arguments: readonly CompletedArgument[];
}

/** Placeholders that stand for a path. */
const paths = /^<(file(\[:tensor\])?|folder|dir)>$/;

/** The names of a kind, or those that are given. */
function named(completes: Completes): Completion {
  return {
    kind: 'names',
    names: typeof completes === 'string' ? completionValues[completes] : completes,
  };
}

/** Completion of an option's value; null for a flag. */
function optionValue(option: Option): Completion | null {
  const { flags, required, optional } = option;
  if (!required && !optional) return null;
  if (option instanceof NamedOption && option.completes !== undefined)
    return named(option.completes);
  return { kind: paths.test(flags.slice(flags.indexOf('<'))) ? 'files' : 'nothing' };
}

function completedOption(option: Option): CompletedOption {
  const { long, short, description } = option;
  return { long: long!, short: short ?? null, description, value: optionValue(option) };
}

function argumentValue(argument: Argument): Completion {
  if (argument.argChoices !== undefined) return named(argument.argChoices);
  const completes = argument instanceof NamedArgument ? argument.completes : undefined;
  if (completes === undefined) return { kind: 'nothing' };
  return completes === 'path' ? { kind: 'files' } : named(completes);
}

function completedCommand(command: Command): CompletedCommand {
  // Commander adds --help by itself, and names it where it makes the text of a command's help.
  const options = command.createHelp().visibleOptions(command);
  return {
    name: command.name(),
    description: command.description(),
    options: options.map(completedOption),
    arguments: command.registeredArguments.map((argument) => ({
      name: argument.name(),
      repeats: argument.variadic,
      value: argumentValue(argument),
    })),
  };
}

/**
 * Every command of a program with its options and arguments, as commander knows them; the last is
 * `help`. Options hidden from the help are left out.
 */
export function completedCommands(program: Command): readonly CompletedCommand[] {
  const commands = program.commands.map(completedCommand);
  const names = [...commands.map(({ name }) => name), 'help'];
  const help: CompletedCommand = {
    name: 'help',
    description: 'display help for a command',
    options: [],
    arguments: [{ name: 'command', repeats: false, value: { kind: 'names', names } }],
  };
  return [...commands, help];
}

/** The options of the program itself: version and help. */
export function programOptions(program: Command): readonly CompletedOption[] {
  return program.createHelp().visibleOptions(program).map(completedOption);
}

const models = kernelModels.map(({ name }) => name);
const variants = kernelVariants.map(({ id }) => id);

/** Settings whose values are names. */
const settingValues: Readonly<Record<string, readonly string[]>> = {
  architecture: architectureNames,
  variant: [noVariant, ...variants],
};

/** Keys with their equals sign, and with each value where those are known; others are the user's. */
const settings = [
  ...new Set(
    [
      ...kernelModels.flatMap(({ settings, backward }) => [
        ...settings,
        ...(backward?.settings ?? []),
      ]),
      ...recurrentModels.flatMap(({ settings }) => settings),
    ].map(({ key }) => key),
  ),
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

/** Every property of attention and of linear attention with each promise that can be made of it. */
const promiseChoices = [
  ...new Set(
    [...Object.entries(laws), ...Object.entries(recurrentLaws)].flatMap(([id, { strengths }]) =>
      [...strengths, 'none'].map((strength) => `${id}=${strength}`),
    ),
  ),
];

const formatNames = Object.keys(formats);
/** The tensors that a file of a problem has by these names; it may have others. */
const tensors = ['q', 'k', 'v', ...quantities.map(({ name }) => name)];

const ofMachine = await machineNames(kernelModels);

/**
 * The names of each kind that an option or argument takes. The scripts quote names that a shell would
 * split or expand.
 */
export const completionValues: Readonly<Record<NameKind, readonly string[]>> = {
  architecture: architectureNames,
  'checked-kernel': [...models, ...recurrentModels.map(({ name }) => name)],
  'checked-variant': [...variants, ...recurrentFaults.map(({ id }) => id)],
  dimension: dimensionNames,
  feature: featureKinds,
  format: formatNames,
  instruction: knownInstructions,
  'judged-name': [...models, ...Object.keys(premisePresets), ...Object.keys(recurrentPresets)],
  'kernel-model': models,
  layout: layouts,
  limit: limitedDimensions.map((name) => `${name}=`),
  'listed-model': [...models, 'list'],
  'memory-model': Object.keys(memoryModels),
  multiple: sizeNames.map((name) => `${name}=`),
  mutant: ofMachine.mutants.map(({ id }) => id),
  'gradient-premise': gradientPremiseNames.flatMap((name) =>
    Object.keys(gradientPremiseWords[name].values).map((value) => `${name}=${value}`),
  ),
  premise: [...premiseChoices, ...recurrentPremises.map((name) => `${name}=`)],
  promise: promiseChoices,
  property: [...new Set([...lawIds, ...recurrentLawIds])],
  regime: [...new Set([...regimeNames, ...recurrentRegimeNames])],
  schedule: ['in-order', 'timed', 'random:', ...ofMachine.adversarial],
  'score-regime': scoreRegimeNames,
  setting: settings,
  technique: techniqueNames,
  'problem-input': problemInputNames,
  'tensor-format': tensors.flatMap((tensor) =>
    declaredFormatNames.map((format) => `${tensor}=${format}`),
  ),
  tuning: tuningNames,
  variant: variants,
};
