import type { PtxModule, SourcePosition, Statement } from './module.js';

/** A place in the source that the compiler read. */
export interface SourceLine {
  /** Name in `.file`. */
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** Place at which the function that it is in has been inlined; null where it has not. */
  readonly inlinedAt: Omit<SourceLine, 'inlinedAt'> | null;
}

/** A run's name for a place of the program: an instruction, or its action, at a line of the PTX. */
export function siteAt(line: number, what: string): string {
  return `line ${line}: ${what}`;
}

/** The line of the PTX of a site; null for a text that `siteAt` has not made. */
export function lineOfSite(site: string): number | null {
  const [, line] = /^line (\d+): /.exec(site) ?? [];
  return line === undefined ? null : Number(line);
}

/** The source of each line of the PTX that has an instruction, by `.loc`; lines before the first `.loc` have none. */
export function sourceLines({ functions, files }: PtxModule): ReadonlyMap<number, SourceLine> {
  const lines = new Map<number, SourceLine>();
  const named = ({ file, line, column }: SourcePosition) => ({
    file: files.get(file) ?? `file ${file}`,
    line,
    column,
  });
  let current: SourceLine | null = null;
  function follow(statements: readonly Statement[]): void {
    for (const statement of statements) {
      if (statement.kind === 'location') {
        const { inlinedAt } = statement;
        current = {
          ...named(statement),
          inlinedAt: inlinedAt === null ? null : named(inlinedAt),
        };
      } else if (statement.kind === 'block') follow(statement.statements);
      else if (statement.kind === 'instruction' && current !== null)
        lines.set(statement.place.line, current);
    }
  }
  for (const { body } of functions) {
    current = null;
    follow(body ?? []);
  }
  return lines;
}
