import { Argument, type Command, type OutputConfiguration } from 'commander';
import type { KernelModel } from '../../../kernels/index.js';
import type { LastingMeans } from '../../jobs/index.js';
import { addHelp, type HelpTopic } from './help-topics.js';
import { addOptions, type Completes, type OptionRows, type ParsedOptions } from './option-rows.js';
import { parserLine } from './parser-line.js';

/** The context that every command works in. */
export interface CommandContext {
  /** The available kernel models; undefined for the library's. */
  readonly models?: readonly KernelModel[] | undefined;
  /** Resources that several audits share, one after the other; none by default. */
  readonly lasting?: LastingMeans;
}

/** An argument of a command. */
export interface ArgumentRow {
  /** The argument as help shows it: `<needed>`, `[optional]`, `<several...>`. */
  readonly syntax: `<${string}>` | `[${string}]`;
  readonly description: string;
  /** Completions that a shell offers for it; `path` for paths. */
  readonly completes?: Completes | 'path';
  /** The only texts that it accepts. */
  readonly choices?: readonly string[];
}

/** The definition of a command, without its implementation. */
export interface CommandRow<Arguments extends readonly ArgumentRow[], Rows extends OptionRows> {
  readonly name: string;
  readonly description: string;
  readonly arguments: Arguments;
  readonly options: Rows;
  /** The text below the options in its help. */
  readonly details: string;
  /** Options that the help shows where they are asked for; default: it shows all. */
  readonly topics?: readonly HelpTopic<Extract<keyof Rows, string>>[];
}

/** A command, typed by its definition. */
export function commandRow<
  const Arguments extends readonly ArgumentRow[],
  const Rows extends OptionRows,
>(row: CommandRow<Arguments, Rows>): CommandRow<Arguments, Rows> {
  return row;
}

type ArgumentValue<Syntax> = Syntax extends `${string}...${string}`
  ? string[]
  : Syntax extends `[${string}`
    ? string | undefined
    : string;

/** The arguments of a command's implementation: its arguments, then its options. */
export type CommandValues<Arguments extends readonly ArgumentRow[], Rows extends OptionRows> = [
  ...{ -readonly [Index in keyof Arguments]: ArgumentValue<Arguments[Index]['syntax']> },
  ParsedOptions<Rows>,
];

/** An argument for commander, with its completion. */
export class NamedArgument extends Argument {
  readonly completes: ArgumentRow['completes'];

  constructor({ syntax, description, completes, choices }: ArgumentRow) {
    super(syntax, description);
    this.completes = completes;
    if (choices !== undefined) this.choices(choices);
  }
}

/** Makes the parser write its errors in one line. */
export function oneLine(command: string): OutputConfiguration {
  return { outputError: (text, write) => write(parserLine(text, command)) };
}

/**
 * Registers a command.
 * @param run carries it out and returns the exit status; it should import its module when called, since
 * every command registers all of them
 */
export function addCommand<Arguments extends readonly ArgumentRow[], Rows extends OptionRows>(
  program: Command,
  row: CommandRow<Arguments, Rows>,
  run: (...values: CommandValues<Arguments, Rows>) => Promise<number>,
): void {
  const command = program.command(row.name).description(row.description);
  command.configureOutput(oneLine(`flashproof ${row.name}`));
  for (const argument of row.arguments) command.addArgument(new NamedArgument(argument));
  addOptions(command, row.options);
  addHelp(command, row);
  command.action(async (...values: unknown[]) => {
    // Commander hands over as many values as there are arguments, then the options and itself.
    const given = values.slice(0, row.arguments.length + 1) as CommandValues<Arguments, Rows>;
    process.exitCode = await run(...given);
  });
}
