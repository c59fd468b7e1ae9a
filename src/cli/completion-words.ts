import type { Command, Option } from 'commander';
import { completionValues } from './completion-values.js';

/** What a shell offers after an option, or for an argument. */
export type Completion =
  | { readonly kind: 'names'; readonly names: readonly string[] }
  | { readonly kind: 'files' }
  /** A number or free text, for which there is nothing to offer. */
  | { readonly kind: 'nothing' };

/** An option as completion needs it. */
export interface CompletedOption {
  /** As in `--json`. */
  readonly long: string;
  /** As in `-q`. */
  readonly short: string | null;
  readonly description: string;
  /** What follows it; null for a flag. */
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

/** Placeholders and arguments that stand for a path. */
const paths = /^<(file(\[:tensor\])?|folder|dir)>$/;
const pathArguments: readonly string[] = ['problem', 'part'];

function named(command: string, word: string): Completion | null {
  const names = completionValues[`${command} ${word}`] ?? completionValues[word];
  return names === undefined ? null : { kind: 'names', names };
}

/** What follows an option; null for a flag. */
function optionValue(command: string, { flags, long, required, optional }: Option) {
  if (!required && !optional) return null;
  const placeholder = flags.slice(flags.indexOf('<'));
  return (
    named(command, long!) ??
    ({ kind: paths.test(placeholder) ? 'files' : 'nothing' } satisfies Completion)
  );
}

function completedOption(command: string, option: Option): CompletedOption {
  const { long, short, description } = option;
  const value = optionValue(command, option);
  return { long: long!, short: short ?? null, description, value };
}

function completedCommand(command: Command): CompletedCommand {
  const name = command.name();
  // Commander adds --help by itself, and names it where it makes the text of a command's help.
  const options = command.createHelp().visibleOptions(command);
  return {
    name,
    description: command.description(),
    options: options.map((option) => completedOption(name, option)),
    arguments: command.registeredArguments.map((argument) => {
      const choices: Completion | null =
        argument.argChoices === undefined ? null : { kind: 'names', names: argument.argChoices };
      const kind = pathArguments.includes(argument.name()) ? 'files' : 'nothing';
      return {
        name: argument.name(),
        repeats: argument.variadic,
        value: choices ?? named(name, argument.name()) ?? { kind },
      };
    }),
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
  return program
    .createHelp()
    .visibleOptions(program)
    .map((option) => completedOption(program.name(), option));
}
