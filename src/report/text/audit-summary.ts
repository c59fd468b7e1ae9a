import {
  type Baselines,
  describePlace,
  type ElementTest,
  type ErrorProfile,
  type LseTest,
} from '../../audit/index.js';
import { formatNumber, formatShare, plainText } from '../../words/index.js';
import {
  describeWarning,
  fromReported,
  type AuditReport,
  type JudgedReport,
} from '../json/index.js';
import { heading, type Section } from '../layout/index.js';
import { closestTest, testLabel } from './audit-tests.js';

/** What else there is to know; null when nothing is. */
export function notesSection({ verdict }: Pick<AuditReport, 'verdict'>): Section | null {
  if (verdict.notes.length === 0) return null;
  return {
    rows: verdict.notes.map((note, i) => [heading(i === 0 ? 'Note' : ''), plainText(note)]),
    numberColumns: 0,
  };
}

/** Inputs that are not used; null when all are. */
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

/**
 * The numbers that a person asks for first, a line each: how large errors are, what they typically are,
 * how much of a bound is used, how near the statistical tests came, the LSE; then what the usual
 * checks say, and what was not judged.
 */
export function summarySection(report: JudgedReport): Section {
  const { absolute, relative, ulps, worst } = fromReported<ErrorProfile>(report.error);
  const elements = fromReported<ElementTest>(report.elements);
  const lse = fromReported<LseTest | null>(report.lse);
  const { allclose, flashAttention, cosine } = fromReported<Baselines>(report.baselines);
  const closest = closestTest(report);
  const format = report.inputs.output?.format ?? 'the output';
  const word = (name: string, { pass }: { readonly pass: boolean }) =>
    `${name} ${pass ? 'pass' : 'fail'}`;
  const left = notJudged(report);
  return {
    rows: [
      [
        heading('Largest error'),
        `${formatNumber(absolute.max)}, ${formatNumber(relative.max)} of Σ p|v|${worst === null ? '' : `, at ${describePlace(worst.at)}`}`,
      ],
      [
        heading('Rms error'),
        `${formatNumber(absolute.rms)}, ${formatNumber(relative.rms)} of Σ p|v|; median ${formatNumber(ulps.percentiles.p50)} ulp of ${format}`,
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
      ...(lse === null
        ? []
        : [
            [
              heading('LSE error'),
              `${formatNumber(lse.max)} at most; ${formatShare(lse.worstRatio)} of its bound`,
            ],
          ]),
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

/** By what was judged, and how to see the rest. */
export function summaryNotes(report: JudgedReport): string {
  return `Bounds of ${plainText(report.arithmetic)}; false alarms of the statistical tests: ${report.falseAlarmRate} at most. --full prints every test, the techniques, the oracle and the inputs.`;
}

/**
 * "the tests truncation, dispersion, since the kernel declares how it computes": the structure tests that could
 * not be made, a clause for each reason. That of the LSE's mean is left out where no LSE was given.
 */
function untestedClauses({ verdict, lse }: JudgedReport): string[] {
  const untested = verdict.untested.filter(({ test }) => test !== 'lse-mean' || lse !== null);
  return [...new Set(untested.map(({ reason }) => reason))].map((reason) => {
    const names = untested
      .filter((one) => one.reason === reason)
      .map(({ test }) => testLabel(test));
    return `the ${names.length === 1 ? 'test' : 'tests'} ${names.join(', ')}, since ${reason}`;
  });
}

/** What the verdict says nothing about, a clause each. */
export function notJudged(report: JudgedReport): string[] {
  const lse = fromReported<LseTest | null>(report.lse);
  const { elements, unbounded } = fromReported<ElementTest>(report.elements);
  const { nonFinite } = fromReported<ErrorProfile>(report.error);
  return [
    ...(lse === null ? ['the LSE, since none was given'] : []),
    ...(unbounded > 0 ? [`${unbounded} of ${elements} elements, which have no bound`] : []),
    ...(lse !== null && lse.unbounded > 0
      ? [`the LSE of ${lse.unbounded} of ${lse.rows} rows, which have no bound`]
      : []),
    ...(nonFinite.oracle > 0
      ? [`the size of ${nonFinite.oracle} elements that are exactly NaN or infinite`]
      : []),
    ...untestedClauses(report),
  ];
}
