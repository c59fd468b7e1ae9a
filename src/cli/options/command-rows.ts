import { Argument, type Command } from 'commander';
import type { KernelModel } from '../../../kernels/index.js';
import type { LastingMeans } from '../../jobs/index.js';
import { addOptions, type Completes, type OptionRows, type ParsedOptions } from './option-rows.js';

/** What every command works with. */
export interface CommandContext {
  /** The kernel models that there are; undefined for the library's. */
  readonly models?: readonly KernelModel[] | undefined;
  /** What several audits have in common, one made after the other; none unless given. */
  readonly lasting?: LastingMeans;
}

/** An argument of a command. */
export interface ArgumentRow {
  /** As help shows it: `<needed>`, `[optional]`, `<several...>`. */
  readonly syntax: `<${string}>` | `[${string}]`;
  readonly description: string;
  /** What a shell offers for it; paths by `path`. */
  readonly completes?: Completes | 'path';
  /** The only texts that it may be. */
  readonly choices?: readonly string[];
}

/** All that is said of a command, but what it does. */
export interface CommandRow<Arguments extends readonly ArgumentRow[], Rows extends OptionRows> {
  readonly name: string;
  readonly description: string;
  readonly arguments: Arguments;
  readonly options: Rows;
  /** What stands below the options in its help. */
  readonly details: string;
}

/** A command, typed by what is said of it. */
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

/** What a command is called with: its arguments, then its options. */
export type CommandValues<Arguments extends readonly ArgumentRow[], Rows extends OptionRows> = [
  ...{ -readonly [Index in keyof Arguments]: ArgumentValue<Arguments[Index]['syntax']> },
  ParsedOptions<Rows>,
];

/** An argument as commander has it, with what completes it. */
export class NamedArgument extends Argument {
  readonly completes: ArgumentRow['completes'];

  constructor({ syntax, description, completes, choices }: ArgumentRow) {
    super(syntax, description);
    this.completes = completes;
    if (choices !== undefined) this.choices(choices);
  }
}

/**
 * Registers a command.
 * @param run carries it out and returns the exit status; to be imported when it is called, since every
 * command registers all of them
 */
export function addCommand<Arguments extends readonly ArgumentRow[], Rows extends OptionRows>(
  program: Command,
  row: CommandRow<Arguments, Rows>,
  run: (...values: CommandValues<Arguments, Rows>) => Promise<number>,
): void {
  const command = program.command(row.name).description(row.description);
  for (const argument of row.arguments) command.addArgument(new NamedArgument(argument));
  addOptions(command, row.options);
  command.addHelpText('after', row.details).action(async (...values: unknown[]) => {
    // Commander hands over as many values as there are arguments, then the options and itself.
    const given = values.slice(0, row.arguments.length + 1) as CommandValues<Arguments, Rows>;
    process.exitCode = await run(...given);
  });
}
