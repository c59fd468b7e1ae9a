import type {
  CompletedArgument,
  CompletedCommand,
  CompletedOption,
  Completion,
} from './completed-commands.js';

/** A word in single quotes. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Text within a specification of _arguments, where brackets, colons and backslashes are special. */
function escape(text: string): string {
  return text.replace(/[\\:[\]]/g, '\\$&');
}

/** The action of a specification: `:message:action`. */
function action(message: string, value: Completion): string {
  if (value.kind === 'files') return `:${message}:_files`;
  if (value.kind === 'nothing') return `:${message}: `;
  const list = value.names.map((name) => escape(name).replaceAll(/[\s()]/g, '\\$&'));
  return `:${message}:(${list.join(' ')})`;
}

function optionSpecifications({ long, short, description, value }: CompletedOption): string[] {
  const flags = short === null ? [long] : [short, long];
  return flags.map((flag) => {
    const tail = value === null ? '' : action(long.slice(2), value);
    return quote(
      `*${flag}${value !== null && flag === long ? '=' : ''}[${escape(description)}]${tail}`,
    );
  });
}

function argumentSpecification({ name, repeats, value }: CompletedArgument): string {
  return quote(`${repeats ? '*' : ''}${action(name, value)}`);
}

function branch({ name, options, arguments: list }: CompletedCommand): string {
  const specifications = [
    ...options.flatMap(optionSpecifications),
    ...list.map(argumentSpecification),
  ];
  return `    ${name})
      _arguments -s ${specifications.join(' \\\n        ')}
      ;;`;
}

/** A script for zsh, to be sourced or to lie in `fpath` as `_flashproof`. */
export function zshCompletion(
  commands: readonly CompletedCommand[],
  options: readonly CompletedOption[],
): string {
  const described = commands.map(({ name, description }) =>
    quote(`${name}:${description.replaceAll(':', '\\:')}`),
  );
  return `#compdef flashproof
# Completion of flashproof for zsh.
_flashproof() {
  local curcontext="$curcontext" state line
  local -a commands
  commands=(
    ${described.join('\n    ')}
  )
  _arguments -C ${options.flatMap(optionSpecifications).join(' ')} '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe -t commands command commands; return ;;
    argument) ;;
    *) return ;;
  esac
  case $line[1] in
${commands.map(branch).join('\n')}
  esac
}
if [[ \${funcstack[1]} == _flashproof ]]; then
  _flashproof "$@"
else
  compdef _flashproof flashproof
fi
`;
}
