import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GradientDiagnosis } from '../../../../src/audit/gradients/diagnosis/diagnosis.js';
import type { Finding } from '../../../../src/audit/findings.js';
import { axisOf, everywhere } from '../../../../src/audit/rows/index.js';
import { listed } from '../../../../src/words/index.js';
import { judgementOf, reachGradientVerdict } from './made-judgements.js';

const names = ['dq', 'dk', 'dv'] as const;
const prose = { dq: 'dQ', dk: 'dK', dv: 'dV' } as const;

const finding: Finding = {
  quantity: 'dq',
  test: 'dq-bound',
  isWorstCase: true,
  statement: 'an element of dQ is off',
};

const cause: GradientDiagnosis = {
  id: 'sign',
  equivalents: [],
  sentence: 'the sign is wrong in dQ',
  place: everywhere,
  evidence: [],
};

const one = fc.record({
  elements: fc.constantFrom(0, 8),
  unbounded: fc.constantFrom(0, 0, 3, 8),
  lost: fc.constantFrom(0, 0, 2),
  isAll: fc.boolean(),
  ratio: fc.constantFrom(0, 0.125, 0.25, 0.75),
});

describe('the verdict on gradients', () => {
  it('is PASS where nothing is found and each gradient has something that is judged', () => {
    fc.assert(
      fc.property(
        fc.tuple(one, one, one),
        fc.subarray([...names], { minLength: 1 }),
        fc.boolean(),
        fc.boolean(),
        (drawn, given, isFound, asksWhy) => {
          const of = (name: (typeof names)[number]) => {
            const { elements, unbounded, lost, isAll, ratio } = drawn[names.indexOf(name)];
            return {
              name,
              elements,
              ratio,
              // As many as there are, at most.
              unbounded: Math.min(unbounded, elements),
              lost,
              isAll: isAll && lost > 0 && elements > 0,
            };
          };
          const all = given.map(of);
          const judged = all.map(({ name, elements, unbounded, lost, isAll, ratio }) =>
            judgementOf(name, {
              elements: { elements, unbounded, worstRatio: ratio },
              lost: { elements: lost, isAll },
            }),
          );
          const findings = isFound ? [finding, { ...finding, statement: 'another' }] : [];
          let asked = 0;
          const why = () => {
            asked++;
            return cause;
          };
          const found = reachGradientVerdict(judged, findings, ['a part'], asksWhy ? why : null);

          const isWithout = all.filter((x) => x.elements > 0 && x.unbounded === x.elements);
          const isLost = all.filter((x) => x.isAll);
          const isEmpty = all.every((x) => x.elements === 0);
          const isJudged = isWithout.length + isLost.length === 0 && !isEmpty;
          expect(found.judged).toBe(isJudged);
          expect(found.pass).toBe(isJudged && !isFound);
          expect(found.findings).toBe(findings);
          expect(found.diagnosis).toBe(isFound && asksWhy ? cause : null);
          expect(asked).toBe(isFound && asksWhy ? 1 : 0);
          expect(found.notJudged).toEqual([
            'a part',
            ...all
              .filter((x) => x.lost > 0 && !x.isAll)
              .map(
                (x) =>
                  `${x.lost} of ${x.elements} elements of ${prose[x.name]}, which are no larger than underflow`,
              ),
          ]);
          const words = (some: typeof all) => listed(some.map((x) => prose[x.name]));
          const worst = 100 * Math.max(...all.map((x) => x.ratio));
          const rest = all
            .filter((x) => x.unbounded > 0)
            .map((x) => `; ${x.unbounded} of ${x.elements} elements of ${prose[x.name]} have none`);
          const reasons = [
            ...(isEmpty ? [`${words(all)} ${all.length === 1 ? 'has' : 'have'} no elements`] : []),
            ...(isWithout.length > 0 ? [`no element of ${words(isWithout)} has a bound`] : []),
            ...(isLost.length > 0 ? [`nothing in ${words(isLost)} is larger than underflow`] : []),
          ];
          const failure = asksWhy ? cause.sentence : finding.statement;
          expect(found.sentence).toBe(
            isFound
              ? `FAIL: ${failure}.`
              : isJudged
                ? `PASS: ${words(all)} ${all.length === 1 ? 'stays' : 'stay'} within what rounding explains; the worst element uses ${worst} % of its bound${rest.join('')}.`
                : `NOT JUDGED: ${reasons.join('; ')}.`,
          );
        },
      ),
      { numRuns: 80 },
    );
  });

  it('tells the first finding where the cause is unexplained, and the place of a cause', () => {
    const said = (diagnosis: GradientDiagnosis) =>
      reachGradientVerdict([judgementOf('dq')], [finding], [], () => diagnosis).sentence;
    expect(said({ ...cause, id: 'unexplained' })).toBe(
      'FAIL: an element of dQ is off; the cause is unexplained.',
    );
    const place = { ...everywhere, heads: axisOf([3], 4) };
    expect(said({ ...cause, place })).toBe('FAIL: the sign is wrong in dQ (head 3).');
  });
});
