import type { AuditReport, JudgedReport, ReportedGradients } from '../json/index.js';
import { element, join, type Html } from '../layout/index.js';
import {
  gradientNotes,
  gradientsOfTechniques,
  gradientsSection,
  gradientTechniquesNote,
  gradientTechniquesSection,
  gradientTestsSection,
  modelMatchesSection,
  modelMatchNotes,
  sequencesSection,
  splitsSection,
} from '../text/index.js';
import { comparisonContent, type ComparedOutput } from './comparison.js';
import type { Drawing } from './drawing.js';
import { exp2Figure, type Exp2Curve } from './exp2-curve.js';
import { findingsContent } from './findings.js';
import { figures, sectionTable } from './figure.js';
import { keyTilesContent } from './key-tiles.js';
import type { PlotData } from './plot-data.js';
import { provenanceContent, type ReproduceCommand, reproduceContent } from './provenance.js';
import {
  heatContent,
  rowsContent,
  techniquesContent,
  ulpsContent,
  usualContent,
} from './report-sections.js';

/** The contents of an HTML report: the report of JSON, and the parts that only HTML has. */
export interface HtmlReport {
  readonly report: AuditReport;
  /** Null when there was no output to judge. */
  readonly plots: PlotData | null;
  /** The declared kernel's implementations of 2^x; empty where none is declared. */
  readonly exp2: readonly Exp2Curve[];
  /** Other outputs of the problem, with one heat map of all heads each; the judged output comes first. */
  readonly compared: readonly ComparedOutput[];
  /** The kernel that the output resembles, in words; null when that was not requested. */
  readonly identification: string | null;
  readonly commands: readonly ReproduceCommand[];
}

/** A part of the page, with its place in the contents. */
export interface Part {
  readonly id: string;
  readonly title: string;
  readonly content: Html;
}

/** A judged report, with the data of its plots. */
export interface Judged {
  readonly report: JudgedReport;
  readonly plots: PlotData;
}

/** The parts about the judged output. */
function outputParts(drawing: Drawing, { report, plots }: Judged): readonly (Part | null)[] {
  const keyTiles = keyTilesContent(report);
  return [
    keyTiles && { id: 'keys', title: 'Which keys are lost or doubled', content: keyTiles },
    { id: 'techniques', title: 'Techniques', content: techniquesContent(drawing, report) },
    // A sample of rows would make a map with holes.
    report.sample !== null
      ? null
      : {
          id: 'elements',
          title: 'Where the errors are',
          content: heatContent(drawing, report, plots),
        },
    { id: 'rows', title: 'Which rows err', content: rowsContent(drawing, plots) },
    {
      id: 'ulps',
      title: 'How large the errors are',
      content: ulpsContent(drawing, report, plots),
    },
  ];
}

function exp2Part(drawing: Drawing, curves: readonly Exp2Curve[]): Part | null {
  if (curves.length === 0) return null;
  const content = join(
    element('p', {}, "The declared kernel's implementations of 2^x over one octave."),
    figures(...curves.map((curve) => exp2Figure(drawing, curve))),
  );
  return { id: 'exp2', title: 'The exponential', content };
}

function sequencesPart(report: JudgedReport): Part | null {
  if ((report.sequences ?? []).length === 0) return null;
  const caption = 'Sequences, those first that use most of their bounds';
  const content = sectionTable(caption, sequencesSection(report));
  return { id: 'sequences', title: 'Sequence by sequence', content };
}

/** What the techniques may do to each gradient. */
function gradientTechniques(gradients: ReportedGradients): readonly Html[] {
  return gradientsOfTechniques(gradients).flatMap((gradient) => {
    const note = gradientTechniquesNote(gradient);
    const caption = `What each technique may do to ${gradient.label}`;
    return [
      sectionTable(caption, gradientTechniquesSection(gradient)),
      ...(note === null ? [] : [element('p', { class: 'note' }, note)]),
    ];
  });
}

function gradientsPart(report: AuditReport): Part | null {
  const { gradients } = report;
  if (gradients === undefined) return null;
  const note = (text: string): Html => element('p', { class: 'note' }, text);
  const content = join(
    element('p', {}, gradients.sentence),
    sectionTable('Gradients', gradientsSection(gradients)),
    sectionTable('Tests of the gradients', gradientTestsSection(report)),
    note(gradientNotes(gradients)),
    gradientTechniques(gradients),
    ...(gradients.models.length === 0
      ? []
      : [
          sectionTable('Kernel models, bit for bit', modelMatchesSection(gradients, true)),
          modelMatchNotes(gradients).map(note),
        ]),
    gradients.notJudged.map((clause) =>
      element('p', { class: 'muted' }, `Not judged of gradients: ${clause}.`),
    ),
  );
  return { id: 'gradients', title: 'Gradients', content };
}

function splitsPart({ splits }: AuditReport): Part | null {
  if (splits === null) return null;
  const content = sectionTable('Parts and their merge', splitsSection(splits));
  return { id: 'splits', title: 'Parts of the split problem', content };
}

function comparisonPart(
  drawing: Drawing,
  compared: readonly ComparedOutput[],
  { comparison }: AuditReport,
): Part | null {
  if (compared.length === 0) return null;
  const content = comparisonContent(drawing, compared, comparison);
  return { id: 'comparison', title: 'Outputs compared', content };
}

/** All parts of the page in their order. */
export function partsOf(drawing: Drawing, of: HtmlReport, judged: Judged | null): readonly Part[] {
  const { report, exp2, compared, identification, commands } = of;
  const parts: readonly (Part | null)[] = [
    { id: 'findings', title: 'Findings', content: findingsContent(report, identification) },
    ...(judged === null ? [] : outputParts(drawing, judged)),
    exp2Part(drawing, exp2),
    judged && sequencesPart(judged.report),
    gradientsPart(report),
    splitsPart(report),
    comparisonPart(drawing, compared, report),
    judged && { id: 'usual', title: 'Usual checks', content: usualContent(judged.report) },
    { id: 'reproduce', title: 'To reproduce', content: reproduceContent(commands) },
    {
      id: 'provenance',
      title: 'Provenance',
      content: provenanceContent(report, compared.slice(1)),
    },
  ];
  return parts.filter((part) => part !== null);
}
