import { canRedraw } from './progress.js';

/** How a report is to look where it goes. */
export interface TerminalLooks {
  /** Whether to use ANSI colours. */
  readonly color: boolean;
  /** Whether to draw lines of block characters. */
  readonly sparklines: boolean;
  /** Terminal columns that a report may take. */
  readonly columns: number;
}

/** Columns where nothing says how many there are, and the most that read well. */
const usualColumns = 80;
const mostColumns = 100;

/** An environment variable; undefined for one that is empty, which is as if it were not there. */
function given(environment: NodeJS.ProcessEnv, name: string): string | undefined {
  const value = environment[name];
  return value === '' ? undefined : value;
}

/** Whether the locale (POSIX: LC_ALL, or else LC_CTYPE, or else LANG) or Windows Terminal has UTF-8. */
function hasUtf8(environment: NodeJS.ProcessEnv): boolean {
  const locale =
    given(environment, 'LC_ALL') ?? given(environment, 'LC_CTYPE') ?? given(environment, 'LANG');
  return locale === undefined
    ? given(environment, 'WT_SESSION') !== undefined
    : /utf-?8/i.test(locale);
}

/** The stream's columns; into a pipe those of COLUMNS, if that is a number. */
function columnsOf(stream: NodeJS.WriteStream, environment: NodeJS.ProcessEnv): number {
  const text = given(environment, 'COLUMNS') ?? '';
  const wished = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : usualColumns;
  return Math.min(stream.columns ?? wished, mostColumns);
}

/**
 * How to write to a stream. Colours and sparklines are for a terminal that does not call itself dumb.
 * FORCE_COLOR decides in its place: 0 is neither of them, anything else both. NO_COLOR (anything but
 * empty) takes the colours away, and FORCE_COLOR its say. Sparklines need UTF-8 too, unless they are
 * forced.
 */
export function terminalLooks(
  stream: NodeJS.WriteStream,
  environment = process.env,
): TerminalLooks {
  const noColor = given(environment, 'NO_COLOR') !== undefined;
  const force = noColor ? undefined : given(environment, 'FORCE_COLOR');
  const isTerminal = force === undefined ? canRedraw(stream, environment) : force !== '0';
  return {
    color: isTerminal && !noColor,
    sparklines: isTerminal && (force !== undefined || hasUtf8(environment)),
    columns: columnsOf(stream, environment),
  };
}
