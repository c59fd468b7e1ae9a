import { formatNumber } from '../../src/words/index.js';
import { encode, formats, type NumberFormat } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import type { Law } from '../suite/law.js';
import { NotApplicable } from '../suite/not-applicable.js';
import { exactAttention } from './exact-attention.js';
import { judgedViolation } from './judged-violation.js';
import { requirePromised } from './promised-problem.js';
import { shiftReference } from './shift-reference.js';
import { copyProblem, replaceElements } from './transform-problem.js';

/** What scores are shifted by, about, in nats. */
const shifts: readonly number[] = [1, -1, 8, -8, 64, -64, 512, -512];

/** The problem with the last columns of Q and K constant, numbers that the formats hold. */
function withColumns(problem: Problem, ofQ: number, ofK: number): Problem {
  const copy = copyProblem(problem);
  const constant = (name: 'q' | 'k', value: number) => {
    const bits = encode(formats[copy[name].format], value);
    const last = copy[name].shape.at(-1)! - 1;
    return replaceElements(copy[name], ({ column }) => (column === last ? bits : null));
  };
  return { ...copy, q: constant('q', ofQ), k: constant('k', ofK) };
}

/** Powers of two whose product with the scale is about `nats`, as near as the formats allow. */
function factors({ q, k, scale }: Problem, nats: number): readonly [number, number] {
  const exponent = scale === 0 ? 0 : Math.round(Math.log2(Math.abs(nats / scale)));
  const power = (wanted: number, { minExponent, maxExponent }: NumberFormat) =>
    2 ** Math.min(Math.max(wanted, minExponent), maxExponent);
  return [
    power(Math.ceil(exponent / 2), formats[q.format]),
    Math.sign(nats) * power(Math.floor(exponent / 2), formats[k.format]),
  ];
}

/**
 * The last column of Q is a, that of K c, both powers of two, for all queries and keys: every score is
 * scale·a·c more than with c = 0, exactly. Exact attention with c = 0 is therefore that with c, its
 * LSE moved by scale·a·c, a product that fp64 has exactly; O and LSE of the problem with c are judged
 * by it.
 */
export const scoreShift: Law = {
  statement: 'Scores that are all shifted alike leave O and shift the LSE as much',
  reason:
    'A softmax sees differences of scores only. A running maximum that begins at a number, or a score that loses low bits when it is large, sees more.',
  strengths: ['bound'],
  usual: 'bound',
  choices: shifts.length,
  constraints: { softcap: false },
  violation: async ({ problem, choice }, { run, judge, promises }) => {
    if (problem.softcap !== null) throw new NotApplicable('the problem has a softcap');
    const [a, c] = factors(problem, shifts[choice]);
    const shift = problem.scale * a * c;
    const shifted = withColumns(problem, a, c);
    requirePromised(shifted, promises);
    const reference = shiftReference(
      exactAttention(withColumns(problem, a, 0)),
      { lse: shift, lseError: 0, maximum: shift },
      shifted,
    );
    const judged = judgedViolation(judge(await run(shifted), reference));
    const words = `${formatNumber(Math.abs(shift))} ${shift < 0 ? 'lower' : 'higher'}`;
    return judged && `with all scores ${words}, ${judged}`;
  },
};
