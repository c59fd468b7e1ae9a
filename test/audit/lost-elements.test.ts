import { describe, expect, it } from 'vitest';
import { sampled } from '../setup/effort.js';
import { attentionOracle } from '../../oracles/index.js';
import { auditGradients, judgeOutputs } from '../../src/audit/index.js';
import type { FormatName } from '../../src/formats/index.js';
import { boxMullerNumbers, filledProblem, tensor, uniformNumbers } from '../setup/problems.js';
import { encode } from './damage.js';
import { gradientCase, roundedGradients, type GradientValues } from './gradients/gradient-case.js';

const dim = 8;
const frame = { queries: 24, keys: 150, dim } as const;

/** What a kernel may make of numbers that are all lost: as they are, nothing, the reverse, those of the row before. */
const made: Readonly<Record<string, (values: Float64Array) => Float64Array>> = {
  exact: (values) => values,
  zero: (values) => values.map(() => 0),
  negated: (values) => values.map((x) => -x),
  rotated: (values) => values.map((_, i) => values[(i + dim) % values.length]),
};

const normal = (seed: number) => boxMullerNumbers(uniformNumbers(seed));

/** A problem whose column `c` of V has numbers of size `sizes[c]`, or of the last that is given. */
function problemOf(format: FormatName, sizes: readonly number[]) {
  const number = normal(3);
  return filledProblem(
    { ...frame, format },
    { q: number, k: number, v: (i) => (sizes[i % dim] ?? sizes[sizes.length - 1]) * number() },
  );
}

function judgeOutput(sizes: readonly number[], change: (values: Float64Array) => Float64Array) {
  const problem = problemOf('bf16', sizes);
  const { out, lse } = attentionOracle(problem).quantities;
  return judgeOutputs(
    problem,
    {
      out: encode(change(out.values), 'bf16', [1, 1, frame.queries, dim]),
      lse: encode(lse.values, 'fp32', [1, 1, frame.queries]),
    },
    { diagnose: false },
  ).verdict;
}

/** The verdict on gradients of dO of a size, all changed alike. */
function judgeGradientsOf(size: number, change: (values: Float64Array) => Float64Array) {
  const number = normal(5);
  const of = gradientCase(
    problemOf('bf16', [1]),
    tensor('bf16', [1, 1, frame.queries, dim], () => size * number()),
  );
  const { dq, dk, dv } = of.exact;
  const changed: GradientValues = { dq: change(dq), dk: change(dk), dv: change(dv) };
  return auditGradients(of.problem, roundedGradients(of, changed), { diagnose: false }).verdict;
}

describe('what underflow may take all of', () => {
  const names = Object.keys(made);

  it.each(sampled(names, 2))('is not judged: an output that is %s', (name) => {
    const verdict = judgeOutput([1e-36], made[name]);
    expect(verdict).toMatchObject({ pass: false, judged: false, findings: [] });
    expect(verdict.sentence).toBe(
      'NOT JUDGED: nothing in the output is larger than underflow, which may take all of it.',
    );
  });

  it.each(sampled(names, 2))('is not judged: gradients that are %s', (name) => {
    // Products of dO and V are lost before sums of dO are.
    expect(judgeGradientsOf(1e-34, made[name])).toMatchObject({ pass: false });
    const verdict = judgeGradientsOf(1e-37, made[name]);
    expect(verdict).toMatchObject({ pass: false, judged: false, findings: [] });
    expect(verdict.sentence).toBe('NOT JUDGED: nothing in dQ, dK and dV is larger than underflow.');
  });

  it.each(sampled(names.slice(1), 2))('is a fault where a column is larger: %s', (name) => {
    expect(judgeOutput([1e-3, 1e-36], made[name]).sentence).toMatch(/^FAIL/);
  });

  it.each(sampled(names.slice(1), 2))('is a fault where it is 2^20 times as large: %s', (name) => {
    expect(judgeOutput([1e-36 * 2 ** 20], made[name]).sentence).toMatch(/^FAIL/);
    expect(judgeGradientsOf(1e-34 * 2 ** 40, made[name]).sentence).toMatch(/^FAIL/);
  });
});

describe('what is judged', () => {
  it('is said of the rest where some is lost', () => {
    const { sentence, pass } = judgeOutput([1, 1e-36], made['exact']);
    expect(pass).toBe(true);
    // But for one or the other that is larger by chance.
    expect(sentence).toMatch(/16\d of 192 elements are no larger than underflow, and not judged/);
  });

  it('are zeros that are exact: of V, and of dO', () => {
    expect(judgeOutput([0], made['exact'])).toMatchObject({ pass: true, judged: true });
    expect(judgeGradientsOf(0, made['exact'])).toMatchObject({ pass: true, judged: true });
  });

  it('are elements that cancel: one key leaves dQ and dK nothing but roundings', () => {
    const number = normal(7);
    const problem = filledProblem({ queries: 5, keys: 1, dim, format: 'bf16' }, number);
    const of = gradientCase(problem);
    expect(
      auditGradients(problem, roundedGradients(of, of.exact), { diagnose: false }).verdict,
    ).toMatchObject({ pass: true, judged: true });
  });

  it('are elements that cancel and are small: equal values leave dP − D nothing but roundings', () => {
    const number = normal(9);
    const values = Array.from({ length: dim }, () => number());
    const problem = filledProblem(
      { queries: 5, keys: 7, dim, format: 'bf16' },
      { q: number, k: number, v: (i) => values[i % dim] },
    );
    const of = gradientCase(
      problem,
      tensor('bf16', [1, 1, 5, dim], () => 1e-25 * number()),
    );
    const { dq } = of.exact;
    expect(dq.some((x) => x !== 0)).toBe(true);
    expect(
      auditGradients(problem, roundedGradients(of, { dq }), { diagnose: false }).verdict,
    ).toMatchObject({ pass: true, judged: true });
  });
});
