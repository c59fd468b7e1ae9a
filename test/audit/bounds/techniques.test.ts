import { describe, expect, it } from 'vitest';
import { techniques, type Fa4Configuration, type Technique } from '../../../kernels/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { scoreProblem } from '../../../properties/problems/score-problem.js';
import type { AttentionReference } from '../../../oracles/index.js';
import { fa4Arithmetic, type KernelArithmetic } from '../../../src/audit/bounds/index.js';
import { hardwareLog2Error, hardwareReciprocalError } from '../../../src/hardware/index.js';
import type { FormatName } from '../../../src/formats/index.js';
import type { Problem, Window } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { filledProblem } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';
import { keepBounds, type KeptBounds } from './kept-bounds.js';
import { preciseOracle } from './violations.js';

const inTurn = turns(import.meta.url);

const noPolynomial = { frequency: 0, reserve: 4, startFragment: 0, degree: 3 } as const;
const allPolynomial = { frequency: 32, reserve: 32, startFragment: 0, degree: 3 } as const;

function boundsOf(
  problem: Problem,
  overrides: Partial<Fa4Configuration> = {},
  change: (arithmetic: KernelArithmetic) => KernelArithmetic = (same) => same,
): KeptBounds & { readonly reference: AttentionReference } {
  const reference = preciseOracle(problem);
  return {
    ...keepBounds(problem, reference, change(fa4Arithmetic(problem, overrides))),
    reference,
  };
}

const most = (values: Float64Array) => values.reduce((a, b) => Math.max(a, b), -Infinity);
const least = (values: Float64Array) => values.reduce((a, b) => Math.min(a, b), Infinity);

interface Heads {
  readonly kvHeads: number;
  readonly groupSize: number;
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
}

interface Options {
  readonly format?: FormatName;
  readonly seed?: number;
  readonly scale?: number;
  readonly causal?: boolean;
  readonly window?: Window | null;
  readonly q?: (i: number) => number;
  readonly k?: (i: number) => number;
  readonly v?: (i: number) => number;
}

/** A problem of one batch from functions of the elements' indices; standard normal where there is none. */
function problemOf(
  { kvHeads, groupSize, queries, keys, dim }: Heads,
  options: Options = {},
): Problem {
  const {
    format = 'bf16',
    seed = 1,
    scale = 1 / Math.sqrt(dim),
    causal = false,
    window = null,
  } = options;
  const { normal } = randomValues(seed);
  const { q = normal, k = normal, v = normal } = options;
  return filledProblem(
    { heads: kvHeads * groupSize, kvHeads, queries, keys, dim, format },
    { q, k, v },
    { scale, causal, window },
  );
}

const oneHead = { kvHeads: 1, groupSize: 1, queries: 70, keys: 300, dim: 16 };

describe('the arithmetic of the forward', () => {
  it.each([
    ['sm_90', 'bf16', 16, 25, 23],
    ['sm_90', 'fp16', 16, 25, 23],
    ['sm_90', 'e4m3', 32, 13, 13],
    ['sm_100', 'bf16', 16, 25, 23],
    ['sm_100', 'e5m2', 32, 25, 23],
  ] as const)(
    'is that of the tensor cores of %s for %s',
    (architecture, format, productsPerSum, alignedFractionBits, resultFractionBits) => {
      const arithmetic = fa4Arithmetic(problemOf(oneHead, { format }), { architecture });
      const sums = { productsPerSum, alignedFractionBits, resultFractionBits };
      expect(arithmetic.scores).toEqual({ kind: 'fused', ...sums });
      expect(arithmetic.values).toEqual({ kind: 'fused', ...sums });
    },
  );

  it('takes no splits and no descales', () => {
    const problem = problemOf(oneHead, { format: 'e4m3' });
    expect(() => fa4Arithmetic(problem, { splits: 2 })).toThrow(RequestError);
    expect(() => fa4Arithmetic(problem, { descale: { q: 2, k: 1, v: 1 } })).toThrow(RequestError);
  });
});

describe('a technique that is absent has a bound of 0', () => {
  it('the polynomial where all columns are the unit’s, and the unit where none is', () => {
    const problem = problemOf(oneHead);
    const hardware = boundsOf(problem, { exp2: noPolynomial });
    expect(most(hardware.out.techniques['exp2-polynomial'])).toBe(0);
    expect(most(hardware.lse.techniques['exp2-polynomial'])).toBe(0);
    expect(least(hardware.lse.techniques['exp2-hardware'])).toBeGreaterThan(1.4e-7);
    // The last fragment of a block stays with the unit.
    const both = boundsOf(problem, { exp2: allPolynomial });
    expect(least(both.out.techniques['exp2-polynomial'])).toBeGreaterThan(0);
    expect(least(both.lse.techniques['exp2-polynomial'])).toBeGreaterThan(2e-5);
    expect(most(both.lse.techniques['exp2-hardware'])).toBeLessThan(1.4e-7);
  });

  it('the rescale where the threshold is never exceeded', () => {
    const request = { queries: 20, keys: 512, dim: 16, format: 'bf16', seed: 3 } as const;
    const rescale = (problem: Problem, rescaleThreshold: number) => {
      const { out, lse } = boundsOf(problem, { rescaleThreshold });
      return most(out.techniques.rescale) + most(lse.techniques.rescale);
    };
    expect(rescale(scoreProblem('steps-below', { ...request, keys: 256 }), 8)).toBe(0);
    expect(rescale(scoreProblem('steps-above', { ...request, keys: 256 }), 8)).toBeGreaterThan(0);
    expect(rescale(scoreProblem('steps-above', { ...request, step: 2 }), 2)).toBeGreaterThan(0);
    expect(rescale(scoreProblem('steps-below', { ...request, step: 2 }), 2)).toBeGreaterThan(0);
    expect(rescale(scoreProblem('ascending', request), 0)).toBe(0);
    expect(rescale(problemOf({ ...oneHead, keys: 128 }), 0)).toBe(0);
  });

  it('all of them for a row that sees nothing; none in the LSE after the row sum', () => {
    const { out, lse } = boundsOf(problemOf({ ...oneHead, queries: 9, keys: 4 }, { causal: true }));
    for (const name of techniques) {
      expect(most(out.techniques[name].subarray(0, 5 * 16))).toBe(0);
      expect(most(lse.techniques[name].subarray(0, 5))).toBe(0);
    }
    expect(least(out.total.subarray(5 * 16))).toBeGreaterThan(0);
    for (const name of ['p-round', 'pv-accumulate', 'output-round'] as const)
      expect(most(lse.techniques[name])).toBe(0);
  });

  it('nearly the rounding of weights that are powers of two', () => {
    // One dimension of whole numbers, and a scale that makes them exponents of 2.
    const levels = (fraction: number) =>
      problemOf(
        { ...oneHead, dim: 1 },
        {
          scale: Math.LN2,
          q: () => 1,
          k: (i) => (i % 7) + fraction * (i % 2),
          v: (i) => (i % 5) - 2,
        },
      );
    const share = (problem: Problem) => {
      const { out, reference } = boundsOf(problem, { exp2: noPolynomial });
      return most(
        out.techniques['p-round'].map((x, i) => x / reference.quantities.out.magnitude[i]),
      );
    };
    expect(share(levels(0))).toBeLessThan(2 ** -15);
    expect(share(levels(0.25))).toBeGreaterThan(2 ** -11);
  });
});

describe('bounds grow with what they are of', () => {
  const problem = problemOf(oneHead, { seed: 7 });

  function expectAscending(all: readonly KeptBounds[], of: readonly Technique[]): void {
    for (let i = 1; i < all.length; i++)
      for (const part of ['out', 'lse'] as const) {
        const [less, more] = [all[i - 1][part], all[i][part]];
        const pairs = [
          [less.total, more.total],
          ...of.map((name) => [less.techniques[name], more.techniques[name]]),
        ];
        for (const [small, large] of pairs)
          expect(least(large.map((x, j) => x - small[j]))).toBeGreaterThanOrEqual(0);
      }
  }

  it("the polynomial's with its error", () => {
    const all = ([5, 4, 3, 2, 1] as const).map((degree) =>
      boundsOf(problem, { exp2: { ...allPolynomial, degree } }),
    );
    expectAscending(all, ['exp2-polynomial', 'p-round']);
    const largest = all.map(({ lse }) => most(lse.techniques['exp2-polynomial']));
    largest.slice(1).forEach((x, i) => expect(x).toBeGreaterThan(10 * largest[i]));
  });

  it("sums' with the bits that an accumulator drops", () => {
    const all = [27, 25, 24, 20, 13].map((alignedFractionBits) =>
      boundsOf(problem, {}, (arithmetic) => {
        const sums = { kind: 'fused', productsPerSum: 16, resultFractionBits: 23 } as const;
        return {
          ...arithmetic,
          scores: { ...sums, alignedFractionBits },
          values: { ...sums, alignedFractionBits },
        };
      }),
    );
    expectAscending(all, ['qk-accumulate', 'pv-accumulate']);
    const [fine, coarse] = [all[3], all[4]].map(({ out }) => most(out.techniques['pv-accumulate']));
    expect(coarse / fine).toBeGreaterThan(100);
  });

  it("the row sum's with its additions", () => {
    const all = [1, 2, 4].map((factor) =>
      boundsOf(problem, {}, (arithmetic) => ({
        ...arithmetic,
        rowSumAdditions: factor * arithmetic.rowSumAdditions,
      })),
    );
    expectAscending(all, ['row-sum']);
    const [once, twice] = all.map(({ lse }) => most(lse.techniques['row-sum']));
    expect(twice / once).toBeCloseTo(2, 3);
    // 128 keys in eight lanes and a tree of three levels, in three blocks: at least one whole block.
    expect(once).toBeGreaterThanOrEqual(19 * 2 ** -24);
  });
});

describe("the row's finish", () => {
  const problem = problemOf(oneHead, { seed: 9 });
  const normalise = (change: Partial<KernelArithmetic['finish']>) => {
    const { out, lse, reference } = boundsOf(problem, {}, (arithmetic) => ({
      ...arithmetic,
      finish: { ...arithmetic.finish, ...change },
    }));
    return { out: out.techniques.normalise, lse: lse.techniques.normalise, reference };
  };
  const plain = normalise({});

  it('has the error of the logarithm in the LSE, in natural units, and not in the output', () => {
    const more = normalise({ logarithm: hardwareLog2Error + 2 ** -10 });
    expect(more.out).toEqual(plain.out);
    plain.lse.forEach((x, row) => {
      const added = more.lse[row] - x;
      expect(added).toBeGreaterThanOrEqual(2 ** -10 * Math.LN2);
      // The sum of weights is below 2^16 and above 2^-8.
      expect(added).toBeLessThan(16 * 2 ** -10 * Math.LN2 * 1.01);
    });
  });

  it('has the error of the reciprocal and the product in the output, and not in the LSE', () => {
    const more = normalise({ normalise: hardwareReciprocalError + 2 ** -24 + 2 ** -10 });
    expect(more.lse).toEqual(plain.lse);
    plain.out.forEach((x, i) => {
      const size = Math.abs(plain.reference.quantities.out.values[i]);
      expect((more.out[i] - x) / size).toBeGreaterThanOrEqual(2 ** -10);
      expect((more.out[i] - x) / size).toBeLessThan(1.01 * 2 ** -10);
    });
  });
});

describe('symmetries', () => {
  // Further down the smallest numbers of fp32, which do not scale, are part of them.
  inTurn.each([-20, -3, 1, 40])(
    'V times 2^%i multiplies every bound of the output by that',
    (power) => {
      const factor = 2 ** power;
      const values = Float64Array.from({ length: 300 * 16 }, randomValues(5).normal);
      const times = (scale: number) =>
        boundsOf(problemOf(oneHead, { seed: 11, v: (i) => values[i] * scale }));
      const [plain, scaled] = [times(1), times(factor)];
      for (const name of techniques)
        expect(scaled.out.techniques[name]).toEqual(
          plain.out.techniques[name].map((x) => x * factor),
        );
      for (const name of ['total', 'systematic', 'deviation'] as const)
        expect(scaled.out[name]).toEqual(plain.out[name].map((x) => x * factor));
      expect(scaled.lse).toEqual(plain.lse);
    },
  );

  it('heads in another order have the bounds in that order', () => {
    const shape = { kvHeads: 2, groupSize: 2, queries: 70, keys: 130, dim: 8 };
    const [q, k, v] = [4 * 70 * 8, 2 * 130 * 8, 2 * 130 * 8].map((length, i) =>
      Float64Array.from({ length }, randomValues(20 + i).normal),
    );
    // The two kv heads change places, and with them their query heads.
    const turned = (values: Float64Array) => (i: number) =>
      values[(i + values.length / 2) % values.length];
    const straight = (values: Float64Array) => (i: number) => values[i];
    const of = (how: (values: Float64Array) => (i: number) => number) =>
      boundsOf(problemOf(shape, { causal: true, q: how(q), k: how(k), v: how(v) }));
    const [plain, other] = [of(straight), of(turned)];
    const turn = (values: Float64Array) => values.map((_, i) => turned(values)(i));
    for (const part of ['out', 'lse'] as const) {
      expect(other[part].total).toEqual(turn(plain[part].total));
      expect(other[part].deviation).toEqual(turn(plain[part].deviation));
      for (const name of techniques)
        expect(other[part].techniques[name]).toEqual(turn(plain[part].techniques[name]));
    }
  });

  it('a row has the same bounds whatever rows lie beside it', () => {
    const values = [70 * 16, 300 * 16, 300 * 16].map((length, i) =>
      Float64Array.from({ length }, randomValues(30 + i).normal),
    );
    const of = (first: number, queries: number) =>
      boundsOf(
        problemOf(
          { ...oneHead, queries },
          { q: (i) => values[0][first * 16 + i], k: (i) => values[1][i], v: (i) => values[2][i] },
        ),
        { exp2: noPolynomial },
      );
    const [all, last] = [of(0, 70), of(66, 4)];
    expect(last.out.total).toEqual(all.out.total.slice(66 * 16));
    expect(last.lse.total).toEqual(all.lse.total.slice(66));
  });
});

describe('the total', () => {
  it('is the sum of the techniques and the radius of the oracle', () => {
    const { out, lse, reference } = boundsOf(problemOf(oneHead, { format: 'fp16' }));
    for (const [bounds, radius] of [
      [out, reference.quantities.out.radius],
      [lse, reference.quantities.lse.radius],
    ] as const)
      bounds.total.forEach((total, i) => {
        const sum = techniques.reduce((part, name) => part + bounds.techniques[name][i], radius[i]);
        expect(Math.abs(total - sum)).toBeLessThanOrEqual(1e-12 * total);
      });
  });

  it('is at least half an ulp of an output that lies between two numbers', () => {
    const { out, reference } = boundsOf(problemOf(oneHead));
    out.total.forEach((total, i) => {
      const exact = Math.abs(reference.quantities.out.values[i]);
      const ulp = 2 ** (Math.floor(Math.log2(exact)) - 7);
      const distance = Math.abs(exact - Math.round(exact / ulp) * ulp);
      expect(total).toBeGreaterThanOrEqual(distance);
    });
  });

  it('says nothing of rows with an infinite input or NaN, and of them only', () => {
    const problem = problemOf(oneHead, {
      q: (i) => (i === 5 * 16 + 3 ? NaN : Math.sin(i)),
      v: (i) => (i === 299 * 16 ? Infinity : Math.cos(i)),
      causal: true,
    });
    const { out, lse } = boundsOf(problem);
    // Only the last query sees the last key.
    const isSpecial = (row: number) => row === 5 || row === 69;
    lse.total.forEach((x, row) => expect(Number.isNaN(x)).toBe(isSpecial(row)));
    out.total.forEach((x, i) => expect(Number.isNaN(x)).toBe(isSpecial(Math.floor(i / 16))));
  });

  inTurn('is infinite where weights, scores or sums may leave their range', () => {
    const huge = problemOf({ ...oneHead, keys: 20 }, { v: () => 2 ** 126 });
    expect(least(boundsOf(huge).out.total)).toBe(Infinity);
    expect(most(boundsOf(huge).lse.total)).toBeLessThan(1e-3);
    const scores = problemOf(oneHead, { q: () => 2 ** 62, k: () => 2 ** 62 });
    expect(least(boundsOf(scores).lse.total)).toBe(Infinity);
    const negative = problemOf(oneHead, { scale: -1 });
    expect(least(boundsOf(negative).out.total)).toBe(Infinity);
    const request = { queries: 4, keys: 512, dim: 16, format: 'fp16', seed: 1, step: 8 } as const;
    const lagging = boundsOf(scoreProblem('steps-above', request), { rescaleThreshold: Infinity });
    expect(least(lagging.out.total)).toBe(Infinity);
  });
});
