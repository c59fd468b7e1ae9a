/** How an option is written: a flag with a value, once or repeated, or a flag of either meaning. */
export type OptionWord<Options> = readonly [flag: string, value: (options: Options) => unknown];

/**
 * The words of some options. A value that begins with a hyphen is joined to its flag, which the parser
 * could take for another flag otherwise.
 */
export function wordsOf<Options>(
  options: Options,
  words: readonly OptionWord<Options>[],
): string[] {
  return words.flatMap(([flag, valueOf]) => {
    const value = valueOf(options);
    if (value === undefined) return [];
    if (typeof value === 'boolean') return [value ? flag : flag.replace('--', '--no-')];
    return (Array.isArray(value) ? value : [value])
      .map(String)
      .flatMap((text) => (text.startsWith('-') ? [`${flag}=${text}`] : [flag, text]));
  });
}
