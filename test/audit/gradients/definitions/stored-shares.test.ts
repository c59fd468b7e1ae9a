import { describe, expect, it } from 'vitest';
import { attentionOracle, gradientOracle } from '../../../../oracles/index.js';
import {
  anyGradientPremises,
  createGradientBounds,
} from '../../../../src/audit/gradients/bounds/index.js';
import { decodeTensor, formats, round, ulp } from '../../../../src/formats/index.js';
import type { Problem } from '../../../../src/problem/index.js';
import { testSeed } from '../../../setup/effort.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';

const seed = (testSeed % 1_000_003) + 11;
const [keys, dim] = [40, 8] as const;
const { bf16 } = formats;
/** Beyond what fp32 arithmetic may make of P here. */
const ofFp32 = 2 ** -13;
const nothing = { out: null, lse: null };

/** The exact dV of a problem. */
function exactValues(problem: Problem, dout: ReturnType<typeof tensor>): Float64Array {
  const [group] = gradientOracle(problem, dout);
  return group.dv!.values;
}

describe('shares of heads that are stored before a group is added', () => {
  const random = bellShaped(seed);
  // Small scores, that fp32 is exact beside bf16.
  const fills = { q: () => random() / 64, k: random, v: random };
  const problem = filledProblem({ heads: 2, kvHeads: 1, queries: 1, keys, dim }, fills);
  const dout = tensor('bf16', [1, 2, 1, dim], random);
  const dO = decodeTensor(dout);
  // One query a head, so that the exact share of an element is one product P·dO.
  const shares = [0, 1].map((head) =>
    exactValues(
      {
        ...problem,
        q: {
          ...problem.q,
          shape: [1, 1, 1, dim],
          data: problem.q.data.slice(head * dim, (head + 1) * dim),
        },
      },
      { ...dout, shape: [1, 1, 1, dim], data: dout.data.slice(head * dim, (head + 1) * dim) },
    ),
  );
  const premises = { ...anyGradientPremises(problem, 'bf16'), exponential: 2 ** -22 };
  const reference = attentionOracle(problem);
  const boundsOf = createGradientBounds({ problem, dout, reference, premises, given: nothing });
  const [group] = gradientOracle(problem, dout);
  const { operands, byOthers, deviation } = boundsOf(group).dv!;
  const plain = byOthers[byOthers.length - 1];

  /** What is known of an element: with P rounded and each share stored, or not; null where rounding P may decide how a share rounds. */
  const knownOf = (at: number) => {
    // A head's errors are taken for those of all heads so far.
    let before = 0;
    const heads = shares.map((share, head) => {
      const by = dO[head * dim + (at % dim)];
      const weight = share[at] / by;
      const ofWeight = (round(bf16, weight) - weight) * by;
      const ofShare = round(bf16, share[at]) - share[at];
      before += Math.abs(ofWeight) + ofFp32 * Math.abs(share[at]);
      const isCertain =
        Math.abs(round(bf16, weight) - weight) + ofFp32 * weight < ulp(bf16, weight) / 2 &&
        Math.abs(ofShare) + before < ulp(bf16, share[at]) / 2;
      // What a kernel stores.
      const stored = round(bf16, round(bf16, weight) * by) - share[at];
      return { ofWeight, ofShare, isCertain, stored };
    });
    const sum = (name: 'ofWeight' | 'ofShare' | 'stored') => heads[0][name] + heads[1][name];
    if (!heads.every(({ isCertain }) => isCertain)) return null;
    return { plain: sum('ofWeight'), stored: sum('ofShare'), made: sum('stored') };
  };
  const all = Array.from(operands, (_, at) => ({ at, known: knownOf(at) }));
  const certain = all.flatMap(({ at, known }) => (known === null ? [] : [{ at, known }]));
  const near = (x: number, y: number, at: number) => {
    expect(Math.abs(x - y), `element ${at}`).toBeLessThanOrEqual(2 ** -16 * deviation[at]);
  };

  it('err by the rounding of the exact share alone, where P cannot change it', () => {
    expect(certain.length).toBeGreaterThan(operands.length / 20);
    for (const { at, known } of certain) {
      near(known.made, known.stored, at);
      near(operands[at], known.stored, at);
    }
  });

  it('and by the rounding of P where a kernel stores none', () => {
    for (const { at, known } of certain) near(plain[at], known.plain, at);
  });

  it('count by the larger of both', () => {
    for (const { at, known } of certain)
      expect(deviation[at] * (1 + 2 ** -16)).toBeGreaterThanOrEqual(
        Math.max(Math.abs(known.stored), Math.abs(known.plain)),
      );
  });
});
