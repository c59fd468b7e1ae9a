import { RequestError } from '../../request-error.js';

/** Collects what a program asks for and is not supported, so that all of it is said at once. */
export interface UnsupportedCollector {
  /**
   * @param line of the text
   * @param what the instruction, directive or register
   * @param needed what would be needed for it, or why it is not there
   */
  readonly add: (line: number, what: string, needed: string) => void;
  /** Throws a RequestError that names everything collected with its lines; nothing if there is nothing. */
  readonly check: (file: string) => void;
}

/** The lines of one thing that a message lists; the rest are counted. */
const mostLines = 6;

export function createUnsupportedCollector(): UnsupportedCollector {
  const found = new Map<string, number[]>();
  return {
    add: (line, what, needed) => {
      const key = `${what} (${needed})`;
      const lines = found.get(key);
      if (lines === undefined) found.set(key, [line]);
      else if (!lines.includes(line)) lines.push(line);
    },
    check: (file) => {
      if (found.size === 0) return;
      const things = [...found].map(([what, lines]) => {
        const more = lines.length > mostLines ? ` and ${lines.length - mostLines} more` : '';
        const word = lines.length === 1 ? 'line' : 'lines';
        return `${word} ${lines.slice(0, mostLines).join(', ')}${more}: ${what}`;
      });
      throw new RequestError(`${file}: not supported: ${things.join('; ')}`);
    },
  };
}
