import { structureOf } from '../../src/audit/index.js';
import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  fromReported,
  toReported,
  type ReportNumber,
} from '../../src/report/json/report-number.js';
import { describeReportedProblem, type JudgedReport } from '../../src/report/json/index.js';
import { renderJunit } from '../../src/report/junit/index.js';
import { renderAudit } from '../../src/report/text/index.js';
import {
  lseOf,
  outOf,
  structureIn,
  executionDeclined,
  executionFailure,
  judgedCases,
  someCases,
  reports,
} from './cases.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

/** The same value with −0 as 0, which is all that a report drops. */
function unsignedZeros(value: unknown): unknown {
  if (Object.is(value, -0)) return 0;
  if (Array.isArray(value)) return value.map(unsignedZeros);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, unsignedZeros(v)]));
}

describe('the report of an audit', () => {
  test.each(someCases)('%s: has the findings it must', (_, { report, findings }) => {
    const found = report.verdict.findings.map(({ test }) => test);
    expect(found).toEqual(expect.arrayContaining([...findings]));
    expect(report.verdict.pass).toBe(findings.length === 0 && report.verdict.judged);
    if (report.verdict.pass) expect(found).toEqual([]);
  });

  test.each(someCases)('%s: is the audit, number for number', (_name, given) => {
    const { audit, report } = given;
    const { sentence, diagnosis, ...verdict } = audit.verdict;
    // What too little speaks for is for who holds several audits against each other, and told by no document.
    const told = Object.entries(diagnosis ?? {}).filter(([name]) => name !== 'fitting');
    const diagnosisTold = diagnosis === null ? null : Object.fromEntries(told);
    const verdictTold = { ...verdict, sentence, diagnosis: diagnosisTold };
    deepStrictEqual({ ...report.verdict, sentence }, verdictTold);
    if (report.warnings.length === 0) expect(report.verdict.sentence).toBe(sentence);
    else expect(report.verdict.sentence.startsWith(sentence.slice(0, -1))).toBe(true);
    for (const part of ['baselines', 'oracle'] as const)
      deepStrictEqual(fromReported(report[part] as never), unsignedZeros(audit[part]), part);
    const { out, lse } = audit.outputs;
    const parts = { ...out, structure: structureOf(audit), lse: lse?.numbers ?? null };
    const { error, elements, spread } = outOf(report);
    const reported = {
      error,
      elements,
      spread,
      structure: structureIn(report),
      lse: lseOf(report),
    };
    for (const part of ['error', 'elements', 'spread', 'structure', 'lse'] as const)
      deepStrictEqual(fromReported(reported[part] as never), unsignedZeros(parts[part]), part);
    expect(report.falseAlarmRate).toBe(audit.falseAlarmRate);
  });

  test.each(reports)('%s: reads back from JSON as it was', (_, report) => {
    deepStrictEqual(JSON.parse(JSON.stringify(report)), report);
  });

  test('says where the inputs came from, but for the temporary files of a live kernel', () => {
    const read = judgedCases['pass'].report.inputs;
    expect(read.outputs.map(({ name }) => name)).toEqual(['out', 'lse']);
    expect([read.outputs[0].path, read.outputs[1].path, read.command]).toEqual([
      'kernel.npz',
      'kernel.npz',
      null,
    ]);
    const live = judgedCases['pass of a live kernel'].report.inputs;
    expect([live.outputs[0].path, live.outputs[1].path, live.command]).toEqual([
      null,
      null,
      'python kernel.py --fast',
    ]);
    expect(live.outputs[0].sha256).toBe('b'.repeat(64));
  });

  test('has the settings of the problem', () => {
    expect(judgedCases['pass, causal, window, softcap'].report.problem).toEqual({
      batch: 1,
      heads: 2,
      kvHeads: 2,
      seqlenQ: 12,
      seqlenK: 12,
      qkDim: 8,
      vDim: 8,
      formats: { q: 'bf16', k: 'bf16', v: 'bf16' },
      scale: -0.7,
      causal: true,
      window: { left: 5, right: -1 },
      softcap: 3,
    });
  });

  test('of a kernel that gave no output is a fail for the reason given', () => {
    const { verdict, outputs, baselines, oracle } = executionFailure;
    expect(verdict.pass).toBe(false);
    expect(verdict.sentence).toMatch(/^FAIL: the kernel's process was killed by SIGSEGV; .*\.$/);
    expect(verdict.findings.map(({ test }) => test)).toEqual(['execution']);
    expect([outputs, baselines, oracle]).toEqual(new Array(3).fill(null));
  });

  test('of a kernel that declined the problem is neither a fail nor a pass, and says why', () => {
    const { verdict, outputs } = executionDeclined;
    expect(verdict).toMatchObject({ pass: false, judged: false, findings: [] });
    expect(verdict.sentence).toBe("NOT JUDGED: the kernel's process declined the problem: dim 7.");
    expect(outputs).toBeNull();
    expect(executionFailure.verdict.status).toBe('FAIL');
    expect(executionDeclined.verdict.status).toBe('NOT JUDGED');
    // Who reads JUnit alone sees that nothing passed.
    const xml = renderJunit([executionDeclined]);
    expect(xml.match(/<failure [^>]*>/g)).toEqual([
      expect.stringMatching(/message="NOT JUDGED: .*declined.*" type="execution"/) as string,
    ]);
  });

  inTurn('the cases reach NaN, infinities and values beyond every measure', () => {
    const leaves = JSON.stringify(Object.values(judgedCases).map(({ report }) => report));
    for (const text of ['"NaN"', '"Infinity"', '"-Infinity"']) expect(leaves).toContain(text);
  });
});

describe('numbers of a report', () => {
  const number = fc.oneof(fc.double(), fc.constantFrom(NaN, Infinity, -Infinity, -0, 5e-324));

  test('survive JSON exactly, but for the sign of zero', () => {
    fc.assert(
      fc.property(fc.record({ a: number, b: fc.array(number), c: fc.boolean() }), (value) => {
        const reported = toReported(value);
        const read = JSON.parse(JSON.stringify(reported)) as typeof reported;
        deepStrictEqual(read, reported);
        deepStrictEqual(fromReported(read), unsignedZeros(value));
      }),
    );
  });

  test('that JSON cannot hold are the three strings', () => {
    const written: readonly ReportNumber[] = toReported([NaN, Infinity, -Infinity, 0.1]);
    expect(written).toEqual(['NaN', 'Infinity', '-Infinity', 0.1]);
  });

  test('properties that are undefined are left out', () => {
    expect(Object.keys(toReported({ a: undefined, b: null }))).toEqual(['b']);
  });
});

describe('a report of packed sequences', () => {
  const { audit, report } = judgedCases['packed sequences, O and LSE with NaN and off'];

  test('says the sequence of a place, and the query within it', () => {
    const at = { batch: 0, head: 0, sequence: 2, query: 2 };
    expect(outOf(report).elements.worst).toMatchObject({ at: { ...at, column: 3 } });
    expect(outOf(report).elements.firstNonFinite).toEqual({ ...at, query: 3, column: 0 });
    expect(lseOf(report)).toMatchObject({ worst: { at }, firstNonFinite: { at: { query: 3 } } });
    const statements = audit.verdict.findings.map(({ statement }) => statement).join('\n');
    expect(statements).toMatch(/at sequence 2, head 0, query 2, column 3/);
    expect(renderAudit(report)).toMatch(/sequence 2, head 0, query 2/);
    expect(renderJunit([report])).toMatch(/sequence 2, head 0, query 2/);
  });

  test('says how each sequence does, and what is not judged', () => {
    const [first, empty, last] = (report as JudgedReport).sequences ?? [];
    expect(first).toMatchObject({ sequence: 0, queries: 8, keys: 9, outside: 0 });
    expect(empty).toEqual({ sequence: 1, queries: 0, keys: 3, worstRatio: 0, outside: 0 });
    expect(last).toMatchObject({ sequence: 2, queries: 12, keys: 12, outside: 1 });
    expect(last?.worstRatio).toBeGreaterThan(1);
    expect(describeReportedProblem(report.problem)).toMatch(
      /causal, 3 sequences of 0 to 12 queries and 3 to 12 keys, pages of 4, 4 unused rows of queries, not judged$/,
    );
    expect(renderAudit(report, { full: true })).toMatch(/^ {2}sequence 2 +12 +12 /m);
  });
});

test('a report names every feature', () => {
  expect(describeReportedProblem(judgedCases['pass of every feature'].report.problem)).toMatch(
    /, mask, bias in fp32, ALiBi, sink in the LSE, 2 segments, prefix of 3 keys, blocks of 16 × 16, dropout 0\.25, v_descale$/,
  );
});
