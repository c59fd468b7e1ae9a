import { describe, expect, it } from 'vitest';
import { createFa4Forward, findKernelModel } from '../../../kernels/index.js';
import { judgeOutputs } from '../../../src/audit/index.js';
import { emulate } from '../../../src/emulate/index.js';
import { attachScales } from '../../../src/problem/index.js';
import { filledProblem, sumNormalNumbers, uniformNumbers } from '../../setup/problems.js';

const normal = sumNormalNumbers(uniformNumbers(170_905));
const frame = { heads: 4, kvHeads: 2, queries: 20, keys: 130, dim: 64, format: 'e4m3' } as const;
const plain = filledProblem(frame, () => 20 * normal());
const factors = { q: [0.04, 0.09], k: [0.05, 0.11], v: [0.03, 0.02] } as const;
const problem = attachScales(
  plain,
  Object.fromEntries(
    Object.entries(factors).map(([name, values]) => [
      name,
      { descale: { format: 'fp32', shape: [1, 2], data: Float32Array.from(values) } },
    ]),
  ),
);

describe('FlashAttention-4 with descales by head', () => {
  it('computes each head as with those of its kv head', () => {
    const forward = createFa4Forward(problem);
    for (let tile = 0; tile < forward.tiles; tile++) {
      const kv = Math.floor(forward.rowsOf(tile).first / frame.queries / 2);
      const descale = {
        q: Math.fround(factors.q[kv] ?? NaN),
        k: Math.fround(factors.k[kv] ?? NaN),
        v: Math.fround(factors.v[kv] ?? NaN),
      };
      const alone = createFa4Forward(plain, { configuration: { descale } });
      expect(forward.runTile(tile)).toEqual(alone.runTile(tile));
    }
  });

  it('gives what a correct kernel gives', async () => {
    const { out, lse } = await emulate(problem, 'fa4');
    const premises = { qkAccumulator: 'fp32', pvAccumulator: 'fp32', weightScale: 2 ** 8 } as const;
    expect(judgeOutputs(problem, { out, lse }, { premises }).verdict.findings).toEqual([]);
  });

  it('refuses what it has no path for in one line', () => {
    const model = findKernelModel('fa4');
    const block = { format: 'fp32', shape: [1, 2, 2], data: new Float32Array(4).fill(2) } as const;
    const byBlock = attachScales(plain, { k: { descale: block, rowsPerBlock: 65 } });
    expect(() => model.prepare(byBlock, new Map())).toThrow('k_descale differs within a head');
    expect(() => model.arithmetic(problem, new Map())).toThrow('fa4 takes no factors of q, k or v');
    expect(() => model.attribute(problem, new Map())).toThrow('fa4 takes no factors of q, k or v');
  });
});
