import { expect, it } from 'vitest';
import { attentionGradients, type Accuracy } from '../../../oracles/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { rationalOfFloat64 } from '../../../src/arith/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { filledProblem, tensor } from '../../setup/problems.js';

/** Whether |value − numerator / denominator| ≤ radius, in exact arithmetic. */
function isWithin(value: number, radius: number, numerator: bigint, denominator: bigint): boolean {
  const [x, r] = [rationalOfFloat64(value), rationalOfFloat64(radius)];
  const difference = x.numerator * denominator - numerator * x.denominator;
  const size = difference < 0n ? -difference : difference;
  return size * r.denominator <= r.numerator * x.denominator * denominator;
}

const [queries, keys, dim] = [5, 70, 3];

/**
 * Keys that are all alike have weights 1/n, or 1/(n + 1) with a sink of their score, so that every gradient of whole
 * numbers is a fraction.
 */
it.each<[string, boolean, boolean, Accuracy | undefined]>([
  ['keys alone', false, false, undefined],
  ['a sink', true, false, undefined],
  ['dropout of a half', false, true, undefined],
  [
    'a sink and dropout, as exact as fp64 goes',
    true,
    true,
    { outputFormat: 'fp64', ulpFraction: 1, magnitudeFraction: 0 },
  ],
])('gives fractions with %s', (_, hasSink, hasDropout, accuracy) => {
  for (let run = 0; run < scaled(2); run++) {
    const random = randomValues(testSeed + run);
    const whole = () => random.integer(-6, 6);
    const key = [whole(), whole(), whole()];
    const kept = Uint8Array.from({ length: queries * keys }, () => random.integer(0, 1));
    const q = Array.from({ length: queries * dim }, whole);
    // Rows whose score is not 0 have weights that are no fractions with a sink.
    if (hasSink) for (let i = 0; i < queries; i++) q.splice(i * dim, dim, key[1], -key[0], 0);
    const v = Array.from({ length: keys * dim }, whole);
    const dO = Array.from({ length: queries * dim }, whole);
    const problem = filledProblem(
      { queries, keys, dim },
      { q: (at) => q[at], k: (at) => key[at % dim], v: (at) => v[at] },
      {
        scale: 2,
        ...(hasSink ? { sink: { logits: tensor('fp32', [1], () => 0), inLse: true } } : {}),
        ...(hasDropout
          ? { dropout: { kept: { shape: [queries, keys], data: kept }, probability: 0.5 } }
          : {}),
      },
    );
    const found = attentionGradients(
      problem,
      tensor('bf16', [1, 1, queries, dim], (at) => dO[at]),
      accuracy === undefined ? {} : { accuracy },
    );
    const n = BigInt(keys + (hasSink ? 1 : 0));
    const factor = (i: number, j: number) => (hasDropout ? 2 * kept[i * keys + j] : 1);
    const x = (i: number, j: number) => {
      let sum = 0;
      for (let c = 0; c < dim; c++) sum += dO[i * dim + c] * v[j * dim + c];
      return BigInt(sum * factor(i, j));
    };
    const all = Array.from({ length: keys }, (_, j) => j);
    const rows = Array.from({ length: queries }, (_, i) => i);
    const sums = rows.map((i) => all.reduce((sum, j) => sum + x(i, j), 0n));
    // n² dS
    const ds = (i: number, j: number) => n * x(i, j) - sums[i];
    const check = (
      name: 'dq' | 'dk' | 'dv' | 'dsink',
      at: number,
      numerator: bigint,
      denominator: bigint,
    ) => {
      const { values, radius } = found[name]!;
      if (!isWithin(values[at], radius[at], numerator, denominator))
        expect.fail(
          `${name}[${at}] = ${values[at]} ± ${radius[at]}, exact ${numerator} / ${denominator}`,
        );
    };
    for (let c = 0; c < dim; c++) {
      for (const i of rows) {
        const sum = all.reduce((total, j) => total + ds(i, j), 0n);
        check('dq', i * dim + c, 2n * sum * BigInt(key[c]), n * n);
      }
      for (const j of all) {
        const ofQueries = rows.reduce((total, i) => total + ds(i, j) * BigInt(q[i * dim + c]), 0n);
        check('dk', j * dim + c, 2n * ofQueries, n * n);
        const ofDout = rows.reduce((total, i) => total + factor(i, j) * dO[i * dim + c], 0);
        check('dv', j * dim + c, BigInt(ofDout), n);
      }
    }
    if (hasSink) check('dsink', 0, -sums.reduce((a, b) => a + b), n * n);
  }
});
