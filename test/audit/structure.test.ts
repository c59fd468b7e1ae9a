import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { encodeProblem } from '../../properties/problems/plain-problem.js';
import { randomValues } from '../../properties/problems/values.js';
import { auditAccuracy, judgeOutputs, type StructureTest } from '../../src/audit/index.js';
import { lazily } from '../../src/reuse.js';
import { formats, round } from '../../src/formats/index.js';
import { testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { decode, encode } from './damage.js';
import { roundingKernel } from './rounding-kernel.js';

const inTurn = turns(import.meta.url);

const [heads, queries, keys, dim] = [2, 256, 256, 64] as const;

/** A problem of independent numbers, its exact attention, and a correct kernel's output in fp64. */
const given = lazily(() => {
  const { normal } = randomValues(testSeed);
  const normals = (rows: number) =>
    Float64Array.from({ length: heads * rows * dim }, () => normal());
  const problem = encodeProblem({
    sizes: { batch: 1, kvHeads: heads, groupSize: 1, queries, keys, qkDim: dim, vDim: dim },
    formats: { q: 'bf16', k: 'bf16', v: 'bf16' },
    values: { q: normals(queries), k: normals(keys), v: normals(keys) },
    scale: 1 / Math.sqrt(dim),
    causal: false,
    window: null,
    softcap: null,
  });
  const { out, lse } = roundingKernel(problem, { outputFormat: 'fp64', lag: () => 0, tile: 64 });
  const reference = attentionOracle(problem, { accuracy: auditAccuracy('bf16') });
  return { problem, reference, out: decode(out), shape: out.shape, lse: lse! };
});

/** The tests that fail an output, whose elements and LSE are made of the correct ones. */
function failing(
  element: (x: number, row: number) => number,
  ofLse: (x: number) => number = (x) => x,
): readonly string[] {
  const { problem, reference, out, shape, lse } = given();
  const values = out.map((x, i) => element(x, Math.floor(i / dim)));
  const outputs = {
    out: encode(values, 'bf16', shape),
    lse: encode(decode(lse).map(ofLse), 'fp32', lse.shape),
  };
  const { verdict } = judgeOutputs(problem, outputs, { reference, diagnose: false });
  return verdict.findings.map(({ test }) => test);
}

const { bf16 } = formats;
/** x without the bits that bf16 cannot hold. */
const truncated = (x: number) => {
  const nearest = round(bf16, x);
  return Math.abs(nearest) > Math.abs(x) ? round(bf16, x * (1 - 2 ** -8)) : nearest;
};

describe('structure tests of bf16 attention over independent numbers', () => {
  inTurn('pass a correct kernel', () => {
    expect(failing((x) => x)).toEqual([]);
  });

  inTurn('see an output that is truncated', () => {
    expect(failing(truncated)).toContain('truncation' satisfies StructureTest);
  });

  inTurn('see reciprocals of the row sums that are kept in bf16', () => {
    const { reference } = given();
    const reciprocal = (row: number) =>
      Math.exp(reference.maximum[row] - reference.quantities.lse.values[row]);
    const tests = failing((x, row) => (x * round(bf16, reciprocal(row))) / reciprocal(row));
    expect(tests).toContain('dispersion' satisfies StructureTest);
  });

  inTurn('see an LSE that is off everywhere by less than any one row may be', () => {
    const tests = failing(
      (x) => x,
      (x) => x + 6e-5,
    );
    expect(tests).toEqual(['lse-mean' satisfies StructureTest]);
  });
});

describe('one query whose weights all round down', () => {
  it('is no reason to call its weights truncated', () => {
    // Keys whose exponential is above a number of bf16 by a quarter of an ulp or more, below the tie.
    const scores: number[] = [0];
    for (let k = -3; scores.length < 1500 && k < -0.25; k = round(bf16, k * (1 - 2 ** -7.5))) {
      const p = Math.exp(k);
      const above = (p - round(bf16, p)) / 2 ** (Math.floor(Math.log2(p)) - 7);
      if (above > 0.2 && above < 0.48) scores.push(...new Array<number>(30).fill(k));
    }
    const count = scores.length;
    const problem = encodeProblem({
      sizes: { batch: 1, kvHeads: 1, groupSize: 1, queries: 1, keys: count, qkDim: 1, vDim: 8 },
      formats: { q: 'bf16', k: 'bf16', v: 'bf16' },
      values: {
        q: Float64Array.of(1),
        k: Float64Array.from(scores),
        v: new Float64Array(count * 8).fill(1),
      },
      scale: 1,
      causal: false,
      window: null,
      softcap: null,
    });
    const outputs = roundingKernel(problem, { outputFormat: 'bf16', lag: () => 0, tile: 2048 });
    expect(judgeOutputs(problem, outputs, { diagnose: false }).verdict.findings).toEqual([]);
  });
});

/** A problem of one head whose weights are all alike, since Q is zero, and its exact attention. */
function evenlyWeighed(
  format: 'bf16' | 'fp16',
  sizes: { readonly queries: number; readonly keys: number; readonly dim: number },
  value: () => number,
) {
  const { queries, keys, dim } = sizes;
  const problem = encodeProblem({
    sizes: { batch: 1, kvHeads: 1, groupSize: 1, queries, keys, qkDim: 1, vDim: dim },
    formats: { q: format, k: format, v: format },
    values: {
      q: new Float64Array(queries),
      k: new Float64Array(keys),
      v: Float64Array.from({ length: keys * dim }, value),
    },
    scale: 1,
    causal: false,
    window: null,
    softcap: null,
  });
  const reference = attentionOracle(problem, { accuracy: auditAccuracy(format) });
  const failing = (change: (x: number) => number): readonly string[] => {
    const outputs = {
      out: encode(reference.quantities.out.values.map(change), format, [1, 1, queries, dim]),
      lse: encode(reference.quantities.lse.values, 'fp32', [1, 1, queries]),
    };
    const { verdict } = judgeOutputs(problem, outputs, { reference, diagnose: false });
    return verdict.findings.map(({ test }) => test);
  };
  return failing;
}

describe('structure tests of rows whose weights are all alike', () => {
  // The largest error of a cubic exponential, which the row sum may have and P not.
  const ofCubic = 8.77e-5;

  it.each([ofCubic, -ofCubic])(
    'pass means of two subnormal values, half of them half-way, moved by %f',
    (error) => {
      const { integer } = randomValues(testSeed);
      const sizes = { queries: 8, keys: 2, dim: 1200 };
      const failing = evenlyWeighed('fp16', sizes, () => integer(-100, 100) * 2 ** -24);
      expect(failing((x) => x * (1 + error))).toEqual([]);
    },
  );

  it('see nine parts in a thousand', () => {
    const { normal } = randomValues(testSeed);
    const failing = evenlyWeighed('bf16', { queries: 128, keys: 256, dim: 64 }, () => normal());
    expect(failing((x) => x)).toEqual([]);
    expect(failing((x) => 0.991 * x)).toContain('scale');
  });
});
