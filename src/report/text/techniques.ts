import type { BoundMeasure, MeasuredError, TechniqueTable } from '../../attribution/index.js';
import { formatNumber, plainText } from '../../words/index.js';
import { describeSample, describeUnbounded, type BoundReport } from '../json/index.js';
import type { Cell, Section } from '../layout/index.js';
import { problemSection } from './audit-sections.js';
import { gradientTechniquesNote, gradientTechniquesSection } from './gradients.js';
import { settingOf, type RenderOptions, type Setting } from './setting.js';

/** Maximum number of characters of a number: the tables fit 60 columns. */
const widest = 7;

/** A number with two significant digits, or one: a bound is no more exact than its assumptions. */
function short(value: number, digits: 1 | 2 = 2): string {
  if (value === 0 || Number.isNaN(value)) return String(Math.abs(value));
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  const text = value.toExponential(digits - 1);
  return text.length > widest ? value.toExponential(0) : text;
}

/** A share in whole per cent. */
function share(used: number): string {
  if (!(used < 99)) return Number.isNaN(used) ? 'NaN' : '> 99×';
  return `${Math.round(100 * used)} %`;
}

/** One line: the allowed error, and the error that was found where it was measured. */
interface Line {
  readonly name: string;
  readonly bound: BoundMeasure;
  readonly measured: MeasuredError | null;
}

function cells({ name, bound, measured }: Line): Cell[] {
  if (measured === null) return [`  ${name}`, short(bound.max), short(bound.rms), ''];
  const { max, rms, mean, used } = measured;
  const use = share(used);
  const found: Cell[] = [short(max), use].map((text) =>
    used > 1 ? { text, tone: 'failure' } : text,
  );
  return [`  ${name}`, short(bound.max), ...found, short(rms), short(mean, 1), ''];
}

function section(heading: string, isMeasured: boolean, lines: readonly Line[]): Section {
  const heads = isMeasured ? ['allowed', 'found', 'used', 'rms', 'mean'] : ['allowed', 'rms'];
  return {
    rows: [[{ text: heading, tone: 'heading' }, ...heads, ''], ...lines.map(cells)],
    numberColumns: heads.length,
  };
}

/**
 * The tables of techniques: the error that each may cause in the worst element, and, where it was
 * measured, the error that it causes alone; and the same for the LSE, for techniques that affect it.
 */
export function techniqueSections(table: TechniqueTable): readonly Section[] {
  const isMeasured = table.kernel !== null;
  const lines = [...table.techniques, table.total];
  return [
    section(
      'Techniques',
      isMeasured,
      lines.map(({ technique, bound, measured }) => ({ name: technique, bound, measured })),
    ),
    section(
      'In the LSE',
      isMeasured,
      lines
        .filter(({ lseBound }) => lseBound.max > 0)
        .map(({ technique, lseBound, lseMeasured }) => ({
          name: technique,
          bound: lseBound,
          measured: lseMeasured,
        })),
    ),
  ];
}

/** The basis of the tables, and the elements that they leave out, in sentences. */
export function techniqueNotes(table: TechniqueTable): string {
  const { arithmetic, kernel, expected, elements, unbounded, measuredElements } = table;
  const sampled = kernel !== null && measuredElements < elements - unbounded;
  return [
    `Bounds of ${arithmetic}; root mean square error to expect ${formatNumber(expected)}.`,
    ...(kernel === null
      ? ['Each technique may err by this much, whatever the others do.']
      : [
          `Found: ${kernel} with this technique as the GPU does it and all others exact${sampled ? `, on ${measuredElements} of ${elements} elements` : ''}; used: the element closest to its own bound.`,
        ]),
    ...(unbounded > 0
      ? [
          `${unbounded} of ${elements} elements have no bound: the kernel may leave its formats there.`,
        ]
      : []),
  ].join(' ');
}

/** The rows that are bounded, and those left out; null when all are bounded. */
function boundedSection(sample: BoundReport['sample']): Section | null {
  if (sample === null) return null;
  return {
    rows: [
      [{ text: 'Bounded', tone: 'heading' }, describeSample(sample)],
      [{ text: 'Not bounded', tone: 'heading' }, describeUnbounded(sample)],
    ],
    numberColumns: 0,
  };
}

/**
 * The error that each technique of a backward pass may cause, a table for each gradient; nothing where that was not
 * requested.
 */
function boundedGradients(
  bounded: BoundReport['gradients'],
  { section, indented }: Pick<Setting, 'section' | 'indented'>,
): string[] {
  if (bounded === null) return [];
  const { arithmetic, format, gradients } = bounded;
  return [
    ...gradients.flatMap((one) => {
      const note = gradientTechniquesNote(one);
      return [
        '',
        ...section(gradientTechniquesSection(one)),
        ...(note === null ? [] : indented(note)),
      ];
    }),
    '',
    ...indented(
      `Bounds of ${plainText(arithmetic)} of gradients in ${format}: of an element, on the average over them; each technique may err by this much, whatever the others do.`,
    ),
  ];
}

/** The report of `flashproof bound` for a terminal, newline at the end; it takes any width. */
export function renderBound(
  { problem, sample, gradients }: Pick<BoundReport, 'problem' | 'sample' | 'gradients'>,
  table: TechniqueTable,
  options: RenderOptions = {},
): string {
  const { section, indented } = settingOf(options, 0);
  return [
    ...section(problemSection({ problem })),
    ...section(boundedSection(sample)),
    ...techniqueSections(table).flatMap((one) => ['', ...section(one)]),
    ...indented(techniqueNotes(table)),
    ...boundedGradients(gradients, { section, indented }),
    '',
  ].join('\n');
}
