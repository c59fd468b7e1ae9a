import {
  type Baselines,
  describePlace,
  type ElementTest,
  type ErrorProfile,
  type NumberTest,
  structureQuantity,
} from '../../audit/index.js';
import { formatNumber, formatShare, plainText } from '../../words/index.js';
import {
  describeSample,
  describeUnsampled,
  describeWarning,
  fromReported,
  missingQuantities,
  numbersOf,
  vectorsOf,
  type AuditReport,
  type JudgedReport,
  type ReportedNumbers,
  type ReportedVectors,
} from '../json/index.js';
import { heading, type Section } from '../layout/index.js';
import { closestTest } from './audit-tests.js';
import { testLabel } from './test-words.js';

/** Further remarks; null when there are none. */
export function notesSection({
  verdict,
}: {
  readonly verdict: Pick<AuditReport['verdict'], 'notes'>;
}): Section | null {
  if (verdict.notes.length === 0) return null;
  return {
    rows: verdict.notes.map((note, i) => [heading(i === 0 ? 'Note' : ''), plainText(note)]),
    numberColumns: 0,
  };
}

/** The rows that are judged, and those left out; null when all are judged. */
export function sampleSection({ sample }: Pick<AuditReport, 'sample'>): Section | null {
  if (sample === null) return null;
  return {
    rows: [
      [heading('Judged'), describeSample(sample)],
      [heading('Not judged'), describeUnsampled(sample)],
    ],
    numberColumns: 0,
  };
}

/** Inputs that are not used; null when all are used. */
export function warningsSection({ warnings }: Pick<AuditReport, 'warnings'>): Section | null {
  if (warnings.length === 0) return null;
  return {
    rows: warnings.map((warning, i) => [
      heading(i === 0 ? 'Not used' : ''),
      describeWarning(warning),
    ]),
    numberColumns: 0,
  };
}

/** The largest error of an output beside the main one, and the largest share of a bound that it uses. */
interface LargestError {
  readonly label: string;
  readonly max: number;
  readonly share: number;
}

function largestOfVectors({ label, error, elements }: ReportedVectors): LargestError {
  const { absolute } = fromReported<ErrorProfile>(error);
  return { label, max: absolute.max, share: fromReported<ElementTest>(elements).worstRatio };
}

function largestOfNumbers({ label, numbers }: ReportedNumbers): LargestError {
  const { max, worstRatio } = fromReported<NumberTest>(numbers);
  return { label, max, share: worstRatio };
}

/** Number of ulps beyond which an error is stated by its size alone. */
const mostUlps = 100;

/** "; median 0.22 ulp of bf16"; '' where a number of ulps says no more than the error itself. */
function medianText(ulps: number, format: string): string {
  return ulps > mostUlps ? '' : `; median ${formatNumber(ulps)} ulp of ${format}`;
}

/**
 * The numbers that readers ask for first, a line each: the largest errors, typical errors, the share of
 * a bound that is used, the closest statistical test, the LSE; then the results of the usual checks,
 * and the parts that were not judged.
 */
export function summarySection(report: JudgedReport): Section {
  const [main, ...others] = vectorsOf(report);
  const { format, magnitude } = main;
  const { absolute, relative, ulps, worst } = fromReported<ErrorProfile>(main.error);
  const elements = fromReported<ElementTest>(main.elements);
  const { allclose, flashAttention, cosine } = fromReported<Baselines>(report.baselines);
  const closest = closestTest(report);
  const word = (name: string, { pass }: { readonly pass: boolean }) =>
    `${name} ${pass ? 'pass' : 'fail'}`;
  const left = notJudged(report);
  return {
    rows: [
      [
        heading('Largest error'),
        `${formatNumber(absolute.max)}, ${formatNumber(relative.max)} of ${magnitude}${worst === null ? '' : `, at ${describePlace(worst.at)}`}`,
      ],
      [
        heading('Rms error'),
        `${formatNumber(absolute.rms)}, ${formatNumber(relative.rms)} of ${magnitude}${medianText(ulps.percentiles.p50, format)}`,
      ],
      [
        heading('Bound used'),
        `${formatShare(elements.worstRatio)} by the worst element, ${formatShare(elements.medianRatio)} by the median`,
      ],
      ...(closest === null
        ? []
        : [
            [
              heading('Closest test'),
              `${closest.label}: ${formatShare(closest.share)} of what is allowed, on ${closest.place}`,
            ],
          ]),
      ...[...others.map(largestOfVectors), ...numbersOf(report).map(largestOfNumbers)].map(
        ({ label, max, share }) => [
          heading(`${label} error`),
          `${formatNumber(max)} at most; ${formatShare(share)} of its bound`,
        ],
      ),
      [
        heading('Usual checks'),
        [
          word('allclose', allclose),
          word("FlashAttention's rule", flashAttention),
          word('cosine', cosine),
        ].join(', '),
      ],
      [heading('Not judged'), left.length === 0 ? 'nothing' : left.join('; ')],
    ],
    numberColumns: 0,
  };
}

/** The basis of the judgement, and the way to see the rest. */
export function summaryNotes(report: JudgedReport): string {
  return `Bounds of ${plainText(report.arithmetic)}; false alarms of the statistical tests: ${report.falseAlarmRate} at most. --full prints every test, the techniques, the oracle and the inputs.`;
}

/**
 * "the tests truncation, dispersion, since the kernel declares how it computes": the structure tests that could
 * not be made, a clause for each reason. Those of outputs that were not given are left out.
 */
function untestedClauses({ verdict, outputs }: JudgedReport): string[] {
  const untested = verdict.untested.filter(({ test }) =>
    outputs.some(({ name }) => name === structureQuantity(test)),
  );
  return [...new Set(untested.map(({ reason }) => reason))].map((reason) => {
    const names = untested
      .filter((one) => one.reason === reason)
      .map(({ test }) => testLabel(test));
    return `the ${names.length === 1 ? 'test' : 'tests'} ${names.join(', ')}, since ${reason}`;
  });
}

/** The parts of the outputs that the verdict does not cover, a clause each. */
export function notJudged(report: JudgedReport): string[] {
  const vectors = vectorsOf(report).map(({ parts, elements, error }) => ({
    parts,
    elements: fromReported<ElementTest>(elements),
    nonFinite: fromReported<ErrorProfile>(error).nonFinite,
  }));
  const numbers = numbersOf(report).map(({ prose, parts, numbers }) => ({
    prose,
    parts,
    ...fromReported<NumberTest>(numbers),
  }));
  return [
    ...(report.sample === null ? [] : [describeUnsampled(report.sample)]),
    ...missingQuantities(report).map(({ prose }) => `${prose}, since none was given`),
    ...vectors
      .filter(({ elements }) => elements.unbounded > 0)
      .map(
        ({ parts, elements }) =>
          `${elements.unbounded} of ${elements.elements} ${parts}, which have no bound`,
      ),
    ...numbers
      .filter(({ unbounded }) => unbounded > 0)
      .map(
        ({ prose, parts, unbounded, rows }) =>
          `${prose} of ${unbounded} of ${rows} ${parts}, which have no bound`,
      ),
    ...vectors
      .filter(({ nonFinite }) => nonFinite.oracle > 0)
      .map(
        ({ parts, nonFinite }) =>
          `the size of ${nonFinite.oracle} ${parts} that are exactly NaN or infinite`,
      ),
    ...untestedClauses(report),
  ];
}
