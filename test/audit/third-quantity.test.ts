import { describe, expect, it } from 'vitest';
import type { AttentionReference } from '../../oracles/index.js';
import {
  auditOutputs,
  judgeOutputs,
  type AuditOptions,
  type JudgedElements,
} from '../../src/audit/index.js';
import { findingsOf } from '../../src/audit/findings.js';
import type { JudgedStatistic, JudgedVectors } from '../../src/audit/judge-quantity.js';
import { locateQuantity, locatorOf } from '../../src/audit/rows/index.js';
import { reachVerdict } from '../../src/audit/verdict.js';
import { quantities, type Quantity, type Tensor } from '../../src/problem/index.js';
import { createAuditReport, type JudgedReport } from '../../src/report/json/index.js';
import { validateReport } from '../../src/report/validation/index.js';
import { renderJunit } from '../../src/report/junit/index.js';
import { renderAudit } from '../../src/report/text/index.js';
import { decode, encode } from './damage.js';
import { runPlantedKernel } from './planted-kernel.js';
import { judgementOf, statisticOf } from './gradients/definitions/made-judgements.js';
import { drawProblem } from './declared-problems.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

/** The mean of O over its columns. */
const rowMean: Quantity = {
  name: 'row-mean',
  axes: ['batch', 'heads', 'queries'],
  row: 'number',
  prose: 'the row mean',
  label: 'row mean',
  parts: 'rows',
  unit: 'output units',
  magnitude: '',
  isExpected: false,
  option: 'rowMean',
};

/** −O. */
const negated: Quantity = {
  name: 'negated',
  axes: ['batch', 'heads', 'queries', 'vDim'],
  row: 'vector',
  prose: 'the negated output',
  label: 'negated',
  parts: 'elements of −O',
  unit: 'output units',
  magnitude: 'Σ p|v|',
  isExpected: false,
  option: 'negated',
};

const problem = drawProblem(3, 0, Infinity, { heads: 2, queries: 24, keys: 40, dim: 16 });
const { out, lse } = runPlantedKernel(problem);
const values = decode(out);
const columns = 16;
const means = (of: Float64Array) =>
  Float64Array.from({ length: of.length / columns }, (_, row) => {
    const elements = of.subarray(row * columns, (row + 1) * columns);
    return elements.reduce((sum, x) => sum + x, 0) / columns;
  });

/** What an oracle and bounds of the two would say, made by hand from what they say of O. */
function measured(): AuditOptions {
  let seen: JudgedElements | undefined;
  judgeOutputs(problem, { out, lse }, { diagnose: false, onElements: (judged) => (seen = judged) });
  const { reference, bounds } = seen!;
  const exact = reference.quantities.out;
  const ofOut = bounds.quantities.out;
  const rows = exact.values.length / columns;
  const zeros = new Float64Array(rows);
  const withBoth: AttentionReference = {
    ...reference,
    quantities: {
      ...reference.quantities,
      'row-mean': { values: means(exact.values), radius: zeros, magnitude: null },
      negated: { ...exact, values: exact.values.map((x) => -x) },
    },
  };
  const ofMeans = { total: means(ofOut.total), systematic: zeros, known: zeros, deviation: zeros };
  return {
    quantities: [...quantities, rowMean, negated],
    reference: withBoth,
    bounds: {
      ...bounds,
      quantities: { ...bounds.quantities, 'row-mean': ofMeans, negated: ofOut },
    },
  };
}

const options = measured();
const sha256 = 'a'.repeat(64);

/** The report of a kernel that gives all four, these two changed. */
function reportOf(
  changedMean: (x: number, row: number) => number,
  changedNegated: (x: number, i: number) => number,
): JudgedReport {
  const { batch, heads, queries } = options.reference!.shape;
  const meanTensor: Tensor = {
    format: 'fp64',
    shape: [batch, heads, queries],
    data: means(values).map(changedMean),
  };
  const given = {
    out,
    lse,
    'row-mean': meanTensor,
    negated: encode(
      values.map((x, i) => changedNegated(-x, i)),
      out.format,
      out.shape,
    ),
  };
  const audit = auditOutputs(problem, given, options);
  const source = { path: 'dump.npz', sha256, format: 'fp32' } as const;
  return createAuditReport(problem, audit, {
    version: '1.2.3',
    problem: { path: 'dump.npz', sha256 },
    outputs: {
      out: { ...source, tensor: 'out' },
      'row-mean': { ...source, tensor: 'row-mean' },
    },
    command: null,
    seconds: 1,
  });
}

const same = (x: number) => x;
const flowing = (text: string) => text.replaceAll(/\s+/g, ' ');
const caseOf = (xml: string, name: string) =>
  new RegExp(`<testcase name="${name}"[^>]*?(/>|>[^]*?</testcase>)`).exec(xml)![0];

describe('quantities that the library does not know', () => {
  it('are said not to be judged where nobody tells what they are', () => {
    const given = { out, lse, dq: out, left: null };
    const { verdict } = auditOutputs(problem, given, { diagnose: false });
    expect(verdict.pass).toBe(true);
    expect(verdict.notes).toEqual([
      'not judged: dq, since no quantity that is judged has this name',
    ]);
    expect(auditOutputs(problem, { out, lse }, { diagnose: false }).verdict.notes).toEqual([]);
  });

  it('are no reason to judge nothing', () => {
    for (const quantities of [[], options.quantities!.slice(1)])
      expect(() => auditOutputs(problem, { out, lse }, { quantities })).toThrow(
        /^the quantities to judge are .*; give out among them/,
      );
  });

  inTurn('pass as the others do, in every form of the report', async () => {
    const report = reportOf(same, same);
    await validateReport(report);
    expect(report.outputs.map(({ name }) => name)).toEqual(['out', 'lse', 'row-mean', 'negated']);
    expect(report.verdict).toMatchObject({ pass: true, findings: [] });
    expect(report.verdict.sentence).toMatch(
      /^PASS: the output, the LSE, the row mean and the negated output stay within what rounding/,
    );
    const text = renderAudit(report, { full: true });
    expect(text).toContain('Error of negated');
    expect(text).toMatch(/^ {2}row mean +largest .* \(output units\)$/m);
    expect(text).toMatch(/^ {2}negated element +\S+ +\S+/m);
    expect(text).toMatch(/^ {2}row mean not finite +0 +0/m);
    expect(text).toMatch(/^ {2}row-mean +a{12} +fp32 row-mean of the same file$/m);
    expect(flowing(renderAudit(report))).toContain('row mean error');
    const xml = renderJunit([report]);
    for (const name of [
      'row mean',
      'negated element bound',
      'negated spread',
      'negated non-finite',
    ])
      expect(caseOf(xml, name)).toMatch(/\/>$/);
  });

  inTurn('fail by their own tests, in their own words', async () => {
    const report = reportOf(
      (x, row) => (row === 7 ? x + 1 : row === 3 ? NaN : x),
      (x, i) => (i === 17 * columns + 5 ? x + 1 : x),
    );
    await validateReport(report);
    expect(report.verdict.pass).toBe(false);
    const found = report.verdict.findings.map(({ quantity, test, isWorstCase }) => ({
      quantity,
      test,
      isWorstCase,
    }));
    expect(found).toEqual(
      expect.arrayContaining([
        { quantity: 'row-mean', test: 'row-mean-non-finite', isWorstCase: true },
        { quantity: 'row-mean', test: 'row-mean-bound', isWorstCase: true },
        { quantity: 'negated', test: 'negated-bound', isWorstCase: true },
      ]),
    );
    expect(found.every(({ quantity }) => quantity === 'row-mean' || quantity === 'negated')).toBe(
      true,
    );
    const statements = report.verdict.findings.map(({ statement }) => statement).join('\n');
    expect(statements).toMatch(/^the row mean of 1 of 48 rows is off; worst .* query 7$/m);
    expect(statements).toMatch(
      /^1 of 768 elements of −O err by more than .* can; the worst by \S+ where at most .*$/m,
    );
    const text = flowing(renderAudit(report, { full: true }));
    for (const { statement } of report.verdict.findings) expect(text).toContain(flowing(statement));
    const xml = renderJunit([report]);
    expect(caseOf(xml, 'row mean')).toContain('row-mean-non-finite row-mean-bound');
    expect(caseOf(xml, 'negated element bound')).toContain('negated-bound');
    expect(caseOf(xml, 'element bound')).toMatch(/\/>$/);
    expect(caseOf(xml, 'LSE')).toMatch(/\/>$/);
  });

  it('are refused where nothing is known of them', () => {
    const given = { out, lse, negated: out };
    const known = [...quantities, negated];
    expect(() => judgeOutputs(problem, given, { quantities: known })).toThrow(
      'nothing is known of what the negated output is exactly',
    );
    const { reference } = options;
    expect(() =>
      judgeOutputs(problem, given, { quantities: known, reference: reference! }),
    ).toThrow('the negated output has no bounds');
  });
});

describe('a quantity that has a bound per element and a structure of sums, as gradients do', () => {
  const state: Quantity = { ...negated, name: 'state', prose: 'the state', parts: 'states' };
  const judgedBy = (structure: readonly JudgedStatistic[], outside: number) => {
    const at = { batch: 0, head: 1, query: 2, column: 3 };
    const worst = { at, value: 1, oracle: 2, error: 1, bound: 0 };
    const { elements, ...made } = judgementOf('dq', { elements: { outside, worst } });
    const judged: JudgedVectors<JudgedStatistic> = {
      ...made,
      quantity: state,
      elements,
      structure,
    };
    const locator = locatorOf(
      (place) => ({ ...place, query: place.query! + 10 }),
      (_, row) => row + 10,
    );
    const located = locateQuantity(judged, locator);
    const findings = findingsOf([located], {
      arithmetic: 'any kernel',
      zeros: 'before the first token',
      prefixesTests: true,
      countsRows: false,
      sums: { state: 'the state is not the sum of its tokens' },
    });
    const clause = (named: string) => `nothing is known of ${named}`;
    return reachVerdict(
      {
        judged: [located],
        required: [located],
        findings,
        unjudged: { unbounded: clause, lost: clause },
      },
      null,
    );
  };

  it('has findings, places and a verdict like all others, in its own words', () => {
    expect(judgedBy([], 0)).toMatchObject({
      pass: true,
      sentence:
        'PASS: the state stays within what rounding explains; the worst element uses 50 % of its bound.',
    });
    const sum = statisticOf({ scope: 'tile', statistic: 2, rows: 4, lastRow: 3, column: 5 });
    const { pass, sentence, findings } = judgedBy([sum], 1);
    expect(pass).toBe(false);
    expect(findings.map(({ test, statement }) => [test, statement])).toEqual([
      [
        'state-sum',
        'the state is not the sum of its tokens in column 5 of head 0, queries 10 to 13 by 2; rounding explains 1',
      ],
      [
        'state-bound',
        '1 of 100 states are not zero before the first token, the largest 1 at head 1, query 12, column 3',
      ],
    ]);
    expect(sentence).toBe(`FAIL: ${findings[0].statement}.`);
  });
});
