import type { CheckReport } from '../json/index.js';
import { quoteShellCommand } from '../layout/index.js';

/** What the message of a workflow command writes otherwise (GitHub's toolkit, command.ts). */
const dataEscapes: Readonly<Record<string, string>> = { '%': '%25', '\r': '%0D', '\n': '%0A' };
/** What the value of a property of it writes otherwise, beside these. */
const propertyEscapes: Readonly<Record<string, string>> = {
  ...dataEscapes,
  ':': '%3A',
  ',': '%2C',
};

function escapeWith(escapes: Readonly<Record<string, string>>, text: string): string {
  return [...text].map((character) => escapes[character] ?? character).join('');
}

function annotation(level: 'error' | 'warning', title: string, message: string): string {
  return `::${level} title=${escapeWith(propertyEscapes, title)}::${escapeWith(dataEscapes, message)}\n`;
}

/**
 * What fails, one for each cause, as workflow commands that GitHub Actions shows beside a run, and warnings of what was to be
 * tried and never was: a line each, nothing for a pass without gaps.
 */
export function renderCheckAnnotations({
  properties,
  findings,
  notes,
  execution,
}: CheckReport): string {
  const failures = findings.map(({ title, properties: [name, ...others] }) => {
    const { statement, replay } = properties.find((of) => of.name === name)!.violation!;
    const again = replay === null ? '' : `\nReplay: ${quoteShellCommand(replay)}`;
    const also = others.length === 0 ? '' : `${title} (seen by ${others.length + 1} properties): `;
    return annotation('error', `flashproof ${name}`, `${also}${statement}.${again}`);
  });
  const untried = properties
    .filter(({ result }) => result === 'untried' && execution === null)
    .map(({ name, skipped }) =>
      annotation('warning', `flashproof ${name}`, `never tried: ${skipped}.`),
    );
  return [
    ...(execution === null ? [] : [annotation('error', 'flashproof execution', `${execution}.`)]),
    ...failures,
    ...untried,
    ...notes.map((note) => annotation('warning', 'flashproof', `${note}.`)),
  ].join('');
}
