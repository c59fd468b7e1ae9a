import { RequestError } from '../../request-error.js';
import { nearClause } from '../../words/index.js';

/**
 * One of the known names.
 * @throws RequestError for any other, with all of them
 */
export function parseName<T extends string>(
  text: string,
  known: readonly T[],
  what: string,
  option: string,
): T {
  const found = known.find((name) => name === text);
  if (found === undefined)
    throw new RequestError(
      `${option} names no ${what} ${JSON.stringify(text)}${nearClause(text, known)}; choose from ${known.join(', ')}`,
    );
  return found;
}

/**
 * The names of an option that may be repeated and holds lists with commas; none twice.
 * @throws RequestError for a name that is not known
 */
export function nameList<T extends string>(
  texts: readonly string[],
  known: readonly T[],
  what: string,
  option: string,
): T[] {
  const names = texts.flatMap((text) => text.split(',')).map((text) => text.trim());
  return [...new Set(names.map((name) => parseName(name, known, what, option)))];
}
