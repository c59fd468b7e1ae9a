import { existsSync, readdirSync } from 'node:fs';
import { join, sep } from 'node:path';

/** Characters that make a path a pattern. */
const wildcard = /[*?[]/;

/** A path in its parts: both separators on Windows, where patterns come from a shell that leaves them. */
function partsOf(pattern: string): string[] {
  return pattern.split(sep === '\\' ? /[/\\]/ : '/');
}

/** A regular expression for the wildcards of one part: `*` and `?` match any characters, `[a-c]` one of some, `[!a-c]` others. */
function matcher(part: string): RegExp {
  const source = part.replace(
    /\*|\?|\[(!?)([^\]]+)\]|[^*?[]+|\[/g,
    (token, isNegated: string | undefined, characters: string | undefined) => {
      if (token === '*') return '.*';
      if (token === '?') return '.';
      if (characters === undefined) return token.replace(/[.+^${}()|\\/\][]/g, '\\$&');
      return `[${isNegated === '!' ? '^' : ''}${characters.replace(/[\\^[]/g, '\\$&')}]`;
    },
  );
  return new RegExp(`^${source}$`, 'us');
}

/** The entries of a folder in their order; none where it cannot be read. */
function entriesOf(folder: string) {
  try {
    return readdirSync(folder === '' ? '.' : folder, { withFileTypes: true })
      .filter(({ name }) => !name.startsWith('.'))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

/** The paths below a folder that parts of a pattern match, in order; `**` is any number of folders. */
function pathsBelow(folder: string, parts: readonly string[]): string[] {
  const [part, ...rest] = parts;
  if (part === undefined) return existsSync(folder) ? [folder] : [];
  const at = (name: string) => (folder === '' ? name : join(folder, name));
  if (part === '**') {
    const folders = entriesOf(folder).filter((entry) => entry.isDirectory());
    return [
      ...pathsBelow(folder, rest),
      ...folders.flatMap(({ name }) => pathsBelow(at(name), parts)),
    ];
  }
  if (!wildcard.test(part)) return pathsBelow(part === '' ? `${folder}/` : at(part), rest);
  const pattern = matcher(part);
  return entriesOf(folder)
    .filter(({ name }) => pattern.test(name))
    .flatMap(({ name }) => pathsBelow(at(name), rest));
}

/** Whether an argument is a pattern that the shell left unexpanded: no path, and with wildcards. */
export function isPattern(argument: string): boolean {
  return wildcard.test(argument) && !existsSync(argument);
}

/**
 * The files that arguments name, in the order given, each once. A pattern gives its matches, by name,
 * hidden files left out; itself where it matches nothing, so that it has a row that says so.
 */
export function expandFiles(given: readonly string[]): readonly string[] {
  const files = given.flatMap((argument) => {
    if (!isPattern(argument)) return [argument];
    const matched = pathsBelow('', partsOf(argument));
    return matched.length === 0 ? [argument] : matched;
  });
  return [...new Set(files)];
}
