import { expect } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { judgeOutputs } from '../../src/audit/index.js';
import { decodeTensor, encodeFromFloat64, formats } from '../../src/formats/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

/** So many keys that neither K nor V is held in fp64. */
const [keys, dim] = [131_136, 128] as const;

/** Numbers of bf16 of either sign, from 1/2 to 2: by the constants of Numerical Recipes. */
function tensor(rows: number, seed: number): Tensor {
  let state = seed;
  const data = Uint16Array.from({ length: rows * dim }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state & 0x80000000 ? 0x8000 : 0) | (0x3f00 + ((state >>> 16) & 0xff));
  });
  return { format: 'bf16', shape: [1, 1, rows, dim], data };
}

const problem: Problem = {
  q: tensor(1, 1),
  k: tensor(keys, 2),
  v: tensor(keys, 3),
  scale: 0.3,
  causal: false,
  window: null,
  softcap: null,
};

const untried = 'of rows of 131,136 keys not every cause was tried';

inTurn(
  'of rows of many keys a cause is named, and what was not tried is said',
  { timeout: 300_000 },
  () => {
    const reference = attentionOracle(problem);
    const { out, lse } = reference.quantities;
    const [q, k] = [problem.q, problem.k].map((one) => decodeTensor(one)) as [
      Float64Array,
      Float64Array,
    ];
    const weights = Float64Array.from({ length: keys }, (_, j) => {
      let dot = 0;
      for (let t = 0; t < dim; t++) dot += q[t] * k[j * dim + t];
      return Math.exp(problem.scale * dot - lse.values[0]);
    });
    const heaviest = weights.reduce((best, w, j) => (w > weights[best] ? j : best), 0);
    const first = heaviest - (heaviest % 128);
    const ofTile = decodeTensor(problem.v, first * dim, (first + 128) * dim);
    const lost = weights.subarray(first, first + 128);
    const mass = lost.reduce((sum, w) => sum + w, 0);
    const without = out.values.map((x, c) => {
      const product = lost.reduce((sum, w, j) => sum + w * ofTile[j * dim + c], 0);
      return (x - product) / (1 - mass);
    });
    const judge = (values: Float64Array) => {
      const data = encodeFromFloat64(formats.bf16, values);
      return judgeOutputs(problem, { out: { ...problem.q, data }, lse: null }, { reference })
        .verdict;
    };
    const missing = judge(without);
    expect(missing.pass).toBe(false);
    expect([missing.diagnosis!.id, ...missing.diagnosis!.equivalents]).toContain(
      'key-tile-missing',
    );
    expect(missing.diagnosis!.sentence).toContain(`keys ${first} to ${first + 127} are missing`);
    expect(missing.diagnosis!.evidence.join('\n')).toContain(untried);
    const wrong = judge(out.values.map((x, c) => x + 0.2 * Math.sin(c * c)));
    expect(wrong.diagnosis!.id).toBe('unexplained');
    expect(wrong.diagnosis!.evidence.join('\n')).toContain(untried);
    expect(judge(out.values).pass).toBe(true);
  },
);
