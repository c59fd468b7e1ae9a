import type { AuditReport } from '../../src/report/json/audit-report.js';
import { describe, expect, test } from 'vitest';
import { renderJunit } from '../../src/report/junit/audit-junit.js';
import { lseOf, outOf, withOutput, executionFailure, judgedCases, reports } from './cases.js';

interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: XmlElement[];
  text: string;
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
};

/** Characters that XML 1.0 does not admit, by its production Char. */

const inadmissible = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;

function unescape(text: string): string {
  expect(text).not.toMatch(/[<>"]/);
  return text.replace(/&(\w*)(;?)/g, (whole, name: string, end: string) => {
    expect(end === ';' && name in entities, whole).toBe(true);
    return entities[name];
  });
}

/** Parses the subset of XML that has elements, attributes in double quotes and text; or throws. */
function parseXml(xml: string): XmlElement {
  expect(xml).not.toMatch(inadmissible);
  const declaration = '<?xml version="1.0" encoding="UTF-8"?>\n';
  expect(xml.startsWith(declaration)).toBe(true);
  const root: XmlElement = { name: '', attributes: {}, children: [], text: '' };
  const stack = [root];
  const token = /<(\/?)([a-z-]+)((?: [a-z]+="[^"<]*")*)(\/?)>|([^<]+)/gy;
  token.lastIndex = declaration.length;
  while (token.lastIndex < xml.length) {
    const at = token.lastIndex;
    const match = token.exec(xml);
    if (match === null) throw new Error(`no XML at ${at}: ${xml.slice(at, at + 60)}`);
    const [, closing, name = '', attributes = '', empty, text] = match;
    const top = stack.at(-1)!;
    if (text !== undefined) top.text += unescape(text);
    else if (closing === '/') {
      if (top.name !== name) throw new Error(`</${name}> closes <${top.name}>`);
      stack.pop();
    } else {
      const pairs = [...attributes.matchAll(/ ([a-z]+)="([^"]*)"/g)];
      const names = pairs.map(([, key]) => key!);
      if (new Set(names).size !== names.length) throw new Error(`an attribute of <${name}> twice`);
      const element: XmlElement = {
        name,
        attributes: Object.fromEntries(pairs.map(([, key, value]) => [key, unescape(value!)])),
        children: [],
        text: '',
      };
      top.children.push(element);
      if (empty !== '/') stack.push(element);
    }
  }
  if (stack.length !== 1) throw new Error(`<${stack.at(-1)!.name}> is not closed`);
  expect(root.children).toHaveLength(1);
  expect(root.text.trim()).toBe('');
  return root.children[0];
}

/** The test cases of a suite, which may hold its output too. */
function cases({ children }: XmlElement): XmlElement[] {
  return children.filter(({ name }) => name !== 'system-out');
}

function childNames(element: XmlElement): (string | undefined)[] {
  return cases(element).map(({ attributes }) => attributes['name']);
}

function outcomes(suite: XmlElement): Record<string, string> {
  return Object.fromEntries(
    cases(suite).map(({ attributes, children }) => [
      attributes['name'],
      children[0]?.name ?? 'pass',
    ]),
  );
}

/** The test case that a finding fails. */
const legOf: Readonly<Record<string, string>> = {
  execution: 'execution',
  'split-part': 'parts',
  'split-merge': 'parts',
  'non-finite': 'non-finite',
  'element-bound': 'element bound',
  'element-spread': 'spread',
  rms: 'spread',
  scale: 'structure scale',
  bias: 'structure bias',
  truncation: 'structure truncation',
  dispersion: 'structure dispersion',
  'key-tile': 'structure key-tile',
  'lse-non-finite': 'LSE',
  'lse-bound': 'LSE',
  'lse-mean': 'LSE',
  ...Object.fromEntries(
    (['dq', 'dk', 'dv'] as const).flatMap((name) => {
      const label = { dq: 'dQ', dk: 'dK', dv: 'dV' }[name];
      return [
        [`${name}-non-finite`, `${label} non-finite`],
        [`${name}-bound`, `${label} element bound`],
        ...['spread', 'rms'].map((test) => [`${name}-${test}`, `${label} spread`]),
        ...['scale', 'sum', 'pairing'].map((test) => [`${name}-${test}`, `${label} sums`]),
      ];
    }),
  ),
};

const legs = [
  'has a bound',
  'non-finite',
  'element bound',
  'spread',
  'structure scale',
  'structure bias',
  'structure truncation',
  'structure dispersion',
  'structure key-tile',
  'LSE',
];

describe.each(reports)('%s as JUnit XML', (_, report) => {
  const suite = parseXml(renderJunit([report])).children[0];

  test('has a test case per test, failed by its findings alone', () => {
    const live = report.inputs.command === null ? [] : ['execution'];
    const parts = report.splits === null ? [] : ['parts'];
    const ofGradients = (report.gradients?.gradients ?? []).flatMap(({ label }) =>
      ['non-finite', 'element bound', 'spread', 'sums'].map((test) => `${label} ${test}`),
    );
    expect(childNames(suite)).toEqual([...live, ...parts, ...legs, ...ofGradients]);
    const failed = Object.entries(outcomes(suite)).filter(([, outcome]) => outcome === 'failure');
    const expected = new Set(report.verdict.findings.map(({ test }) => legOf[test]));
    if (report.verdict.status === 'NOT JUDGED')
      expected.add(report.outputs === null ? 'execution' : 'has a bound');
    expect(new Set(failed.map(([name]) => name))).toEqual(expected);
  });

  test('carries the verdict as the message, and every finding in the text', () => {
    for (const { test, statement } of report.verdict.findings) {
      const leg = suite.children.find(({ attributes }) => attributes['name'] === legOf[test])!;
      expect(leg.children).toHaveLength(1);
      expect(leg.children[0].attributes['message']).toBe(report.verdict.sentence);
      expect(leg.children[0].attributes['type'].split(' ')).toContain(test);
      expect(leg.children[0].text).toContain(statement);
    }
  });

  test('carries the cause and its evidence with every failure', () => {
    const { diagnosis, findings } = report.verdict;
    if (diagnosis === null) return;
    for (const { test } of findings) {
      const leg = suite.children.find(({ attributes }) => attributes['name'] === legOf[test])!;
      for (const text of [diagnosis.sentence, ...diagnosis.evidence])
        expect(leg.children[0].text).toContain(text);
    }
  });

  test('counts what it has', () => {
    const all = Object.values(outcomes(suite));
    const count = (outcome: string) => String(all.filter((found) => found === outcome).length);
    expect(suite.attributes).toMatchObject({
      tests: String(all.length),
      failures: count('failure'),
      skipped: count('skipped'),
      errors: '0',
      time: '0.125',
      timestamp: '2026-02-03T04:05:06.789Z',
    });
  });
});

describe('JUnit XML', () => {
  test('skips what could not be run', () => {
    const skipped = (report: AuditReport) =>
      Object.entries(outcomes(parseXml(renderJunit([report])).children[0]))
        .filter(([, outcome]) => outcome === 'skipped')
        .map(([name]) => name);
    // Their problems have one tile of keys.
    expect(skipped(judgedCases['pass'].report)).toEqual(['structure key-tile']);
    expect(skipped(judgedCases['pass without LSE'].report)).toEqual(['structure key-tile', 'LSE']);
    expect(skipped(executionFailure)).toEqual(legs);
  });

  test('sums up several reports, and none', () => {
    const all = parseXml(renderJunit(reports.map(([, report]) => report)));
    expect(all.children).toHaveLength(reports.length);
    for (const total of ['tests', 'failures', 'skipped'])
      expect(Number(all.attributes[total])).toBe(
        all.children.reduce((sum, suite) => sum + Number(suite.attributes[total]), 0),
      );
    expect(Number(all.attributes['time'])).toBeCloseTo(0.125 * reports.length, 2);
    expect(parseXml(renderJunit([])).attributes).toMatchObject({ tests: '0', failures: '0' });
  });

  test('is well formed whatever the names hold, and keeps what XML can', () => {
    const name = `a&b<c>"d'e]]>&amp;\u0000\u001b[31m\n\t\ufffe\uffff\ud800 漢字 😀 <!-- -->`;
    const { report } = judgedCases['O × 1.5'];
    const source = { ...report.inputs.outputs[0], path: name, tensor: name };
    const hostile: AuditReport = {
      ...report,
      inputs: {
        ...report.inputs,
        problem: { ...report.inputs.problem, path: name },
        outputs: [source],
      },
      verdict: {
        ...report.verdict,
        sentence: name,
        findings: [{ quantity: 'out', test: 'scale', isWorstCase: false, statement: name }],
        diagnosis: null,
      },
    };
    const suite = parseXml(renderJunit([hostile])).children[0];
    const kept = `a&b<c>"d'e]]>&amp;\\u{0}\\u{1b}[31m\\u{a}\\u{9}\\u{fffe}\\u{ffff}\\u{d800} 漢字 😀 <!-- -->`;
    expect(suite.attributes['name']).toContain(kept);
    const scale = suite.children.find(
      ({ attributes }) => attributes['name'] === 'structure scale',
    )!;
    expect(scale.attributes['classname']).toContain(kept);
    expect(scale.children[0].attributes['message']).toBe(kept);
    expect(scale.children[0].text.trim().startsWith(kept)).toBe(true);
  });
});

describe('a test case with nothing behind it', () => {
  const { report } = judgedCases['pass'];
  const skippedIn = (changed: AuditReport) =>
    Object.entries(outcomes(parseXml(renderJunit([changed])).children[0]))
      .filter(([, outcome]) => outcome === 'skipped')
      .map(([name]) => name);

  test('is skipped: an LSE without a bound on any row, a spread without results', () => {
    const lse = { ...lseOf(report)!, unbounded: lseOf(report)!.rows };
    const outputs = report.outputs!.map((output) =>
      output.row === 'number' ? { ...output, numbers: lse } : output,
    );
    expect(skippedIn({ ...report, outputs } as unknown as AuditReport)).toContain('LSE');
    const spread = { ...outOf(report).spread, results: [] };
    const changed = withOutput(report, (output) => ({ ...output, spread }));
    expect(skippedIn(changed)).toContain('spread');
  });
});
