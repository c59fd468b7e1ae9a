import { describe, expect, it } from 'vitest';
import { operandHypotheses } from '../../../src/audit/diagnosis/hypotheses/operands/operand-faults.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom, type ProblemFrame } from '../../setup/problems.js';
import { contextOfFault, expectPredicts, hypothesesOf } from './context.js';
import { Textbook, type At, type Fault, type RowAt } from './textbook.js';

const problemOf = (frame: Partial<ProblemFrame> = {}, changes: Partial<Problem> = {}) => {
  const random = pseudorandom(17);
  const sizes = { batch: 2, heads: 3, queries: 4, keys: 5, dim: 8, ...frame };
  return filledProblem(sizes, () => 2 * random(), { scale: 0.4, ...changes });
};

describe('hypotheses about operands', () => {
  it('read one tensor in place of another', () => {
    const problem = problemOf({ queries: 5 });
    const book = new Textbook(problem);
    const vAsK = (at: At, t: number) => book.v(at.batch, at.kvHead, at.key, t);
    const kAsV = (at: At, c: number) => book.k(at.batch, at.kvHead, at.key, c);
    const qOf = (at: At, t: number) => book.q(at.batch, at.head, at.key, t);
    const faults: Readonly<Record<string, Fault>> = {
      'K is read in place of V': { v: kAsV },
      'V is read in place of K': { k: vAsK },
      'K and V are exchanged': { k: vAsK, v: kAsV },
      'Q is read in place of K': { k: qOf },
      'K is read in place of Q': {
        q: (at, t) => book.k(at.batch, at.kvHead, at.query, t),
      },
      'Q is read in place of V': { v: qOf },
    };
    const context = contextOfFault(problem);
    const found = hypothesesOf(operandHypotheses, context);
    for (const [statement, fault] of Object.entries(faults))
      expectPredicts(found.get(`wrong-tensor: ${statement}`)!, context, (row) =>
        book.row(row, fault),
      );
    const names = (frame: Partial<ProblemFrame>) =>
      [...operandHypotheses(contextOfFault(problemOf(frame)))]
        .filter(({ id }) => id === 'wrong-tensor')
        .map(({ statement }) => statement);
    expect(names({ queries: 5 }).length).toBe(6);
    expect(names({ queries: 4 }).length).toBe(3);
    expect(names({ queries: 5, vDim: 2 }).length).toBe(2);
    expect(names({ queries: 5, kvHeads: 1 }).length).toBe(3);
  });

  it.each([
    [{}, false],
    [{ causal: true, softcap: 0.9 }, true],
    [{ window: { left: 1, right: 0 } }, true],
  ] as const)('attend to the heads of a position: %j', (changes, isMasked) => {
    const problem = problemOf({ heads: 4, kvHeads: 2, queries: 6, keys: 3 }, changes);
    const book = new Textbook(problem);
    const context = contextOfFault(problem);
    const [one] = [...operandHypotheses(context)].filter(({ id }) => id === 'axes-exchanged');
    const values = ({ batch }: RowAt, kvHead: number, at: number, c: number) =>
      book.v(batch, kvHead, at, c);
    let masked = 0;
    expectPredicts(one, context, (row) => {
      const at = book.rowAt(row);
      const position = Math.floor(at.query / 2);
      const out = new Float64Array(8);
      let sum = 0;
      for (let kv = 0; kv < 2; kv++) {
        const by = kv - (at.head + 2 - 4);
        const { causal, window } = problem;
        const isLeft = window !== null && by < -window.left;
        if ((causal && by > 0) || isLeft || (window !== null && by > window.right)) {
          masked++;
          continue;
        }
        let dot = 0;
        for (let t = 0; t < 8; t++)
          dot += book.q(at.batch, at.head, at.query, t) * book.k(at.batch, kv, position, t);
        const p = Math.exp(book.score(dot));
        sum += p;
        for (let c = 0; c < 8; c++) out[c] += p * values(at, kv, position, c);
      }
      return { out: out.map((x) => (sum === 0 ? 0 : x / sum)), lse: NaN };
    });
    expect(masked > 0).toBe(isMasked);
  });
});
