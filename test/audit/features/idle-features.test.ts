import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { anyKernelArithmetic, auditAccuracy, KernelBound } from '../../../src/audit/index.js';
import { combinations } from '../../../src/audit/bounds/index.js';
import type { FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { keepBounds } from '../bounds/kept-bounds.js';
import { filledProblem, tensor } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const frame = { heads: 2, queries: 40, keys: 150, dim: 16, vDim: 8 };
const whole = [1, 2, 40, 150];

function plainProblem(format: FormatName): Problem {
  const random = randomValues(17);
  return filledProblem({ ...frame, format }, () => random.normal());
}

/** Features that do nothing, and one that does little: a bias below all that fp32 holds of a score. */
const idle: Readonly<Record<string, Partial<Problem>>> = {
  'a bias of 0': { bias: tensor('bf16', whole, () => 0) },
  'slopes of 0': { alibiSlopes: tensor('fp32', [2], () => 0) },
  'a mask true everywhere': { mask: { shape: [1, 1, 1, 150], data: new Uint8Array(150).fill(1) } },
  'a sink of −∞': { sink: { logits: tensor('fp32', [2], () => -Infinity), inLse: true } },
  'a sink far below': { sink: { logits: tensor('fp32', [2], () => -500), inLse: false } },
  'one sequence': { sequences: [{ firstQuery: 0, queries: 40, firstKey: 0, keys: 150 }] },
};

function boundsOf(problem: Problem) {
  const reference = attentionOracle(problem, { accuracy: auditAccuracy('fp32') });
  const bounds = keepBounds(problem, reference, anyKernelArithmetic(problem, 'fp32'));
  return { bounds, ofRow: new KernelBound(problem, reference, 'fp32').row(7) };
}

describe.each(['bf16', 'fp32'] as const)('bounds of %s', (format) => {
  inTurn.each(Object.entries(idle))('with %s are those without', (name, feature) => {
    // A sink is one more addition to the row sum, whatever its weight.
    const part = name === 'a sink far below' ? 1 / 150 : 1e-3;
    const plain = plainProblem(format);
    const [without, withIt] = [boundsOf(plain), boundsOf({ ...plain, ...feature })];
    for (const quantity of ['out', 'lse'] as const)
      for (const kind of combinations)
        withIt.bounds[quantity][kind].forEach((bound, i) => {
          const wanted = without.bounds[quantity][kind][i];
          expect(Math.abs(bound - wanted), `${quantity} ${kind} ${i}`).toBeLessThanOrEqual(
            part * wanted + 1e-30,
          );
        });
    expect(withIt.ofRow.weight).toBeCloseTo(without.ofRow.weight, 8);
  });

  it('of one sequence are not loosened by another with huge keys and values', () => {
    const plain = plainProblem(format);
    const sequences = [
      { firstQuery: 0, queries: 20, firstKey: 0, keys: 70 },
      { firstQuery: 20, queries: 20, firstKey: 70, keys: 80 },
    ];
    const huge = (name: 'k' | 'v', dim: number) => {
      const random = randomValues(3);
      const data = plain[name].data.slice();
      const loud = tensor(format, [data.length], () => 3e4 * random.normal()).data;
      for (let i = 0; i < data.length; i++) if (Math.floor(i / dim) % 150 >= 70) data[i] = loud[i];
      return { ...plain[name], data };
    };
    const quiet = boundsOf({ ...plain, sequences });
    const beside = boundsOf({ ...plain, k: huge('k', 16), v: huge('v', 8), sequences });
    for (const head of [0, 1])
      for (let at = head * 40 * 8; at < (head * 40 + 20) * 8; at++)
        // But for the oracle's radius, which is that of tiles of keys.
        expect(beside.bounds.out.total[at] / quiet.bounds.out.total[at]).toBeCloseTo(1, 6);
    expect(beside.ofRow.weight).toBe(quiet.ofRow.weight);
    expect(beside.ofRow.range).toBe(quiet.ofRow.range);
    expect(beside.ofRow.floor).toBeCloseTo(quiet.ofRow.floor, 30);
  });
});
