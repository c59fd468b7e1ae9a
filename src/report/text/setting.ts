import {
  layoutTable,
  wrapText,
  type Alignment,
  type Painter,
  type Section,
  type TableRow,
  type Tone,
} from '../layout/index.js';

/** Options for rendering a report. */
export interface RenderOptions {
  /** Whether to use ANSI colours; the environment is not consulted. Default: no. */
  readonly color?: boolean;
  /** Maximum number of terminal columns of a line; fewer than 60 count as 60. Default: 80. */
  readonly columns?: number;
}

/** Minimum number of columns that the tables need. */
const fewestColumns = 60;

/** SGR parameters of ECMA-48 that begin and end each tone: bold, red, green. */
const styles: Readonly<Record<Tone, readonly [begin: number, end: number]>> = {
  heading: [1, 22],
  failure: [31, 39],
  success: [32, 39],
};

const painters: Readonly<Record<'color' | 'plain', Painter>> = {
  // Whether to colour is the caller's decision, so neither the stream nor NO_COLOR is examined.
  color: (tone, text) => `\u001b[${styles[tone][0]}m${text}\u001b[${styles[tone][1]}m`,
  plain: (_, text) => text,
};

/** The setting of a report: its tables, its width, its colours. */
export interface Setting {
  readonly columns: number;
  readonly paint: Painter;
  /** Rows as lines. */
  readonly table: (rows: readonly TableRow[], alignments?: readonly Alignment[]) => string[];
  /** A section as lines; none for null. */
  readonly section: (section: Section | null) => string[];
  /** A text as lines, indented by two. */
  readonly indented: (text: string) => string[];
}

/**
 * The requested setting.
 * @param fewest minimum number of columns
 */
export function settingOf(options: RenderOptions, fewest = fewestColumns): Setting {
  const columns = Math.max(fewest, Math.floor(options.columns ?? 80));
  const paint = painters[options.color === true ? 'color' : 'plain'];
  const table: Setting['table'] = (rows, alignments = []) =>
    layoutTable(rows, { alignments, width: columns, paint });
  return {
    columns,
    paint,
    table,
    section: (section) =>
      section === null
        ? []
        : table(section.rows, ['left', ...new Array<'right'>(section.numberColumns).fill('right')]),
    indented: (text) => wrapText(text, columns - 2).map((line) => `  ${line}`),
  };
}

/** Blocks of lines with an empty line between them, newline at the end; empty blocks are left out. */
export function joinBlocks(blocks: readonly (readonly string[])[]): string {
  return blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map((line) => `${line.trimEnd()}\n`).join(''))
    .join('\n');
}

/** A verdict's lines, with their first word painted. */
export function paintVerdict(
  [first = '', ...rest]: readonly string[],
  word: string,
  isPass: boolean,
  { paint }: Setting,
): string[] {
  return [paint(isPass ? 'success' : 'failure', word) + first.slice(word.length), ...rest];
}
