import {
  flagOf,
  initialValue,
  negatedFlag,
  type OptionRows,
  type OptionValues,
} from './option-rows.js';

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
