import { Option, type Command } from 'commander';

/** Kinds of names that an option or argument takes; `completion/completed-commands.ts` has the names. */
export type NameKind =
  | 'architecture'
  | 'checked-kernel'
  | 'checked-variant'
  | 'dimension'
  | 'feature'
  | 'format'
  | 'gradient-premise'
  | 'instruction'
  | 'judged-name'
  | 'kernel-model'
  | 'layout'
  | 'limit'
  | 'listed-model'
  | 'memory-model'
  | 'multiple'
  | 'mutant'
  | 'premise'
  | 'problem-input'
  | 'promise'
  | 'property'
  | 'regime'
  | 'schedule'
  | 'score-regime'
  | 'setting'
  | 'technique'
  | 'tensor-format'
  | 'tuning'
  | 'variant';

/** Completions that a shell offers for a value: some names, or those of a kind, which are loaded on demand. */
export type Completes = NameKind | readonly string[];

/** Options that conflict with an option, and the message when one of them is given. */
interface Exclusion<Name extends string = string> {
  readonly options: readonly Name[];
  readonly says: string;
}

/** The options one of which an option needs, and the message when none is given. */
interface Need<Name extends string = string> {
  /** The options; empty if no single option decides it: see `rejectClashes`. */
  readonly oneOf: readonly Name[];
  readonly says: string;
}

/**
 * The definition of an option; its key is its name in the parsed options, and the flag is derived from
 * it. Without `argument` it is a flag: `--name` by `description`, `--no-name` by `without`, or both.
 */
export interface OptionRow<Name extends string = string> {
  /** The value as help shows it: `<file>`. */
  readonly argument?: `<${string}>`;
  /** One letter, for `-q`. */
  readonly short?: string;
  readonly description?: string;
  /** The description of `--no-name`; alone, the option is true until it is given. */
  readonly without?: string;
  /** Whether a flag has its opposite too, hidden from the help, to undo one in a file. */
  readonly undo?: true;
  /** The default value, as text. */
  readonly initial?: string;
  /** Whether it may be given several times, collecting the values. */
  readonly repeats?: true;
  /**
   * Parses the text, given the value of its earlier occurrences.
   * @throws InvalidArgumentError for other text
   */
  readonly parse?: (text: string, before?: never) => unknown;
  readonly completes?: Completes;
  /** Whether `-` stands for standard output, which one option alone can have. */
  readonly stdout?: true;
  /** The message when neither this option nor the other is given. */
  readonly required?: Need<Name>;
  readonly excludes?: readonly Exclusion<Name>[];
  readonly needs?: Need<Name>;
}

/** The options of a command, in the order of its help. */
export type OptionRows = Readonly<Record<string, OptionRow>>;

/** The rows, if they name only options of one another and have no extra members. */
type Checked<Rows> = {
  readonly [Key in keyof Rows]: OptionRow<Extract<keyof Rows, string>> & {
    readonly [Member in Exclude<keyof Rows[Key], keyof OptionRow>]: never;
  };
};

/** The rows of a command; the compiler reads the type of the parsed options from them. */
export function optionRows<const Rows extends Checked<Rows>>(rows: Rows): Rows {
  return rows;
}

type Value<Row> = Row extends { readonly argument: string }
  ? Row extends { readonly parse: (...texts: never[]) => infer Parsed }
    ? Parsed
    : Row extends { readonly repeats: true }
      ? readonly string[]
      : string
  : boolean;

/** The keys of options that always have a value. */
type Steady<Rows> = {
  [Key in keyof Rows]: Rows[Key] extends { readonly initial: string }
    ? Key
    : Rows[Key] extends
          { readonly argument: string } | { readonly description: string } | { readonly undo: true }
      ? never
      : Key;
}[keyof Rows];

/** The parsed options of some rows. */
export type ParsedOptions<Rows> = {
  readonly [Key in Steady<Rows>]: Value<Rows[Key]>;
} & {
  readonly [Key in Exclude<keyof Rows, Steady<Rows>>]?: Value<Rows[Key]>;
};

/** The values of some options, by key. */
export type OptionValues<Rows> = { readonly [Key in keyof Rows]?: unknown };

/** The flag of a key: `--false-alarm-rate` of `falseAlarmRate`. */
export function flagOf(key: string): string {
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The flag of the other meaning: `--no-races`. */
export function negatedFlag(key: string): string {
  return flagOf(key).replace('--', '--no-');
}

/** The value of an option that is not given. */
export function initialValue({ argument, description, undo, initial }: OptionRow): unknown {
  if (argument !== undefined || description !== undefined || undo === true) return initial;
  return true;
}

/** Whether an option is given, with a value other than its default. */
export function isGiven(row: OptionRow, value: unknown): boolean {
  return value !== undefined && value !== initialValue(row);
}

/** An option for commander, with the completion of its value. */
export class NamedOption extends Option {
  readonly completes: Completes | undefined;

  constructor(flags: string, description: string, completes?: Completes) {
    super(flags, description);
    this.completes = completes;
  }
}

function gather(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

function valueOption(flag: string, row: OptionRow): Option {
  const { short, argument, description = '', completes, repeats, initial } = row;
  const letter = short === undefined ? '' : `-${short}, `;
  const option = new NamedOption(`${letter}${flag} ${argument}`, description, completes);
  const parse = repeats === true ? gather : row.parse;
  // Commander calls it with what it returned before.
  if (parse !== undefined) option.argParser(parse as (text: string, before: unknown) => unknown);
  return initial === undefined ? option : option.default(initial);
}

/** The flags of a row without a value: the positive one first, so that two of them have no default. */
function flagOptions(key: string, row: OptionRow): Option[] {
  const { short, description, without, undo } = row;
  const letter = short === undefined ? '' : `-${short}, `;
  const hidden = (flag: string, text: string) => new NamedOption(flag, text).hideHelp();
  const positive =
    description !== undefined
      ? [new NamedOption(`${letter}${flagOf(key)}`, description)]
      : undo === true
        ? [hidden(flagOf(key), without ?? '')]
        : [];
  const negative =
    without !== undefined
      ? [new NamedOption(negatedFlag(key), without)]
      : undo === true
        ? [hidden(negatedFlag(key), description ?? '')]
        : [];
  return [...positive, ...negative];
}

/** Adds the options of rows to a command, in their order. */
export function addOptions(command: Command, rows: OptionRows): void {
  for (const [key, row] of Object.entries(rows)) {
    const options =
      row.argument === undefined ? flagOptions(key, row) : [valueOption(flagOf(key), row)];
    for (const option of options) command.addOption(option);
  }
}
