import { quantities } from '../../src/problem/index.js';
import { describeCausePlace, structureOf } from '../../src/audit/index.js';
import fc from 'fast-check';
import type { AuditReport } from '../../src/report/json/audit-report.js';
import { describe, expect, test } from 'vitest';
import { formatNumber } from '../../src/words/index.js';
import { renderAudit, type AuditRenderOptions } from '../../src/report/text/audit.js';
import { displayWidth } from '../../src/words/texts.js';
import { testWords } from '../../src/report/text/test-words.js';
import { sampled, scaled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import {
  executionFailure,
  judgedCases,
  someCases,
  lseOf,
  outOf,
  reports as allReports,
  structureIn,
} from './cases.js';

const inTurn = turns(import.meta.url);

/** The reports of one output each; those of several, and of parts, have tests of their own. */
const reports = allReports.filter(
  ([, { comparison, splits }]) => comparison === null && splits === null,
);

const ansiCode = /\x1b\[[0-9;]*m/g;
const red = '\x1b[31m';
const green = '\x1b[32m';
/** The narrowest, the usual and the widest, and some that TEST_SEED draws. */
const everyWidth = Array.from({ length: 81 }, (_, i) => 60 + i);
const widths = [...new Set([60, 80, 140, ...sampled(everyWidth, 4)])];
const hostileWidths = [60, ...sampled(everyWidth.slice(1), 2)];

/** The text without line breaks and indentation, as a reader puts it together again. */
function flowing(text: string): string {
  return text.replace(/\s+/g, ' ');
}

/** The report with all there is. */
function full(report: AuditReport, options: AuditRenderOptions = {}): string {
  return renderAudit(report, { ...options, full: true });
}

/** Both forms of a report, one after the other. */
const forms: readonly (readonly [string, typeof full])[] = [
  ['full', full],
  ['short', renderAudit],
];

/** What stands in red, in order. */
function redTexts(rendered: string): string[] {
  return [...rendered.matchAll(/\x1b\[31m(.*?)\x1b\[39m/gs)].map(([, text]) => text!);
}

/** The lines of a section, from its heading to the next empty line. */
function section(rendered: string, heading: string): string[] {
  const lines = rendered.split('\n');
  const first = lines.findIndex((line) => line.startsWith(heading));
  expect(first, heading).toBeGreaterThanOrEqual(0);
  return lines.slice(first, lines.indexOf('', first));
}

const hostile = '\x1b[31mred\x1b[0m\r\n\u202etfel\u2028 漢字 & <b> "quoted"\ud800\u0007';

function withHostileNames(report: AuditReport): AuditReport {
  const { problem, outputs } = report.inputs;
  const paths = [`/${'deep/'.repeat(60)}file`, '漢'.repeat(200)];
  return {
    ...report,
    tool: { ...report.tool, version: hostile },
    verdict: { ...report.verdict, sentence: `${report.verdict.sentence}${hostile}` },
    inputs: {
      problem: { ...problem, path: hostile.repeat(20) },
      outputs: outputs.map((from, i) => ({ ...from, path: paths[i], tensor: hostile })),
      command: hostile,
    },
  };
}

describe.each(reports)('%s on a terminal', (_, report) => {
  test.each(forms)('fits every width from 60 columns on (%s)', (_form, render) => {
    const tooWide = (given: AuditReport, columns: number) =>
      render(given, { columns })
        .split('\n')
        .filter((line) => displayWidth(line) > columns || /\s$/.test(line));
    const hostileReport = withHostileNames(report);
    for (const columns of widths) expect(tooWide(report, columns), `${columns}`).toEqual([]);
    for (const columns of hostileWidths)
      expect(tooWide(hostileReport, columns), `${columns}`).toEqual([]);
  });

  test.each(forms)('begins with the verdict (%s)', (_form, render) => {
    for (const columns of [60, 80, 140]) {
      const rendered = render(report, { columns });
      expect(rendered.startsWith(`${report.verdict.status}: `)).toBe(true);
      expect(flowing(rendered).startsWith(flowing(report.verdict.sentence))).toBe(true);
    }
  });

  test('gives every finding, each once, where all is asked for', () => {
    const text = flowing(full(report));
    for (const { statement } of report.verdict.findings)
      expect(text.split(flowing(statement))).toHaveLength(2);
  });

  test('gives the cause in the verdict, and the evidence for it where all is asked for', () => {
    const { diagnosis, sentence } = report.verdict;
    const isExplained = !report.verdict.pass && report.outputs !== null && report.verdict.judged;
    expect(diagnosis !== null).toBe(isExplained);
    if (diagnosis === null) return;
    const { premise } = report.verdict;
    const isPremise = diagnosis.id === 'unexplained' && premise !== null;
    expect(sentence).toContain(isPremise ? premise.flags : diagnosis.sentence);
    const text = flowing(full(report));
    for (const clause of diagnosis.evidence) expect(text).toContain(flowing(`- ${clause}.`));
    // Where the LSE errs alone the output is right.
    expect(text).not.toContain('damaged');
  });

  test('gives of a failure the place, the worst row and three tests, in this order, before all else', () => {
    const text = renderAudit(report);
    if (report.verdict.findings.length === 0 || report.outputs === null) {
      expect(text).not.toMatch(/^Worst row/m);
      return;
    }
    const at = (heading: RegExp) => text.search(heading);
    const order = [/^FAIL: /, /^Place {2}/m, /^Worst row {2}/m, /^Tests {2}/m, /^Problem {2}/m];
    const places = order.map(at).filter((place) => place >= 0);
    expect(places).toEqual([...places].sort((a, b) => a - b));
    for (const heading of [/^Worst row {2}/m, /^Tests {2}/m])
      expect(at(heading)).toBeGreaterThan(0);
    const where = report.verdict.diagnosis?.place ?? null;
    const place = where === null ? 'everywhere' : describeCausePlace(where);
    if (place !== 'everywhere') expect(flowing(text.slice(0, at(/^Tests/m)))).toContain(place);
    const tests = section(text, 'Tests').filter((line) => /^ {2}[^ ]/.test(line));
    const isCount = (line: string) => /more tests? fails?; --full/.test(line);
    expect(tests.filter((line) => !isCount(line)).length).toBeLessThanOrEqual(3);
    expect(text).not.toMatch(/^(Evidence|Findings)$/m);
  });

  test('gives no share above all of a bound, and no ulps above 100, unless all is asked for', () => {
    const lines = renderAudit(report, { columns: 140 }).slice(report.verdict.sentence.length);
    for (const [, number] of lines.matchAll(/([\d.e+]+) %/g))
      expect(Number(number), lines).toBeLessThanOrEqual(100);
    for (const [, number] of lines.matchAll(/([\d.e+]+) ulp/g))
      expect(Number(number), lines).toBeLessThanOrEqual(100);
    expect(lines).not.toMatch(/[\d.] ×( |$)(?!\d)/m);
  });

  test('has its sections in order', () => {
    const techniques = report.techniques === null ? [] : ['Techniques ', 'In the LSE '];
    const isPacked = report.outputs !== null && report.sequences !== undefined;
    const sequences = isPacked ? ['Sequences '] : [];
    const judgement = ['Error ', 'Tests ', ...sequences, ...techniques];
    judgement.push('Usual checks', 'Oracle ');
    const { gradients = [], models = [] } = report.gradients ?? {};
    const bits = models.length === 0 ? [] : ['Bit for bit '];
    const errors = gradients.map(({ label }) => `Error of ${label} `);
    const shares = gradients.map(({ label }) => `Techniques of ${label} `);
    const ofGradients =
      gradients.length === 0
        ? []
        : ['Gradients ', ...bits, 'Tests of gradients ', ...errors, ...shares];
    const ofOutput = report.outputs === null ? [] : judgement;
    const headings = ['Problem ', ...ofOutput, ...ofGradients, 'Inputs '];
    const lines = full(report).split('\n');
    const starts = lines
      .filter((line, i) => i > 0 && lines[i - 1] === '' && line !== '')
      .filter((line) => !/^(Also|Findings|Evidence|Place|Nearest cause|Worst row)/.test(line));
    expect(starts).toHaveLength(headings.length);
    starts.forEach((line, i) => expect(`${line} `.startsWith(headings[i])).toBe(true));
  });

  test.each(forms)(
    'has colours only when asked, the same text either way (%s)',
    (_form, render) => {
      for (const columns of [60, 80, 140]) {
        const plain = render(report, { color: false, columns });
        const colored = render(report, { color: true, columns });
        expect(plain).not.toContain('\x1b');
        expect(render(report, { columns })).toBe(plain);
        expect(colored).toContain(`${report.verdict.pass ? green : red}${report.verdict.status}`);
        expect(colored.replace(ansiCode, '')).toBe(plain);
      }
    },
  );

  test('is red only where it fails', () => {
    const found = redTexts(full(report, { color: true }));
    if (report.verdict.pass) expect(found).toEqual([]);
    else expect(found[0]).toBe(report.verdict.status);
    // Everything else in red stands in the table of tests, on lines with a red share above 100 %.
    const blocks = [
      ...(report.outputs === null ? [] : ['Tests\x1b']),
      ...(report.gradients === undefined ? [] : ['Gradients', 'Tests of gradients']),
    ];
    const tests = blocks.flatMap((name) =>
      section(full(report, { color: true }), `\x1b[1m${name}`),
    );
    expect(redTexts(tests.join('\n'))).toEqual(found.slice(1));
    for (const line of tests.filter((line) => line.includes(red))) {
      const [share] = redTexts(line)
        .filter((text) => text !== 'FAIL')
        .slice(-1);
      // Of gradients the worst of each test is in the next table.
      if (share === undefined) continue;
      const failing =
        share === 'beyond' ||
        share!.endsWith('×') ||
        share === 'Infinity' ||
        parseFloat(share!.replace(' %', '')) > 0;
      expect(failing, line).toBe(true);
    }
  });

  test.each(forms)('shows nothing that a name could do to a terminal (%s)', (_form, render) => {
    const rendered = render(withHostileNames(report), { color: false });
    expect(rendered).not.toMatch(/[^\n\P{C}]|[\u2028\u2029]/u);
    expect(flowing(rendered)).toContain('\\u{1b}[31mred\\u{1b}[0m\\u{d}\\u{a}\\u{202e}tfel');
  });
});

describe('the terminal report', () => {
  const text = (name: string) => full(judgedCases[name].report);

  test('marks exactly the tests that fail', () => {
    for (const [, { report }] of someCases) {
      if (report.outputs === null) continue;
      const { elements, spread } = outOf(report);
      const lse = lseOf(report);
      const failing = structureIn(report).filter(
        ({ statistic, threshold }) => Math.abs(Number(statistic)) > Number(threshold),
      );
      const expected = [
        ...(Number(elements.nonFinite) > 0 ? ['not finite'] : []),
        ...(Number(elements.worstRatio) > 1 ? ['element'] : []),
        ...(Number(spread.worstRatio) > 1 ? ['spread'] : []),
        ...spread.results
          .filter(({ measured, limit }) => Number(measured) > Number(limit))
          .map(({ scope }) => `rms, ${scope}`),
        ...failing.map(({ test, scope }) => `${test}, ${scope}`),
        ...(Number(lse?.nonFinite ?? 0) > 0 ? ['LSE not finite'] : []),
        ...(Number(lse?.worstRatio ?? 0) > 1 ? ['LSE'] : []),
      ];
      const marked = section(full(report, { color: true }), '\x1b[1mTests')
        .filter((line) => line.includes(red))
        .map((line) => line.replace(ansiCode, '').trim().split(/ {2,}/)[0]);
      expect(marked).toEqual(expected);
    }
  });

  test('gives the numbers of the audit', () => {
    const { audit, report } = judgedCases['O × 1.5'];
    const rendered = full(report);
    const { absolute, ulps, relative } = audit.outputs.out.error;
    const row = (name: string) =>
      rendered
        .split('\n')
        .find((line) => line.startsWith(`  ${name} `))!
        .trim()
        .split(/ {2,}/);
    const shown = (name: string, ...values: number[]) =>
      expect(row(name).slice(1, 1 + values.length)).toEqual(values.map(formatNumber));
    shown('largest', absolute.max, ulps.max, relative.max);
    shown('rms', absolute.rms, ulps.rms, relative.rms);
    shown('mean', absolute.mean);
    shown('median', absolute.percentiles.p50, ulps.percentiles.p50);
    shown('90 %', absolute.percentiles.p90, ulps.percentiles.p90);
    shown('99 %', absolute.percentiles.p99, ulps.percentiles.p99);
    shown('99.9 %', absolute.percentiles.p999, ulps.percentiles.p999);
    for (const { test, scope, statistic, threshold } of structureOf(audit))
      shown(`${test}, ${scope}`, statistic, threshold);
    const lse = audit.outputs.lse!.numbers.worst!;
    shown('LSE not finite', 0, 0);
    const lseRow = rendered.split('\n').find((line) => /^ {2}LSE .* head \d/.test(line))!;
    expect(lseRow.trim().split(/ {2,}/).slice(1, 3)).toEqual(
      [lse.value - lse.oracle, lse.bound].map(formatNumber),
    );
    const { error, bound, at } = audit.outputs.out.elements.worst!;
    shown('element', error, bound);
    expect(row('element')[4]).toBe(`head ${at.head}, query ${at.query}, column ${at.column}`);
    expect(rendered).toContain(`${audit.baselines.allclose.violations} of 320 outside`);
    expect(rendered).toContain('problem  aaaaaaaaaaaa  problem.safetensors');
    expect(rendered).toContain('output   bbbbbbbbbbbb  bf16 out of kernel.npz');
  });

  test('says what the problem is', () => {
    const problem = (name: string) => flowing(section(text(name), 'Problem').join(' '));
    expect(problem('pass')).toBe(
      'Problem 2 heads, 20 queries × 24 keys, dim 8, bf16, scale 0.354 (1/√8)',
    );
    expect(problem('pass, grouped heads, batch 2')).toContain('batch 2, 4 heads (2 of K and V), 9');
    expect(problem('pass, causal, window, softcap')).toMatch(
      /scale -0\.7, causal, window 5,-1, softcap 3$/,
    );
  });

  test("gives a structure test's head within its batch entry", () => {
    const rendered = text('O is zero on the last head');
    expect(rendered).toMatch(/ {2}scale, head .*batch 1, head 3$/m);
    expect(rendered).toMatch(/ {2}scale, tile .*batch 1, head 3, queries 0 to 8$/m);
    expect(rendered).toMatch(/ {2}scale, row .*batch 1, head 3, query \d$/m);
  });

  test('says so when there was no LSE, no output, or a rule with a softcap', () => {
    expect(text('pass without LSE')).toContain('LSE    not given, not judged');
    expect(text('pass')).toContain("FlashAttention's 2×");
    expect(text('pass, causal, window, softcap')).toContain("FlashAttention's 3×");
    expect(text('pass of a live kernel')).toMatch(/output .* bf16 out from the command$/m);
    expect(full(executionFailure)).not.toMatch(/^(Error|Tests|Oracle)/m);
  });

  test('sets narrow and default widths to 60 and 80 columns', () => {
    const { report } = judgedCases['O × 1.5'];
    expect(full(report)).toBe(full(report, { columns: 80 }));
    expect(full(report, { columns: 20 })).toBe(full(report, { columns: 60 }));
    expect(full(report, { columns: 0 })).toBe(full(report, { columns: 60 }));
  });

  test('does not ask the environment about colours', () => {
    const { report } = judgedCases['pass'];
    const saved = process.env['NO_COLOR'];
    try {
      process.env['NO_COLOR'] = '1';
      expect(full(report, { color: true })).toContain(`${green}PASS`);
    } finally {
      if (saved === undefined) delete process.env['NO_COLOR'];
      else process.env['NO_COLOR'] = saved;
    }
  });

  inTurn('fits its width whatever the numbers are', () => {
    const extreme = fc.constantFrom(NaN, Infinity, -1.2345e-300, 1.2345e300, 5e-324, 99999.5, 0);
    const measured = fc.oneof(fc.double(), extreme);
    // No typed array has more elements.
    const count = fc.nat({ max: 2 ** 33 });
    /** The report with every number of its results replaced. */
    const scramble = (value: unknown, next: (isCount: boolean) => number, key = ''): unknown => {
      if (Array.isArray(value)) return value.map((item) => scramble(item, next));
      if (typeof value === 'number')
        return next(/^(elements|outside|nonFinite|violations|head|batch|query|column)$/.test(key));
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(
        Object.entries(value).map(([k, item]) => [k, scramble(item, next, k)]),
      );
    };
    const numbers = fc.array(measured, { minLength: 40, maxLength: 90 });
    const counts = fc.array(count, { minLength: 7, maxLength: 20 });
    fc.assert(
      fc.property(
        fc.constantFrom(...someCases.map(([name]) => name)),
        numbers,
        counts,
        fc.integer({ min: 60, max: 140 }),
        (name, sizes, whole, columns) => {
          const { report } = judgedCases[name];
          let at = 0;
          const next = (isCount: boolean) => {
            at++;
            return isCount ? whole[at % whole.length] : sizes[at % sizes.length];
          };
          const { outputs, baselines } = report;
          const changed = {
            ...report,
            ...(scramble({ outputs, baselines }, next) as object),
          } as AuditReport;
          for (const [, render] of forms) {
            const lines = render(changed, { columns }).split('\n');
            expect(lines.filter((line) => displayWidth(line) > columns)).toEqual([]);
          }
        },
      ),
      { numRuns: scaled(80) },
    );
  });
});

describe('the short report', () => {
  const lines = (report: AuditReport) => renderAudit(report).split('\n');

  test.each(reports.filter(([, { verdict }]) => verdict.pass))(
    'of %s fits one screen',
    (_, report) => {
      // 24 lines of 80 columns, of which the prompt takes one; the last of these is empty.
      expect(lines(report).length).toBeLessThanOrEqual(24);
    },
  );

  test('of a pass has the numbers that are asked for first', () => {
    const { audit, report } = judgedCases['pass'];
    const text = flowing(renderAudit(report));
    const { absolute, ulps } = audit.outputs.out.error;
    expect(text).toContain(`Largest error ${formatNumber(absolute.max)},`);
    expect(text).toContain(`Rms error ${formatNumber(absolute.rms)},`);
    expect(text).toContain(`median ${formatNumber(ulps.percentiles.p50)} ulp of bf16`);
    expect(text).toContain(
      `Bound used ${formatNumber(100 * audit.outputs.out.elements.worstRatio)} %`,
    );
    expect(text).toContain(`LSE error ${formatNumber(audit.outputs.lse!.numbers.max)} at most;`);
    const shares = [
      ...structureOf(audit).map(({ statistic, threshold }) => Math.abs(statistic) / threshold),
      ...audit.outputs.out.spread.results.map(({ measured, limit }) => measured / limit),
      audit.outputs.out.spread.worst!.error / audit.outputs.out.spread.worst!.bound,
    ];
    expect(text).toMatch(/Closest test [a-z-]+(, [a-z]+)?: /);
    expect(text).toContain(`: ${formatNumber(100 * Math.max(...shares))} % of what is allowed`);
    expect(text).toContain('Not judged the test key-tile, since there is one tile of keys only');
    expect(text).toContain('--full');
  });

  test('says what was not judged', () => {
    const text = (name: string) => flowing(renderAudit(judgedCases[name].report));
    expect(text('pass without LSE')).toContain('Not judged the LSE, since none was given');
    expect(text('pass, NaN and infinity in V')).toMatch(/Not judged the size of \d+ elements/);
  });

  test('of a fail has those of the tests that fail by most, each once, and says how many others fail', () => {
    for (const [, { report, findings }] of someCases) {
      if (findings.length === 0 || report.outputs === null) continue;
      const tests = section(renderAudit(report), 'Tests').slice(1);
      const names = tests
        .filter((line) => /^ {2}[a-zA-Z]/.test(line) && / {2}/.test(line.trim()))
        .map((line) => line.trim().split(/,| {2,}/)[0]);
      expect(names.length).toBeGreaterThan(0);
      expect(new Set(names).size).toBe(names.length);
      const shares = new Map<string, number>();
      for (const { test, statistic, threshold } of structureIn(report)) {
        const share = Math.abs(Number(statistic)) / Number(threshold);
        shares.set(test, Math.max(shares.get(test) ?? 0, share));
      }
      const failing = [...shares].filter(([, share]) => share > 1);
      const listed = failing.filter(([test]) => names.includes(test)).map(([, share]) => share);
      for (const [test, share] of failing)
        if (!names.includes(test))
          for (const other of listed) expect(other).toBeGreaterThanOrEqual(share);
      const [, more = '0'] = /(\d+) more tests? fails?; --full/.exec(tests.join('\n')) ?? [];
      if (names.length < 3) expect(more).toBe('0');
      for (const name of names)
        if (shares.has(name as never)) expect(shares.get(name as never)).toBeGreaterThan(1);
    }
  });
});

describe('every row of the tests', () => {
  test('has its unit and a gloss below it', () => {
    const tables = ['pass', 'a key tile is missing'].map((name) =>
      section(full(judgedCases[name].report), 'Tests'),
    );
    for (const [test, { unit, gloss }] of Object.entries(testWords(quantities))) {
      const rendered = tables.find((table) =>
        table.some((line) => new RegExp(`^  ${test}(?:, | {2})`).test(line)),
      )!;
      expect(rendered, test).toBeDefined();
      const last = rendered.findLastIndex((line) => new RegExp(`^  ${test}(?:, | {2})`).test(line));
      expect(last, test).toBeGreaterThan(0);
      const after = rendered.slice(last + 1).find((line) => /^ {4}\S/.test(line));
      expect(after, test).toBe(`    ${gloss}; ${unit}`);
    }
  });
});

describe('inputs that were not used', () => {
  const { report } = judgedCases['pass, inputs that are not used'];

  test('are named in the verdict and in both forms', () => {
    expect(report.verdict.sentence).toMatch(
      /bound; judged without the file's bias, mask and metadata dropout_p\.$/,
    );
    for (const [, render] of forms) {
      const text = flowing(render(report));
      expect(text).toContain(
        'Not used bias, mask, metadata dropout_p: attention is judged without them',
      );
      expect(text).toContain('dout: these gradients are not judged');
      expect(text).toContain('x\\u{202e}: no input or output is known by such a name');
    }
  });

  test('are none where all is used', () => {
    const { report } = judgedCases['pass'];
    expect(report.warnings).toEqual([]);
    expect(renderAudit(report)).not.toContain('Not used');
  });
});
