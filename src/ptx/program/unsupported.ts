import { RequestError } from '../../request-error.js';

/** Collects the unsupported features of a program, so that all of them are reported at once. */
export interface UnsupportedCollector {
  /**
   * @param line line of the text
   * @param what instruction, directive or register
   * @param needed the feature that it would need, or the reason why it is missing
   */
  readonly add: (line: number, what: string, needed: string) => void;
  /** Throws a RequestError that names everything collected, with its lines; does nothing if there is nothing. */
  readonly check: (file: string) => void;
}

/** Maximum number of lines of one feature that a message lists; the rest are counted. */
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
