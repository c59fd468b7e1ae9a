import {
  type ElementTest,
  type ErrorProfile,
  type GradientStatistic,
  type GradientTechniqueTable,
  type SpreadTest,
} from '../../audit/index.js';
import { formatNumber, formatShare, formatUse, plainText, shareUsed } from '../../words/index.js';
import {
  describeGradientSamples,
  fromReported,
  type AuditReport,
  type ReportedGradient,
  type ReportedGradients,
} from '../json/index.js';
import { heading, type Cell, type Section } from '../layout/index.js';
import { errorNotesSection, errorSection } from './audit-sections.js';
import { gradientTestsSection } from './gradient-tests.js';
import { modelMatchesSection, modelMatchNotes } from './model-matches.js';
import type { Setting } from './setting.js';

/** One line of the table: the shares of their allowance that a gradient's tests use. */
interface Use {
  readonly bound: number;
  /** Largest share of the allowance that the spread uses, of single elements and of many. */
  readonly spread: number;
  readonly sums: number;
}

function useOf({ elements, spread, structure }: ReportedGradient): Use {
  const { results, worstRatio } = fromReported<SpreadTest>(spread);
  const shares = results.map(({ measured, limit }) => shareUsed(measured, limit));
  const sums = fromReported<readonly GradientStatistic[]>(structure).map((one) =>
    shareUsed(Math.abs(one.statistic), one.threshold),
  );
  return {
    bound: fromReported<ElementTest>(elements).worstRatio,
    spread: Math.max(worstRatio, ...shares),
    sums: Math.max(0, ...sums),
  };
}

function shareCell(share: number): Cell {
  return share > 1 ? { text: formatUse(share), tone: 'failure' } : formatUse(share);
}

/**
 * The gradients, a row each: errors, and the shares that they use of their bounds, their spread and the limits of sums.
 */
export function gradientsSection({ gradients, findings }: ReportedGradients): Section {
  return {
    rows: [
      [heading('Gradients'), 'largest', 'rms', 'bound', 'spread', 'sums', ''],
      ...gradients.map((gradient): Cell[] => {
        const { absolute } = fromReported<ErrorProfile>(gradient.error);
        const { bound, spread, sums } = useOf(gradient);
        const fails = findings.some(({ quantity }) => quantity === gradient.name);
        return [
          `  ${gradient.label}`,
          formatNumber(absolute.max),
          formatNumber(absolute.rms),
          ...[bound, spread, sums].map(shareCell),
          fails ? { text: 'FAIL', tone: 'failure' } : { text: 'pass', tone: 'success' },
        ];
      }),
    ],
    numberColumns: 5,
  };
}

/**
 * The results of FlashAttention's rule for the gradients; no rows where there are none. It decides nothing, so nothing
 * is red.
 */
function gradientRulesSection({ gradients }: ReportedGradients): Section {
  const words = gradients.flatMap(({ label, flashAttention }) =>
    flashAttention === null ? [] : [`${label} ${flashAttention.pass ? 'pass' : 'fail'}`],
  );
  return {
    rows: words.length === 0 ? [] : [[heading("FlashAttention's rule"), words.join(', ')]],
    numberColumns: 0,
  };
}

/** The parts of the backward pass that are not judged, a row each. */
function unjudgedGradientsSection({ notJudged }: ReportedGradients): Section {
  return {
    rows: notJudged.map((clause, i) => [heading(i === 0 ? 'Not judged' : ''), clause]),
    numberColumns: 0,
  };
}

/** A gradient whose techniques are told apart. */
type GradientOfTechniques = ReportedGradient & {
  readonly techniques: NonNullable<ReportedGradient['techniques']>;
};

/** The gradients whose techniques are told apart. */
export function gradientsOfTechniques({ gradients }: ReportedGradients): GradientOfTechniques[] {
  return gradients.filter((one): one is GradientOfTechniques => one.techniques !== null);
}

/**
 * For each technique of a gradient: the error that it may cause in an element, on average, the error to expect, and its
 * share of the worst case.
 */
export function gradientTechniquesSection({
  label,
  techniques,
}: Pick<GradientOfTechniques, 'label' | 'techniques'>): Section {
  const table = fromReported<GradientTechniqueTable>(techniques);
  const lines = [...table.techniques, { ...table.total, technique: 'all', share: 1 }];
  return {
    rows: [
      [heading(`Techniques of ${label}`), 'worst case', 'rms', 'share'],
      ...lines.map(({ technique, worst, rms, share }): Cell[] => [
        `  ${technique}`,
        formatNumber(worst),
        formatNumber(rms),
        formatShare(share),
      ]),
    ],
    numberColumns: 3,
  };
}

/** The part of the gradient that the table of techniques leaves out, in a sentence; null where there is none. */
export function gradientTechniquesNote({
  parts,
  techniques,
}: Pick<GradientOfTechniques, 'parts' | 'techniques'>): string | null {
  const { elements, unbounded } = fromReported<GradientTechniqueTable>(techniques);
  return unbounded === 0
    ? null
    : `${unbounded} of ${elements} ${parts} are left out of the techniques: their rows have elements without a bound.`;
}

/** The basis on which the gradients were judged. */
export function gradientNotes(gradients: ReportedGradients): string {
  const { arithmetic, falseAlarmRate, fits } = gradients;
  const samples = describeGradientSamples(gradients).map((sentence) => `${sentence} `);
  return `${samples.join('')}Bounds of ${plainText(arithmetic)}; false alarms of the statistical tests of the gradients: ${falseAlarmRate} at most.${fits.map((sentence) => ` ${plainText(sentence)}`).join('')}`;
}

/** The gradients as blocks of lines; none where none were judged. */
export function gradientsBlocks(
  report: AuditReport,
  { section, indented }: Setting,
  isFull: boolean,
): string[][] {
  const { gradients } = report;
  if (gradients === undefined) return [];
  const table = [
    ...section(gradientsSection(gradients)),
    ...indented(gradientNotes(gradients)),
    ...section(gradientRulesSection(gradients)),
    ...section(unjudgedGradientsSection(gradients)),
  ];
  const matches =
    gradients.models.length === 0
      ? []
      : [
          [
            ...section(modelMatchesSection(gradients, isFull)),
            ...modelMatchNotes(gradients).flatMap((note) => indented(note)),
          ],
        ];
  if (!isFull) return [table, ...matches];
  return [
    table,
    ...matches,
    section(gradientTestsSection(report)),
    ...gradients.gradients.map((gradient) => [
      ...section(errorSection(gradient)),
      ...section(errorNotesSection(gradient)),
    ]),
    ...gradientsOfTechniques(gradients).map((gradient) => [
      ...section(gradientTechniquesSection(gradient)),
      ...[gradientTechniquesNote(gradient)].flatMap((note) =>
        note === null ? [] : indented(note),
      ),
    ]),
  ];
}
