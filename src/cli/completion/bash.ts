import type { CompletedCommand, CompletedOption, Completion } from './completed-commands.js';

/** A word in single quotes. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function flagsOf(options: readonly CompletedOption[]): string[] {
  return options.flatMap(({ long, short }) => (short === null ? [long] : [short, long]));
}

/** Commands for a completion: names that compgen filters, files by default, or neither. */
function offer(completion: Completion): string {
  if (completion.kind === 'files') return 'return';
  if (completion.kind === 'nothing') return '_flashproof_nothing; return';
  return `_flashproof_names ${completion.names.map(quote).join(' ')}; return`;
}

/** The cases of one command: after each option that takes a value, then its arguments. */
function casesOf({ name, options, arguments: [first] }: CompletedCommand): string[] {
  const valued = options.flatMap(({ long, short, value }) => {
    if (value === null) return [];
    const patterns = flagsOf([{ long, short, description: '', value }]).map((flag) =>
      quote(`${name} ${flag}`),
    );
    return [`    ${patterns.join(' | ')}) ${offer(value)} ;;`];
  });
  return first === undefined || first.value.kind === 'files'
    ? valued
    : [...valued, `    ${quote(`${name} argument`)}) ${offer(first.value)} ;;`];
}

/**
 * A script for bash 4 or later that completes commands, options, names and files. Only a command's first
 * argument has names of its own; the words after it are files, unless the argument repeats.
 */
// eslint-disable-next-line max-lines-per-function -- one script, which is read as a whole
export function bashCompletion(
  commands: readonly CompletedCommand[],
  options: readonly CompletedOption[],
): string {
  const repeating = commands
    .filter(({ arguments: list }) => list[0]?.repeats)
    .map(({ name }) => quote(name));
  return `# Completion of flashproof for bash.
_flashproof_names() {
  local name breaks='' quote='' typed=$current
  # What was typed, without its quote or its backslashes.
  case $typed in
  \\'* | \\"*) quote=\${typed:0:1} typed=\${typed:1} ;;
  *) typed=\${typed//\\\\/} ;;
  esac
  COMPREPLY=()
  for name in "$@"; do
    [[ $name == "$typed"* ]] || continue
    if [[ -z $quote ]]; then printf -v name %q "$name"; fi
    COMPREPLY+=("$name")
  done
  if [[ \${#COMPREPLY[@]} -eq 0 ]]; then _flashproof_nothing; fi
  # The user goes on after an equals sign or a colon.
  if [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *[=:] ]]; then
    compopt -o nospace 2>/dev/null
  fi
  # bash takes what stands before the last colon or equals sign for words of their own.
  if [[ $COMP_WORDBREAKS == *:* ]]; then breaks=:; fi
  if [[ $COMP_WORDBREAKS == *=* ]]; then breaks+==; fi
  if [[ -z $quote && -n $breaks && $current == *[$breaks]* ]]; then
    COMPREPLY=("\${COMPREPLY[@]#"\${current%"\${current##*[$breaks]}"}"}")
  fi
}
_flashproof_nothing() {
  compopt +o default +o bashdefault 2>/dev/null
}
_flashproof() {
  local current=\${COMP_WORDS[COMP_CWORD]} index=$COMP_CWORD command='' place
  COMPREPLY=()
  # bash makes several words of a:b and of a=b, and of --option=value, which are two.
  while ((index > 2)) && [[ $current == [:=]* || \${COMP_WORDS[index - 1]} == [:=] ]]; do
    if [[ $current == =* && \${COMP_WORDS[index - 1]} == -* ]]; then break; fi
    if [[ \${COMP_WORDS[index - 1]} == = && \${COMP_WORDS[index - 2]} == -* ]]; then break; fi
    ((index--))
    current=\${COMP_WORDS[index]}$current
  done
  if [[ $current == = ]]; then current=''; ((index++)); fi
  local previous=\${COMP_WORDS[index - 1]}
  if [[ $previous == = ]]; then previous=\${COMP_WORDS[index - 2]}; fi
  if ((index == 1)); then
    _flashproof_names ${[...commands.map(({ name }) => name), ...flagsOf(options)].map(quote).join(' ')}
    return
  fi
  command=\${COMP_WORDS[1]}
  place="$command $previous"
  if [[ $previous != -* && $current != -* ]]; then
    case $command in
    ${repeating.length > 0 ? `${repeating.join(' | ')}) place="$command argument" ;;` : ''}
    *) ((index == 2)) && place="$command argument" ;;
    esac
  fi
  case $place in
${commands.flatMap(casesOf).join('\n')}
  esac
  [[ $current == -* ]] || return
  case $command in
${commands.map((command) => `    ${quote(command.name)}) _flashproof_names ${flagsOf(command.options).map(quote).join(' ')} ;;`).join('\n')}
  esac
}
complete -o bashdefault -o default -F _flashproof flashproof
`;
}
