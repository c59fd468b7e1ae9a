import type { CompletedCommand, CompletedOption, Completion } from './completed-commands.js';

/** A word in fish's single quotes, in which only the backslash and the quote are special. */
function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

/** Names as one word of -a: fish splits it where a line of a shell would be split. */
function names(list: readonly string[]): string {
  return quote(list.map((name) => (/[^\w.:=/-]/.test(name) ? quote(name) : name)).join(' '));
}

/** The words -a and -r with completions of an option's value. */
function valueWords(value: Completion | null): string {
  if (value === null) return '';
  if (value.kind === 'files') return ' -r -F';
  return value.kind === 'nothing' ? ' -x' : ` -x -a ${names(value.names)}`;
}

function optionLine(condition: string, { long, short, description, value }: CompletedOption) {
  const letter = short === null ? '' : ` -s ${short.slice(1)}`;
  return `complete -c flashproof -n ${quote(condition)}${letter} -l ${long.slice(2)}${valueWords(value)} -d ${quote(description)}`;
}

function commandLines(command: CompletedCommand): string[] {
  const { name, description, options, arguments: list } = command;
  const seen = `__fish_seen_subcommand_from ${name}`;
  // Without -f, fish offers files wherever nothing else is asked for.
  const isFree = list.every(({ value }) => value.kind !== 'files');
  const first = list[0]?.value;
  return [
    `complete -c flashproof -n __fish_use_subcommand -f -a ${name} -d ${quote(description)}`,
    ...(isFree ? [`complete -c flashproof -n ${quote(seen)} -f`] : []),
    ...(first?.kind === 'names'
      ? [`complete -c flashproof -n ${quote(seen)} -a ${names(first.names)}`]
      : []),
    ...options.map((option) => optionLine(seen, option)),
  ];
}

/** A script for fish that completes commands, options, names and files. */
export function fishCompletion(
  commands: readonly CompletedCommand[],
  options: readonly CompletedOption[],
): string {
  const lines = [
    '# Completion of flashproof for fish.',
    ...options.map((option) => optionLine('__fish_use_subcommand', option)),
    ...commands.flatMap(commandLines),
  ];
  return `${lines.join('\n')}\n`;
}
