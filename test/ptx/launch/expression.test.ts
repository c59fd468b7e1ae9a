import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evaluate } from '../../../src/ptx/launch/index.js';
import { RequestError } from '../../../src/request-error.js';
import { scaled } from '../../setup/effort.js';

const problem = { batch: 2, heads: 8, kvHeads: 2, sq: 130, sk: 70, d: 64, scale: 0.125, causal: 1 };

describe('expressions', () => {
  it.each([
    ['ceil(sq / 64)', 3],
    ['heads * batch', 16],
    ['scale * 1.4426950408889634', 0.125 * 1.4426950408889634],
    ['heads / kvHeads', 4],
    ['1 + 2 * 3 - 4 - 1', 2],
    ['(1 + 2) * -3', -9],
    ['10 - 4 + 3', 9],
    ['12 / 2 * 3 % 5', 3],
    ['sq > 128 ? 2 : 1', 2],
    ['sq <= 128 ? 2 : causal == 1 ? 7 : 5', 7],
    ['sq % 64', 2],
    ['min(sq, sk, 100) + max(1, 2)', 72],
    ['!causal || sq != sk && 1', 1],
    ['!0 + 1', 2],
    ['-2 - -2', 0],
    ['1e3 + .5 + 2.', 1002.5],
    ['exp2(log2(d)) + sqrt(d) + floor(2.7) + round(2.5) + abs(-1)', 64 + 8 + 2 + 3 + 1],
  ])('%s', (text, value) => {
    expect(evaluate(text, problem)).toBe(value);
  });

  it.each([
    ['', 'expected a number, a name or "(", found its end'],
    ['sq +', 'expected a number, a name or "(", found its end'],
    ['sq 4', 'expected an operator or the end, found "4"'],
    ['sq; 1', 'expected a number, a name or an operator'],
    ['(sq', 'expected ")", found its end'],
    ['sqq', '"sqq" is unknown; did you mean "sq"?'],
    ['constructor', '"constructor" is unknown; use batch,'],
    ['eval(1)', '"eval" is no function; use ceil,'],
    ['toString()', '"toString" is no function'],
    ['1 / 0', 'it gives Infinity, which is no number'],
    ['('.repeat(900), 'it is nested too deep'],
    ['!'.repeat(900), 'it is nested too deep'],
    ['1?'.repeat(400), 'it is nested too deep'],
    ['1'.repeat(1001), 'it is longer than 1000 characters'],
  ])('%j is refused', (text, message) => {
    expect(() => evaluate(text, problem)).toThrow(RequestError);
    expect(() => evaluate(text, problem)).toThrow(message.slice(0, 40));
  });

  it('agree with JavaScript, whose operators have the same precedence', () => {
    const leaf = fc.oneof(fc.nat(20).map(String), fc.constantFrom('sq', 'heads', 'scale'));
    const operator = fc.constantFrom('+', '-', '*', '/', '%', '<', '<=', '>', '>=', '==', '!=');
    const { term } = fc.letrec<{ term: string; atom: string }>((tie) => ({
      atom: fc.oneof(
        { maxDepth: 3 },
        leaf,
        tie('term').map((a) => `(${a})`),
        fc.tuple(tie('term'), tie('term'), tie('term')).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
      ),
      term: fc
        .tuple(tie('atom'), fc.array(fc.tuple(operator, tie('atom')), { maxLength: 5 }))
        .map(([first, rest]) => `${first} ${rest.map((pair) => pair.join(' ')).join(' ')}`),
    }));
    fc.assert(
      fc.property(term, (text) => {
        fc.pre(text.length <= 1000);
        const { sq, heads, scale } = problem;
        // In C what is no number is not 0, and so true. What a comparison gives is a number for what compares it.
        const body = `return ${text.replaceAll(' ? ', ' != 0 ? ')}`;
        const value = Number(new Function('sq', 'heads', 'scale', body)(sq, heads, scale));
        fc.pre(Number.isFinite(value));
        expect(evaluate(text, problem)).toBe(value);
      }),
      { numRuns: scaled(200) },
    );
  });
});
