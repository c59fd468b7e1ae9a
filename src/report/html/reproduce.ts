import { quoteShellCommand } from '../layout/index.js';
import { breakLine, element, join, type Html } from '../layout/index.js';

/** A command line that gives this report, or part of it, again. */
export interface ReproduceCommand {
  readonly purpose: string;
  readonly words: readonly string[];
}

/** Columns of a command line before it is continued on the next. */
const commandWidth = 78;

/** A command over several lines that a POSIX shell reads as one; a flag stays with its value. */
export function commandLines(words: readonly string[]): string[] {
  const groups: string[][] = [];
  for (const word of words) {
    const previous = groups.at(-1);
    const isValue = previous?.length === 1 && previous[0].startsWith('--') && !word.startsWith('-');
    if (isValue) previous.push(word);
    else groups.push([word]);
  }
  const lines: string[] = [];
  for (const group of groups.map(quoteShellCommand)) {
    const joined = lines.length === 0 ? group : `${lines.at(-1)!} ${group}`;
    if (lines.length > 0 && joined.length <= commandWidth) lines[lines.length - 1] = joined;
    else lines.push(group);
  }
  return lines.map((line, index) => (index < lines.length - 1 ? `${line} \\` : line));
}

/** Commands, to be pasted as they stand. */
export function reproduceContent(commands: readonly ReproduceCommand[]): Html {
  return join(
    ...commands.map(({ purpose, words }) =>
      join(
        element('h3', {}, purpose),
        element(
          'pre',
          { tabindex: 0 },
          element(
            'code',
            {},
            commandLines(words).flatMap((line, index) => [
              ...(index === 0 ? [] : [breakLine, '  ']),
              line,
            ]),
          ),
        ),
      ),
    ),
  );
}
