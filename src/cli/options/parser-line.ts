/**
 * The parser's message in the one line that every other refusal has: what is wrong, what is near, and where help is.
 * @param text the parser's: "error: unknown option '--laws'\n(Did you mean --as?)\n"
 * @param command the words that help is asked by: "flashproof audit"
 */
export function parserLine(text: string, command: string): string {
  const [what, ...more] = text
    .trim()
    .replace(/^error: /, '')
    .split('\n');
  const near = more.flatMap((line) => {
    const [, names] = /^\(Did you mean (.*)\?\)$/.exec(line) ?? [];
    return names === undefined ? [] : [`; did you mean ${names}`];
  });
  return `flashproof: ${what.replace(/\.$/, '')}${near.join('')}; see ${command} --help\n`;
}
