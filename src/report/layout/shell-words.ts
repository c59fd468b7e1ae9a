import { displayWidth } from '../../words/index.js';

/** A word that a POSIX shell reads unchanged. */
const plainWord = /^[\w@%+=:,./-]+$/;

/** A word as a POSIX shell reads it back: unchanged where possible, otherwise in single quotes. */
function quoteShellWord(word: string): string {
  return plainWord.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A command line for a POSIX shell that gives exactly these words. */
export function quoteShellCommand(words: readonly string[]): string {
  return words.map(quoteShellWord).join(' ');
}

/**
 * The command line over several lines of at most `width` terminal columns, each except the last
 * continued by a backslash, ready to paste. A word that is wider has a line of its own.
 */
export function wrapShellCommand(words: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const word of words.map(quoteShellWord)) {
    const joined = lines.length === 0 ? word : `${lines.at(-1)!} ${word}`;
    // Two columns for the backslash.
    if (lines.length > 0 && displayWidth(joined) <= width - 2) lines[lines.length - 1] = joined;
    else lines.push(word);
  }
  return lines.map((line, index) => (index < lines.length - 1 ? `${line} \\` : line));
}
