import { RequestError } from '../../request-error.js';
import { nearClause, nearNames } from '../../words/index.js';

/**
 * The names there are, behind what is said of one that is none of them: all, or the nearest where there are too many to read.
 *
 * @param listing the command that lists them; undefined where they are few
 */
export function choiceClause(
  text: string,
  known: readonly string[],
  listing: string | undefined,
): string {
  if (listing === undefined) return `${nearClause(text, known)}; choose from ${known.join(', ')}`;
  const near = nearNames(text, known, 3);
  const clause = near.length === 0 ? '' : `; did you mean ${near.join(' or ')}`;
  return `${clause}; ${listing} lists all ${known.length}`;
}

/**
 * One of the known names.
 * @param listing as `choiceClause` takes it
 * @throws RequestError for any other, with all of them or the nearest
 */
export function parseName<T extends string>(
  text: string,
  known: readonly T[],
  what: string,
  option: string,
  listing?: string,
): T {
  const found = known.find((name) => name === text);
  if (found === undefined)
    throw new RequestError(
      `${option} names no ${what} ${JSON.stringify(text)}${choiceClause(text, known, listing)}`,
    );
  return found;
}

/**
 * The names of an option that may be repeated and holds lists with commas; none twice.
 * @param listing as `choiceClause` takes it
 * @throws RequestError for a name that is not known
 */
export function nameList<T extends string>(
  texts: readonly string[],
  known: readonly T[],
  what: string,
  option: string,
  listing?: string,
): T[] {
  const names = texts.flatMap((text) => text.split(',')).map((text) => text.trim());
  return [...new Set(names.map((name) => parseName(name, known, what, option, listing)))];
}
