import type { TriedSizes } from '../../../properties/index.js';
import { formatNumber, plainText } from '../../words/index.js';
import type {
  CheckFinding,
  CheckReport,
  ReportedProperty,
  ReportedViolation,
} from '../json/check/index.js';
import { describeCheckedProblem } from '../json/index.js';
import {
  type Cell,
  heading,
  quoteShellCommand,
  wrapShellCommand,
  wrapText,
} from '../layout/index.js';
import {
  joinBlocks,
  paintVerdict,
  type RenderOptions,
  type Setting,
  settingOf,
} from './setting.js';

/** Heading of the column that `describeTriedSizes` fills. */
export const triedSizesHeading = 'queries×keys, dim, heads/group, batch';

/**
 * The largest sizes that a kernel was tried at, in a few characters, as in "129×257 d32/16 h6/3 b2": queries
 * and keys, dimensions of Q·K and of V, query heads and those of a group, batch.
 */
export function describeTriedSizes(sizes: TriedSizes): string {
  const { batch, heads, groupSize, queries, keys, qkDim, vDim } = sizes;
  const dims = vDim === qkDim ? `${qkDim}` : `${qkDim}/${vDim}`;
  return `${queries}×${keys} d${dims} h${heads}/${groupSize} b${batch}`;
}

/** Number of columns before the text of a violation: two spaces, the widest label, two spaces. */
const labelColumns = 12;

/** The number of simplifications of a problem, in words. */
function describeSimplifications(count: number): string {
  if (count === 0) return 'as it was drawn';
  return `simplified ${count === 1 ? 'once' : `${count} times`}`;
}

/** Describes where a violation was found, and how its problem was simplified. */
export function describeFinding(violation: ReportedViolation): string {
  const { run, seconds, simplifications, round } = violation;
  return `at run ${run} (${formatNumber(seconds)} s), problem ${round} of this property; ${describeSimplifications(simplifications)}`;
}

const results: Readonly<Record<ReportedProperty['result'], Cell>> = {
  holds: 'holds',
  violated: { text: 'VIOLATED', tone: 'failure' },
  skipped: 'skipped',
  untried: 'never tried',
};

/** Number of problems that a property was tried on, of the number that was planned. */
function triedCell({ tried, runs }: ReportedProperty): string {
  return tried === runs ? String(tried) : `${tried} of ${runs}`;
}

function propertyRows({ properties, contract }: CheckReport): Cell[][] {
  const sizes = contract === undefined ? [`up to ${triedSizesHeading}`] : [];
  const headings = ['Property', 'result', 'tried', 'promise', ...sizes];
  return [
    headings.map(heading),
    ...properties.map((property): Cell[] => [
      `  ${property.name}`,
      results[property.result],
      triedCell(property),
      property.promise,
      ...sizes.map(() => (property.sizes === null ? '' : describeTriedSizes(property.sizes))),
    ]),
  ];
}

/** The reasons why properties were not tried, with the planned ones first. */
function untriedRows({ properties }: CheckReport): Cell[][] {
  return (['untried', 'skipped'] as const).flatMap((wanted) => {
    const rows = properties
      .filter(({ result }) => result === wanted)
      .map(({ name, skipped }): Cell[] => [`  ${name}`, plainText(skipped ?? '')]);
    const text = wanted === 'untried' ? 'Never tried' : 'Skipped';
    return rows.length === 0 ? [] : [[heading(text)], ...rows];
  });
}

/**
 * Violations of one cause: the fault by the property with the smallest problem, the law, the problem,
 * the command that shows it again; and the other properties that see it.
 */
function findingLines(
  { title, properties: names }: CheckFinding,
  { properties }: CheckReport,
  { columns, paint, table }: Setting,
): string[] {
  const [property, ...others] = names.map((name) => properties.find((of) => of.name === name)!);
  const { violation } = property!;
  if (property === undefined || violation === null) return [];
  const { values, saved, replay, choice } = violation;
  const problem = `${describeCheckedProblem(violation.problem)}; regime ${violation.regime}`;
  const labelled: readonly (readonly [label: string, texts: readonly string[]])[] = [
    ['Wrong', [`${violation.statement}.`]],
    ['Cause', violation.cause === null ? [] : [`probably that ${violation.cause}.`]],
    ['Hint', violation.hint === null ? [] : [`${violation.hint}.`]],
    ['Law', [`${property.statement}. ${property.reason}`]],
    ['Problem', [choice === 0 ? problem : `${problem}; form ${choice} of the law`]],
    ['Values', values ?? []],
    ['Found', [describeFinding(violation)]],
    ['Saved', saved === null ? [] : [saved]],
    ['Replay', replay === null ? [] : wrapShellCommand(replay, columns - labelColumns)],
    ['Also', others.map(({ name, violation: also }) => `${name}: ${also!.statement}.`)],
  ];
  const rows = labelled.flatMap(([label, texts]) =>
    texts.map((text, index) => [
      `  ${index === 0 ? label : ''}`.padEnd(labelColumns - 2),
      plainText(text),
    ]),
  );
  const seenBy =
    others.length === 0 ? property.name : `${title} (seen by ${names.length} properties)`;
  return [
    ...wrapText(plainText(seenBy), columns).map((line) => paint('failure', line)),
    ...(others.length === 0 ? [] : table([['  Property', property.name]])),
    ...table(rows),
  ];
}

/** The kernel in words: the command, or the model with its settings. */
export function describeKernel({ kernel }: Pick<CheckReport, 'kernel'>): string {
  const { command, model, settings, judgedAs } = kernel;
  const set = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
  const withSettings = (name: string) => [name, ...set].join(' ');
  if (command === null) return `emulated ${withSettings(model ?? '')}`;
  return judgedAs === null ? command : `${command}, judged as ${withSettings(judgedAs)}`;
}

function verdictLines({ verdict }: CheckReport, setting: Setting): string[] {
  const lines = wrapText(plainText(verdict.sentence), setting.columns);
  const [word] = /^[A-Z ]+/.exec(lines[0]) ?? [''];
  return paintVerdict(lines, word, verdict.pass, setting);
}

/**
 * The report for a terminal, newline at the end: the verdict, the outcome of each property, then each
 * violation with the command that shows it again, and the kernel. Characters of commands and file names
 * that could act on the terminal are written as \u{hex}. Only failures are red.
 */
export function renderCheck(report: CheckReport, options: RenderOptions = {}): string {
  const setting = settingOf(options);
  const { table } = setting;
  const { tool, created, seconds } = report;
  return joinBlocks([
    verdictLines(report, setting),
    table(propertyRows(report), ['left', 'left', 'right', 'left', 'left']),
    ...[untriedRows(report)].filter((rows) => rows.length > 0).map((rows) => table(rows)),
    ...(report.notes.length === 0
      ? []
      : [table(report.notes.map((note) => ['Note', plainText(`${note}.`)]))]),
    ...report.findings.map((finding) => findingLines(finding, report, setting)),
    [
      ...table([[heading('Kernel'), plainText(describeKernel(report))]]),
      `  ${tool.name} ${plainText(tool.version)}, ${created}, ${formatNumber(seconds)} s`,
    ],
  ]);
}

/** Escapes in the message of a workflow command (GitHub's toolkit, command.ts). */
const dataEscapes: Readonly<Record<string, string>> = { '%': '%25', '\r': '%0D', '\n': '%0A' };
/** Escapes in the value of a property of a workflow command, those of messages included. */
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
 * Failures, one for each cause, as workflow commands that GitHub Actions shows beside a run, and warnings of cases that were
 * to be tried and never were: a line each, nothing for a pass without gaps.
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

/** All properties and regimes. */
export interface CheckNames {
  readonly properties: readonly {
    readonly name: string;
    readonly statement: string;
    readonly reason: string;
    /** The promises that a kernel may make about it. */
    readonly promises: readonly string[];
    /** The promise that a kernel makes by default. */
    readonly usualPromise: string;
  }[];
  readonly regimes: readonly {
    readonly name: string;
    readonly description: string;
    readonly provokes: string;
  }[];
  /** The features that problems have where a kernel promises to take them. */
  readonly features: readonly { readonly name: string; readonly description: string }[];
}

/** Every property with its law, reason and promise, every regime with its purpose, and every feature, as text. */
export function renderCheckList(
  { properties, regimes, features }: CheckNames,
  columns = 80,
): string {
  const indented = (text: string) => wrapText(text, columns - 4).map((line) => `    ${line}`);
  return `${[
    'Properties',
    ...properties.flatMap(({ name, statement, reason, promises, usualPromise }) => [
      `  ${name}`,
      ...indented(`${statement}. ${reason}`),
      ...indented(`Promise: ${usualPromise}, if nothing else is said; of ${promises.join(', ')}.`),
    ]),
    '',
    'Regimes',
    ...regimes.flatMap(({ name, description, provokes }) => [
      `  ${name}`,
      ...indented(description),
      ...indented(`For ${provokes}`),
    ]),
    ...(features.length === 0 ? [] : ['', 'Features']),
    ...features.flatMap(({ name, description }) => [`  ${name}`, ...indented(description)]),
  ].join('\n')}\n`;
}
