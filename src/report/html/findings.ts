import { breakLine, element, join, type Html } from '../layout/index.js';
import { capitalized } from '../../words/index.js';
import type { AuditReport } from '../json/index.js';
import {
  failedTestsSection,
  nearestText,
  placeText,
  testNotes,
  testsSection,
  worstRowOf,
} from '../text/index.js';
import { definitions, sectionTable } from './figure.js';

function list(clauses: readonly string[]): Html {
  return element(
    'ul',
    {},
    clauses.map((clause) => element('li', {}, `${clause}.`)),
  );
}

/** The worst row of a failure: what was given, the exact value and the bound, side by side. */
export function worstRowFigures(report: AuditReport): Html | '' {
  const numbers = report.verdict.pass ? null : (worstRowOf(report)?.numbers ?? null);
  if (numbers === null) return '';
  const { where, got, exact, bound } = numbers;
  return join(
    element('p', { class: 'muted' }, `Worst: ${where}`),
    definitions('worst-row', [
      ['got', got],
      ['exact', exact],
      ['bound', `± ${bound}`],
    ]),
  );
}

/** The place of a failure, the worst row, and the tests that fail by most, as on a terminal; nothing on a pass. */
function failureContent(report: AuditReport): Html {
  if (report.verdict.findings.length === 0) return join();
  const worst = worstRowOf(report);
  const texts = [
    ['Place', placeText(report)],
    ['Nearest cause', nearestText(report)],
    // Beside the verdict already where it is of numbers.
    ['Worst row', worst === null || worst.numbers !== null ? null : worst.text],
  ] as const;
  const failed = failedTestsSection(report, 'the table of all tests below has them');
  return join(
    texts.flatMap(([name, text]) => (text === null ? [] : [element('p', {}, `${name}: ${text}.`)])),
    failed === null ? '' : sectionTable('The tests that fail by most', failed),
  );
}

/** Every reason to fail, its cause with the evidence, and the tests one by one. */
export function findingsContent(report: AuditReport, identification: string | null): Html {
  const { findings, diagnosis } = report.verdict;
  const cause =
    diagnosis === null
      ? []
      : [
          element('h3', {}, 'Cause'),
          element(
            'p',
            {},
            diagnosis.id === 'unexplained' ? 'Unexplained.' : `${capitalized(diagnosis.sentence)}.`,
          ),
        ];
  const evidence = diagnosis?.evidence ?? [];
  const details = join(
    findings.length === 0
      ? ''
      : [element('h3', {}, 'All findings'), list(findings.map(({ statement }) => statement))],
    evidence.length === 0 ? '' : [element('h3', {}, 'Evidence'), list(evidence)],
    report.outputs === null
      ? ''
      : join(
          sectionTable('Tests that take part in the verdict', testsSection(report)),
          element('p', { class: 'note' }, testNotes(report)),
        ),
  );
  return join(
    cause,
    failureContent(report),
    findings.length === 0
      ? [element('p', {}, 'No test fails.'), details]
      : element(
          'details',
          { class: 'printed' },
          element('summary', {}, 'All findings, the evidence, and the tests one by one'),
          details,
        ),
    identification === null
      ? ''
      : join(
          element('h3', {}, 'Which kernel it looks like'),
          element(
            'pre',
            { tabindex: 0 },
            identification.split('\n').flatMap((line) => [line, breakLine]),
          ),
        ),
  );
}
