import { describe, expect, it } from 'vitest';
import { attentionOracle, levels, type Accuracy } from '../../../oracles/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { loadMpfr } from '../mpfr.js';
import { arbitrarySolver, doubleDoubleSolver, oracleSolver } from './oracle-levels.js';
import { scoredKeys, singleHead } from '../../setup/problems.js';
import { assertWithinRadii, RadiusUse } from './radius-check.js';
import { withReference } from './reference-attention.js';

const mpfr = await loadMpfr();

const audit = (outputFormat: Accuracy['outputFormat']): Accuracy => ({
  outputFormat,
  ulpFraction: 0,
  magnitudeFraction: 2 ** -40,
});
const loose: Accuracy = { outputFormat: 'fp32', ulpFraction: 1, magnitudeFraction: 1 };

/** Solves a problem in every way, each within its radii; returns what the accuracy asked for gives. */
function solved(problem: Problem, accuracy?: Accuracy) {
  const use = new RadiusUse();
  withReference(mpfr, problem, (reference) => {
    for (const solver of [
      oracleSolver(accuracy),
      oracleSolver(loose),
      doubleDoubleSolver,
      arbitrarySolver(192),
    ])
      assertWithinRadii(problem, reference, solver, use);
  });
  const {
    level,
    quantities: {
      out: { values: out, radius: outRadius },
      lse: { values: lse },
    },
  } = attentionOracle(problem, accuracy === undefined ? {} : { accuracy });
  return { out: out[0], radius: outRadius[0], lse: lse[0], level: levels[level[0]] };
}

describe('accuracies that fp64 cannot reach by more precision', () => {
  it('values that only keys of vanishing weight have', () => {
    // The exact O is e^-2000, far below fp64.
    const problem = scoredKeys('bf16', [1000, -1000], [0, 1]);
    const { out, radius } = solved(problem, audit('bf16'));
    expect(out).toBe(0);
    expect(radius).toBeLessThanOrEqual(2 ** -1072);
  });

  it('subnormal values of fp64', () => {
    const problem = scoredKeys('fp64', [1, 1], [5e-324, 1e-323]);
    expect(solved(problem, audit('fp64')).radius).toBeLessThanOrEqual(2 ** -1072);
  });

  it('exact zeros in fp64 ulps', () => {
    const problem = scoredKeys('fp64', [1, 1], [1, -1]);
    const { out, radius } = solved(problem, {
      outputFormat: 'fp64',
      ulpFraction: 2 ** -10,
      magnitudeFraction: 0,
    });
    expect(out).toBe(0);
    expect(radius).toBeLessThanOrEqual(2 ** -1072);
  });

  it('an LSE beyond fp64 is infinite, its weights are not', () => {
    const scores = { q: [[1e300]], k: [[1e300], [1e300]], v: [[1], [2]] };
    expect(solved(singleHead('fp64', scores))).toMatchObject({ out: 1.5, lse: Infinity });
    const negative = { ...scores, q: [[-1e300]] };
    expect(solved(singleHead('fp64', negative))).toMatchObject({ out: 1.5, lse: -Infinity });
  });

  it('a largest score that fp64 holds, though not in octaves', () => {
    for (const k of [1.5e308, -1.5e308, Number.MAX_VALUE])
      solved(singleHead('fp64', { q: [[1]], k: [[k]], v: [[3]] }));
  });

  it('a column of zeros is exact at the first level', () => {
    const v = [
      [0, 1],
      [0, 2],
    ];
    const problem = singleHead('bf16', { q: [[1]], k: [[1], [3]], v });
    expect(solved(problem, audit('bf16'))).toMatchObject({ out: 0, radius: 0, level: 'fp64' });
  });

  it('rejects an accuracy that is no finite number', () => {
    const problem = scoredKeys('bf16', [0], [1]);
    for (const fraction of [NaN, Infinity, -1])
      for (const name of ['ulpFraction', 'magnitudeFraction'] as const) {
        const accuracy = { ...audit('bf16'), [name]: fraction };
        const attempt = () => attentionOracle(problem, { accuracy });
        expect(attempt).toThrow(RequestError);
        expect(attempt).toThrow(`accuracy.${name} is ${fraction}`);
      }
  });
});

describe('fp64 inputs at the ends of the range', () => {
  it('sums of values that overflow on the way', () => {
    const values = Array.from({ length: 64 }, (_, j) => (j % 2 === 0 ? 1.7e308 : 1.6e308));
    const problem = scoredKeys('fp64', new Array<number>(64).fill(0), values);
    for (const accuracy of [undefined, audit('fp64')]) {
      const { out, radius } = solved(problem, accuracy);
      expect(Math.abs(out - 1.65e308)).toBeLessThan(1e294);
      expect(radius).toBeLessThan(1e297);
    }
  });

  it('scores that overflow on the way to a sum of moderate size', () => {
    const problem = singleHead('fp64', {
      q: [[1e200, 1e200, 1]],
      k: [
        [1e200, -1e200, 1],
        [-1e200, 1e200, 2],
      ],
      v: [[0], [1]],
    });
    expect(solved(problem).out).toBeCloseTo(Math.E / (1 + Math.E), 15);
  });

  it('a softcap under scores whose products cannot be split', () => {
    const problem = scoredKeys('fp64', [1e305, -1e305], [0, 1], { softcap: 3 });
    expect(solved(problem).out).toBeCloseTo(1 / (1 + Math.exp(6)), 15);
    const wide = singleHead('fp64', { q: [[1e305]], k: [[1], [0]], v: [[0], [1]] }, { softcap: 3 });
    expect(solved(wide).out).toBeCloseTo(1 / (1 + Math.exp(3)), 15);
  });

  it('a softcap so small beside the scale that their ratio overflows', () => {
    const settings = { scale: 1e300, softcap: 1e-10 };
    const keys = { k: [[1], [0]], v: [[0], [1]] };
    // 1e-320 · 1e300 / 1e-10 is tiny: all these scores are next to 0.
    const opposite = { q: [[1e-320]], k: [[1], [-1]], v: [[0], [1]] };
    expect(solved(singleHead('fp64', opposite, settings)).out).toBe(0.5);
    expect(solved(singleHead('fp64', { q: [[1e-320]], ...keys }, settings)).out).toBe(0.5);
    const { lse } = solved(singleHead('fp64', { q: [[1e-280]], ...keys }, settings));
    expect(lse).toBeCloseTo(Math.LN2, 9);
  });

  it('a scale whose ratio to the softcap overflows under exact subnormal products', () => {
    const rows = { q: [[2 ** -1074]], k: [[2 ** 52], [-(2 ** 52)]], v: [[0], [1]] };
    const score = Math.tanh(1e308 * 2 ** -1022);
    const { out } = solved(singleHead('fp64', rows, { scale: 1e308, softcap: 1 }));
    expect(out).toBeCloseTo(1 / (1 + Math.exp(2 * score)), 14);
  });

  it('a softcap near the largest number', () => {
    const problem = scoredKeys('fp64', [1, 2], [0, 1], { softcap: 1.7e308 });
    expect(solved(problem).out).toBeCloseTo(Math.E / (1 + Math.E), 15);
  });

  /** Scores 0.4 and −0.4 times `factor`, as products of 2^490 and huge keys; O cancels to 2^-50. */
  const cancelling = (exponent: number, score: number, softcap: number | null) => {
    const factor = 1.2345678912345678;
    const keys = [0.4, -0.4].map((x) => [x * 2 ** (-490 - exponent)]);
    const values = [[1], [-Math.exp(2 * score)]];
    return singleHead(
      'fp64',
      { q: [[2 ** 490]], k: keys, v: values },
      { scale: 2 ** exponent * factor, softcap },
    );
  };

  it('scales whose second word is lost below the subnormals', () => {
    for (const exponent of [-960, -985, -992])
      solved(cancelling(exponent, 0.4 * 1.2345678912345678, null));
  });

  it('a softcap whose ratio to the scale is subnormal', () => {
    for (const [exponent, softcap] of [
      [-990, 1e10],
      [-990, 2 ** 60],
      [-500, 2 ** 540],
    ] as const)
      solved(cancelling(exponent, 0.4 * 1.2345678912345678, softcap));
  });

  it('a scale of 0 under products that overflow', () => {
    const q = [[1e200]];
    const k = [[1e200], [-1e200], [1]];
    const problem = singleHead('fp64', { q, k, v: [[1], [2], [6]] }, { scale: 0 });
    expect(solved(problem).out).toBeCloseTo(3, 14);
    expect(solved(problem).lse).toBeCloseTo(Math.log(3), 14);
  });

  it('a scale that overflows with log2 e', () => {
    const problem = scoredKeys('fp64', [1e-308, 2e-308], [0, 1], { scale: 1.7e308 });
    expect(solved(problem).out).toBeCloseTo(1 / (1 + Math.exp(-1.7)), 15);
  });
});

it('a radius that is a guess about second-order terms is none', () => {
  // Cancelling products of 2^45: the double-double exponents are off by about 1.
  const big = 2 ** 80 + 2 ** 28;
  const problem = singleHead('fp64', {
    q: [[big, big, 1]],
    k: [
      [big, -big, 1],
      [-big, big, 2],
    ],
    v: [[1], [-1]],
  });
  solved(problem, loose);
  const [row] = doubleDoubleSolver(problem);
  expect(row!.result.outRadius[0]).toBe(Infinity);
});
