import { RequestError } from '../../request-error.js';
import {
  flagOf,
  initialValue,
  isGiven,
  negatedFlag,
  type OptionRows,
  type OptionValues,
} from './option-rows.js';

/** Conditions of options whose needs no other option tells alone, by the key of the option. */
export type MetNeeds<Rows> = { readonly [Key in keyof Rows]?: () => boolean };

/** @throws RequestError where two options want standard output, of which the first is at `index` */
function rejectTwoOutputs(keys: readonly string[], index: number, wants: (key: string) => boolean) {
  const second = keys.slice(index + 1).find(wants);
  if (second !== undefined)
    throw new RequestError(
      `${flagOf(keys[index])} - and ${flagOf(second)} - both want standard output; name a file for one`,
    );
}

/**
 * Rejects options that do not go together, in the order of their rows: first what is missing, then what
 * two of them both want, what they exclude, and what they need.
 * @param met is called even where the option is not given, so that it may check the values it reads
 * @throws RequestError with the message of the first such row
 */
export function rejectClashes<const Rows extends OptionRows>(
  rows: Rows,
  options: OptionValues<Rows>,
  met: MetNeeds<Rows> = {},
): void {
  const has = (key: string) => isGiven(rows[key], options[key]);
  const wantsStdout = (key: string) => rows[key].stdout === true && options[key] === '-';
  const keys = Object.keys(rows);
  for (const [index, key] of keys.entries()) {
    const { required, excludes = [], needs } = rows[key];
    if (required !== undefined && !has(key) && !required.oneOf.some(has))
      throw new RequestError(required.says);
    if (wantsStdout(key)) rejectTwoOutputs(keys, index, wantsStdout);
    for (const { options: others, says } of has(key) ? excludes : [])
      if (others.some(has)) throw new RequestError(says);
    if (needs === undefined) continue;
    const isMet = met[key]?.() ?? needs.oneOf.some(has);
    if (has(key) && !isMet) throw new RequestError(needs.says);
  }
}

/**
 * The words of a command line that give some options again, in the order of the keys; none for options
 * that are not given, or given as they are without. A value that begins with a hyphen is joined to its
 * flag, which the parser could take for another flag otherwise.
 */
export function commandWords<const Rows extends OptionRows>(
  rows: Rows,
  options: OptionValues<Rows>,
  keys: readonly Extract<keyof Rows, string>[],
): string[] {
  return keys.flatMap((key) => {
    const value = options[key];
    if (value === undefined || value === initialValue(rows[key])) return [];
    if (typeof value === 'boolean') return [value ? flagOf(key) : negatedFlag(key)];
    return (Array.isArray(value) ? value : [value])
      .map(String)
      .flatMap((text) => (text.startsWith('-') ? [`${flagOf(key)}=${text}`] : [flagOf(key), text]));
  });
}
