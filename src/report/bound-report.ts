import { styleText } from 'node:util';
import type { TechniqueTable } from '../attribution/index.js';
import type { Problem } from '../problem/index.js';
import { toReported, type Reported } from './report-number.js';
import { reportedProblem, type ReportedProblem } from './reported-problem.js';
import { techniqueNotes, techniqueSections } from './technique-section.js';
import { problemSection, type Section } from './terminal-sections.js';
import type { RenderOptions } from './terminal.js';
import { layoutTable, type Painter } from './text-table.js';
import { wrapText } from './wrap-text.js';

/** The report of `flashproof bound`: a plain JSON value that bound.schema.json describes. */
export interface BoundReport {
  readonly kind: 'bound';
  readonly schemaVersion: 1;
  readonly tool: { readonly name: 'flashproof'; readonly version: string };
  /** ISO 8601, UTC. */
  readonly created: string;
  readonly seconds: number;
  readonly inputs: { readonly problem: { readonly path: string; readonly sha256: string } };
  readonly problem: ReportedProblem;
  readonly techniques: Reported<TechniqueTable>;
}

/** Where a bound report's problem came from, who bounded it and when. */
export interface BoundProvenance {
  readonly version: string;
  readonly problem: { readonly path: string; readonly sha256: string };
  readonly seconds: number;
  /** Default: now. */
  readonly created?: Date;
}

/**
 * The report of a table of bounds, sharing no data with it.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function createBoundReport(
  problem: Problem,
  table: TechniqueTable,
  { version, problem: source, seconds, created = new Date() }: BoundProvenance,
): BoundReport {
  return {
    kind: 'bound',
    schemaVersion: 1,
    tool: { name: 'flashproof', version },
    created: created.toISOString(),
    seconds,
    inputs: { problem: { path: source.path, sha256: source.sha256 } },
    problem: reportedProblem(problem),
    techniques: toReported(table),
  };
}

/** A table of bounds as text for a terminal. */
export function renderBound(
  problem: Problem,
  table: TechniqueTable,
  { color = false, columns = 80 }: RenderOptions = {},
): string {
  const paint: Painter = (tone, text) =>
    color && tone === 'heading' ? styleText('bold', text, { validateStream: false }) : text;
  const right = (count: number) => Array.from({ length: count }, () => 'right' as const);
  const layout = ({ rows, numberColumns }: Section) =>
    layoutTable(rows, { alignments: ['left', ...right(numberColumns)], width: columns, paint });
  return [
    ...layout(problemSection({ problem: reportedProblem(problem) })),
    ...techniqueSections(table).flatMap((section) => ['', ...layout(section)]),
    ...wrapText(techniqueNotes(table), columns - 2).map((line) => `  ${line}`),
    '',
  ].join('\n');
}
