import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Diagnosis } from '../../../src/audit/diagnosis/index.js';
import { findingsOf, findingTest, outputWords } from '../../../src/audit/findings.js';
import type { PremiseFit } from '../../../src/audit/premises/premise-fit.js';
import type {
  StructureResult,
  StructureTest,
} from '../../../src/audit/structure/structure-result.js';
import { lostParts, reachVerdict, type Evidence } from '../../../src/audit/verdict.js';
import { quantities } from '../../../src/problem/index.js';
import { numbers, seldom, structure, vector, wrongWith } from './made-up-judgements.js';

const [out] = quantities;

/** Clauses on what is not judged. */
const unjudged: Evidence['unjudged'] = {
  unbounded: (named) => `no bound on ${named}`,
  lost: (named) => `nothing but underflow in ${named}`,
};

/** A cause, and a premise that would pass. */
const diagnosis: Diagnosis = {
  id: 'a-cause',
  equivalents: [],
  technique: null,
  place: null,
  candidates: [],
  sentence: 'the cause',
  evidence: [],
};
const premise = { statement: 'it is like that', flags: '--that' } as unknown as PremiseFit;

const evidences = fc.record({
  vector,
  numbers: fc.option(numbers),
  isLost: seldom(false, true),
  isBorneOut: seldom(true, false),
  widened: seldom(null, { ...diagnosis, id: 'output-widened', sentence: 'the output is widened' }),
});

describe('a verdict', () => {
  it('is a pass where no test fails, something was judged, and the premise is borne out', () => {
    fc.assert(
      fc.property(evidences, fc.boolean(), fc.boolean(), (of, explains, isExplained) => {
        const outputs = of.numbers === null ? [of.vector] : [of.vector, of.numbers];
        const wrong = outputs.flatMap(wrongWith);
        const calls: string[] = [];
        const isLost = { elements: of.isLost ? 12 : 0, isAll: of.isLost };
        const [main, ...others] = outputs;
        const judged = [{ ...main, lost: isLost }, ...others];
        const findings = findingsOf(judged, { ...outputWords, arithmetic: 'such arithmetic' });
        const evidence: Evidence = {
          judged,
          required: judged.slice(0, 1),
          findings,
          knownCause: findings.at(0)?.quantity === 'out' ? of.widened : null,
          unjudged,
          testPremise: () => {
            calls.push('premise');
            return { pass: of.isBorneOut, statement: of.isBorneOut ? null : 'not borne out' };
          },
        };
        const cause = isExplained ? diagnosis : { ...diagnosis, id: 'unexplained' };
        const verdict = reachVerdict(
          evidence,
          explains
            ? {
                diagnose: () => {
                  calls.push('diagnose');
                  return cause;
                },
                fitPremise: (findings, given) => {
                  calls.push('fit');
                  expect(findings.map(({ test }) => test)).toEqual(wrong);
                  expect(given).toBe(cause);
                  return premise;
                },
              }
            : null,
        );
        const isJudged = of.vector.elements.unbounded < 12 && !of.isLost;
        const isFailed = wrong.length > 0;
        expect(verdict.pass).toBe(!isFailed && isJudged && of.isBorneOut);
        expect(verdict.judged).toBe(isJudged);
        const isByPremise = !isFailed && isJudged && !of.isBorneOut;
        expect(verdict.findings.map(({ test }) => test)).toEqual(isByPremise ? ['premise'] : wrong);
        for (const { test, isWorstCase } of verdict.findings)
          expect(isWorstCase).toBe(/bound|non-finite/.test(test));
        const [kind] = verdict.sentence.split(':');
        expect(kind).toBe(verdict.pass ? 'PASS' : isFailed || isByPremise ? 'FAIL' : 'NOT JUDGED');
        // An output that is only widened has no other cause, unless it is the LSE that fails.
        const ofOut = wrongWith(of.vector).length > 0;
        const isWidened = isFailed && of.widened !== null && ofOut;
        expect(calls).toEqual(
          isFailed
            ? explains && !isWidened
              ? ['diagnose', 'fit']
              : []
            : isJudged
              ? ['premise']
              : [],
        );
        expect(verdict.diagnosis?.id ?? null).toBe(
          isWidened ? 'output-widened' : isFailed && explains ? cause.id : null,
        );
        expect(verdict.premise).toBe(isFailed && explains && !isWidened ? premise : null);
        if (!isFailed) return;
        const says = isWidened
          ? 'the output is widened'
          : explains && isExplained
            ? 'the cause'
            : verdict.findings[0].statement;
        expect(verdict.sentence.startsWith(`FAIL: ${says}`)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it('says what a pass leaves out', () => {
    const [one] = fc.sample(vector, { numRuns: 1, seed: 1 });
    const judged = (name: string, unbounded: number, worstRatio: number) => ({
      ...one,
      quantity: { ...out, name, prose: name },
      elements: { ...one.elements, unbounded, worstRatio, outside: 0, nonFinite: 0 },
      spread: { ...one.spread, results: [], outside: 0 },
      structure: [],
    });
    const passed = (outputs: Evidence['judged'], of: Partial<Evidence> = {}) =>
      reachVerdict(
        {
          judged: outputs,
          required: outputs.slice(0, 1),
          findings: [],
          unjudged,
          testPremise: () => ({ pass: true, statement: 'as declared' }),
          ...of,
        },
        null,
      ).sentence;
    const [a, b, c] = [judged('a', 0, 0.25), judged('b', 3, 0.5), judged('c', 12, 0.125)];
    const rest = 'within what rounding explains; the worst element uses';
    expect(passed([a])).toBe(`PASS: a stays ${rest} 25 % of its bound. as declared.`);
    expect(passed([a, b])).toContain(`PASS: a and b stay ${rest} 50 %`);
    expect(passed([a, b])).toContain(`; 3 of 12 ${out.parts} have none`);
    // What has no bound at all was not checked.
    expect(passed([a, c])).toContain(`PASS: a stays ${rest} 25 %`);
    expect(passed([a, b, judged('d', 0, 0)])).toContain('PASS: a, b and d stay');
    const limits = { sample: { rows: 5, of: 9 }, hollow: 'hollow', left: ['the rest'] };
    expect(passed([a], limits)).toContain('explains in 5 sampled rows of 9;');
    expect(passed([b], limits)).toContain(
      `bound; hollow; 3 of 12 ${out.parts} have none; the rest. as declared`,
    );
    const lost = (isAll: boolean) => ({ ...a, lost: { elements: 4, isAll } });
    expect(lostParts([a, lost(false), lost(true)])).toEqual([`4 of 12 ${out.parts}`]);
    const nothing = { ...a, values: new Float64Array(0), elements: { ...a.elements, elements: 0 } };
    expect(passed([nothing])).toBe('NOT JUDGED: a has no elements.');
    expect(passed([judged('a', 12, 0)])).toBe('NOT JUDGED: no bound on a.');
    expect(passed([lost(true)])).toBe('NOT JUDGED: nothing but underflow in a.');
  });
});

describe('a finding of structure', () => {
  it('is of the widest rows that fail, and says which way they err', () => {
    const [one] = fc.sample(vector, { numRuns: 1, seed: 1 });
    const [result] = fc.sample(
      structure.filter(({ length }) => length > 0).map(([x]) => x),
      {
        numRuns: 1,
        seed: 1,
      },
    );
    const told = (...results: readonly Partial<StructureResult>[]) =>
      findingsOf(
        [
          {
            ...one,
            elements: { ...one.elements, outside: 0, nonFinite: 0 },
            spread: { ...one.spread, results: [], outside: 0 },
            structure: results.map((of) => ({
              ...result,
              test: 'scale',
              scope: 'head',
              head: 3,
              statistic: 2,
              ...of,
            })),
          },
        ],
        { ...outputWords, arithmetic: '' },
      ).map(({ statement }) => statement);
    expect(told({})[0]).toContain('200 % large on batch 1, head 1 (');
    expect(told({ scope: 'tile', firstRow: 4, lastRow: 7 })[0]).toContain('head 1, queries 4 to 7');
    expect(told({ scope: 'row', firstRow: 4, rows: 1, lastRow: 4 })[0]).toContain('query 4');
    expect(told({ lastRow: 90 })[0]).toContain('4 sampled queries (');
    expect(told({ scope: 'tile', lastRow: 90 })[0]).toContain('4 sampled queries from 0 to 90');
    expect(told({ scope: 'row' }, { scope: 'tile' }, { statistic: 0.5 })).toHaveLength(1);
    expect(told({ scope: 'row' }, { scope: 'tile' }, { statistic: 0.5 })[0]).toContain(
      'queries 0 to 3',
    );
    const signs: Readonly<Record<string, readonly [string, string]>> = {
      scale: ['large', 'against'],
      bias: ['too high', 'too low'],
      truncation: ['away from zero', 'towards zero'],
      'lse-mean': ['too high', 'too low'],
      'key-tile': ['leaving out keys 0 to 127', 'counting twice keys 0 to 127'],
    };
    for (const [name, [above, below]] of Object.entries(signs)) {
      const test = name as StructureTest;
      expect(told({ test })[0]).toContain(above);
      expect(told({ test, statistic: -2 })[0]).toContain(below);
    }
    expect(told({ statistic: -0.5, threshold: 0.25 })[0]).toContain('50 % small');
    expect(told({ statistic: -1, threshold: 0.25 })[0]).toContain('is zero on');
    expect(findingTest({ name: 'dq' }, 'rms')).toBe('dq-rms');
  });
});
