import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeProblem, doutKinds, type RegimeName } from '../../../properties/index.js';
import { describeCase } from '../../../properties/problems/describe-problem.js';
import { drawDout } from '../../../properties/problems/gradients/draw-dout.js';
import {
  decodeProblem,
  encodeProblem,
  selectPart,
  type PlainProblem,
} from '../../../properties/problems/plain-problem.js';
import type { Sizes } from '../../../properties/problems/sizes.js';
import { headRows, randomValues } from '../../../properties/problems/values.js';
import { decodeTensor, formats, tensorScales } from '../../../src/formats/index.js';
import { sequencesOf, tensor } from '../../setup/problems.js';
import { variedProblem } from '../laws/try-law.js';

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);
const sizes: Sizes = { batch: 2, kvHeads: 2, groupSize: 2, queries: 3, keys: 4, qkDim: 2, vDim: 3 };

describe('a part of a problem', () => {
  const count = (length: number) => Float64Array.from(upTo(length));
  const shapes = { q: [2, 4, 3, 2], k: [2, 2, 4, 2], v: [2, 2, 4, 3] } as const;
  /** A factor for each row of K, and for each head of Q. */
  const factors = {
    k: tensorScales({ format: 'e4m3', shape: shapes.k }, [
      {
        name: 'descale',
        format: 'fp32',
        values: count(16),
        shape: [2, 2, 4, 1],
        blocks: [1, 1, 1, 2],
      },
    ]),
    q: tensorScales({ format: 'e4m3', shape: shapes.q }, [
      {
        name: 'descale',
        format: 'fp32',
        values: count(4),
        shape: [1, 4, 1, 1],
        blocks: [2, 1, 3, 2],
      },
    ]),
  };
  const plain: PlainProblem = {
    sizes,
    formats: { q: 'e4m3', k: 'e4m3', v: 'e4m3' },
    values: { q: count(48), k: count(32), v: count(48) },
    scale: 1,
    causal: true,
    window: null,
    softcap: null,
    features: { sink: { logits: tensor('fp32', [4], (i) => i), inLse: true } },
    dout: { format: 'bf16', values: count(72) },
    factors,
  };
  const indices = (of: number) => fc.subarray(upTo(of), { minLength: 1 });

  it('has the elements, heads, factors, sinks and gradients of what is left', () => {
    fc.assert(
      fc.property(
        indices(2),
        indices(2),
        indices(2),
        indices(3),
        indices(4),
        indices(2),
        indices(3),
        (batch, kvHeads, groupSize, queries, keys, qkDim, vDim) => {
          const selection = { batch, kvHeads, groupSize, queries, keys, qkDim, vDim };
          const part = selectPart(plain, selection);
          for (const [name, kept] of Object.entries(selection))
            expect(part.sizes[name as keyof Sizes]).toBe(kept.length);
          const heads = kvHeads.flatMap((head) => groupSize.map((member) => 2 * head + member));
          const pick = (of: readonly number[], lists: readonly (readonly number[])[]) =>
            lists[0].flatMap((b) =>
              lists[1].flatMap((h) =>
                lists[2].flatMap((r) =>
                  lists[3].map((c) => ((b * of[1] + h) * of[2] + r) * of[3] + c),
                ),
              ),
            );
          expect([...part.values.q]).toEqual(pick(shapes.q, [batch, heads, queries, qkDim]));
          expect([...part.values.k]).toEqual(pick(shapes.k, [batch, kvHeads, keys, qkDim]));
          expect([...part.values.v]).toEqual(pick(shapes.v, [batch, kvHeads, keys, vDim]));
          expect([...part.dout!.values]).toEqual(pick([2, 4, 3, 3], [batch, heads, queries, vDim]));
          expect([...part.features!.sink!.logits.data]).toEqual(heads);
          const { q, k } = encodeProblem(part);
          const scaleOf = (of: typeof q, shape: readonly number[]) =>
            upTo(shape[0] * shape[1] * shape[2]).map((row) => {
              const [all] = of.scales!.factors;
              const at = [
                Math.floor(row / (shape[1] * shape[2])),
                Math.floor(row / shape[2]) % shape[1],
                row % shape[2],
              ].map((i, axis) => Math.floor(i / all.blocks[axis]));
              return all.values[(at[0] * all.shape[1] + at[1]) * all.shape[2] + at[2]];
            });
          expect(scaleOf(k, k.shape)).toEqual(
            batch.flatMap((b) => kvHeads.flatMap((h) => keys.map((key) => (b * 2 + h) * 4 + key))),
          );
          expect(scaleOf(q, q.shape)).toEqual(
            batch.flatMap(() => heads.flatMap((head) => queries.map(() => head))),
          );
        },
      ),
      { numRuns: 40 },
    );
  });

  it('is the whole where nothing is selected', () => {
    const { features, ...rest } = plain;
    void features;
    expect(selectPart(rest, {})).toEqual({ ...rest, factors: selectPart(plain, {}).factors });
    const three = { ...variedProblem({}, { batch: null, heads: 2, kvHeads: 1 }) };
    const decoded = decodeProblem(three);
    expect([
      decoded.sizes.batch,
      decoded.sizes.groupSize,
      decoded.features,
      decoded.factors,
    ]).toEqual([1, 2, undefined, undefined]);
  });
});

describe('random numbers', () => {
  it('are even, normal, whole and signs, the same of one seed', () => {
    const random = randomValues(9);
    const again = randomValues(9);
    const uniform = upTo(20_000).map(() => random.uniform());
    expect(uniform.slice(0, 50)).toEqual(upTo(50).map(() => again.uniform()));
    expect(uniform.every((x) => x >= 0 && x < 1 && Number.isInteger(x * 2 ** 32))).toBe(true);
    for (const tenth of upTo(10))
      expect(
        Math.abs(uniform.filter((x) => Math.floor(10 * x) === tenth).length / 2000 - 1),
      ).toBeLessThan(0.08);
    const whole = upTo(9000).map(() => random.integer(-1, 1));
    for (const x of [-1, 0, 1])
      expect(Math.abs(whole.filter((y) => y === x).length / 3000 - 1)).toBeLessThan(0.08);
    const signs = upTo(4000).map(() => random.sign());
    expect(new Set(signs)).toEqual(new Set([1, -1]));
    expect(Math.abs(signs.reduce<number>((a, b) => a + b, 0))).toBeLessThan(200);
    const normal = upTo(20_000).map(() => random.normal());
    const moment = (power: number) => normal.reduce((sum, x) => sum + x ** power, 0) / 20_000;
    for (const [power, value, near] of [
      [1, 0, 0.03],
      [2, 1, 0.05],
      [3, 0, 0.1],
      [4, 3, 0.25],
    ] as const)
      expect(Math.abs(moment(power) - value)).toBeLessThan(near);
    expect(randomValues(1).uniform()).not.toBe(randomValues(2).uniform());
  });

  it('are of heads whose rows stand one behind the other', () => {
    expect(headRows(sizes)).toEqual(
      upTo(4).map((head) => ({
        head,
        firstQuery: 6 * head,
        queries: 6,
        firstKey: 4 * head,
        keys: 4,
      })),
    );
  });
});

describe('drawn gradients of outputs', () => {
  const draw = (
    seed: number,
    regime: RegimeName = 'normal',
    v: 'fp32' | 'e4m3' | 'fp16' = 'fp32',
  ) => drawDout({ sizes, formats: { q: v, k: v, v } }, regime, randomValues(seed));

  /** The kind of a draw, by what it looks like. */
  function kindOf(values: Float64Array): string {
    const list = [...values];
    if (list.every((x) => Number.isInteger(x) && Math.abs(x) <= 2)) return 'whole';
    const rows = upTo(24).filter((row) =>
      values.subarray(3 * row, 3 * row + 3).some((x) => x !== 0),
    );
    if (rows.length <= 2) return `one-row`;
    if (list.every((x) => x > 0) || list.every((x) => x < 0)) return 'one-signed';
    const size = Math.sqrt(list.reduce((sum, x) => sum + x * x, 0) / list.length);
    return size > 30 ? 'large' : 'normal';
  }

  it('are of each kind as often as its odds, of one sign more often where maxima are repeated', () => {
    const shares = (regime: RegimeName) => {
      const kinds = upTo(420).map((seed) => kindOf(draw(seed, regime).values));
      return (kind: string) => kinds.filter((one) => one === kind).length / kinds.length;
    };
    const [usual, biased] = [shares('normal'), shares('repeated-maxima')];
    const total = Object.values(doutKinds).reduce((sum, { odds }) => sum + odds, 0);
    for (const [name, { odds }] of Object.entries(doutKinds))
      expect(Math.abs(usual(name) - odds / total), name).toBeLessThan(0.07);
    expect(Math.abs(biased('one-signed') - 4 / 7)).toBeLessThan(0.08);
  });

  it('have sizes as they are said to have, rounded to the format of the output', () => {
    const all = upTo(420).map((seed) => draw(seed).values);
    const of = (kind: string) => all.filter((values) => kindOf(values) === kind);
    const oneSigned = of('one-signed').flatMap((values) => [...values].map(Math.abs));
    expect([
      Math.min(...oneSigned) >= 0.5,
      Math.min(...oneSigned) < 0.52,
      Math.max(...oneSigned) < 4,
      Math.max(...oneSigned) > 3.9,
    ]).toEqual([true, true, true, true]);
    const sizesOf = of('large').map((values) =>
      Math.round(Math.log2(Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / values.length))),
    );
    expect(new Set(sizesOf)).toEqual(new Set([6, 7, 8, 9, 10]));
    expect(new Set(of('whole').flatMap((values) => [...values].map((x) => x + 0)))).toEqual(
      new Set([-2, -1, 0, 1, 2]),
    );
    const rows = of('one-row').map((values) =>
      upTo(24).filter((row) => values.subarray(3 * row, 3 * row + 3).every((x) => x !== 0)),
    );
    expect(Math.max(...rows.map((list) => list.length))).toBe(2);
    expect(new Set(rows.flat()).size).toBeGreaterThan(20);
    for (const [input, format] of [
      ['fp32', 'fp32'],
      ['fp16', 'fp16'],
      ['e4m3', 'bf16'],
    ] as const) {
      const drawn = draw(3, 'normal', input);
      expect(drawn.format).toBe(format);
      const { data } = tensor(format, [72], (i) => drawn.values[i]);
      expect(decodeTensor({ format, shape: [72], data })).toEqual(drawn.values);
    }
    expect(formats.fp32.storageBits).toBe(32);
  });
});

describe('a problem in words', () => {
  it('has its settings, features and numbers, the first 64 of each', () => {
    const plain = variedProblem(
      { scale: 2 },
      { batch: 1, heads: 1, kvHeads: 1, queries: 1, keys: 2, dim: 1, vDim: 33 },
    );
    const q = tensor('fp32', [1, 1, 1, 1], () => -0);
    const v = tensor('fp32', [1, 1, 2, 33], (i) => i);
    const lines = describeProblem({ ...plain, q, v }).split('\n');
    expect(lines[0]).toBe('attention problem, scale 2');
    expect(lines[1]).toBe('q: fp32 [1, 1, 1, 1] = [-0]');
    expect(lines[3]).toBe(`v: fp32 [1, 1, 2, 33] = [${upTo(64).join(', ')}, … 2 more]`);
    expect(lines).toHaveLength(4);
    const full = describeCase({
      problem: { ...plain, causal: true, window: { left: 1, right: -1 }, softcap: 3, prefix: 1 },
      dout: tensor('bf16', [1, 1, 1, 33], () => 1),
    }).split('\n');
    expect(full[0]).toBe('attention problem, scale 2, causal, window 1,-1, softcap 3, prefix 1');
    expect(full[4]).toBe(
      `dout: bf16 [1, 1, 1, 33] = [${upTo(33)
        .map(() => 1)
        .join(', ')}]`,
    );
  });

  it('and every feature', () => {
    const frame = { batch: 1, heads: 2, kvHeads: 1, queries: 2, keys: 3, dim: 1 } as const;
    const first = (features: Parameters<typeof variedProblem>[0]) =>
      describeProblem(variedProblem({ scale: 1, ...features }, frame))
        .split('\n')[0]
        .replace('attention problem, scale 1, ', '');
    const int32 = (...data: number[]) => ({ shape: [data.length], data: Int32Array.from(data) });
    expect(first({ mask: { shape: [1, 3], data: Uint8Array.of(1, 0, 1) } })).toBe(
      'mask [1, 3] = [1, 0, 1]',
    );
    expect(first({ bias: tensor('fp32', [3], (i) => [0, -Infinity, 2][i]) })).toBe(
      'bias fp32 [3] = [0, -Infinity, 2]',
    );
    expect(first({ alibiSlopes: tensor('fp32', [2], () => 0.5) })).toBe(
      'ALiBi slopes fp32 [2] = [0.5, 0.5]',
    );
    for (const inLse of [true, false])
      expect(first({ sink: { logits: tensor('fp32', [2], () => 1), inLse } })).toBe(
        `sink fp32 [2] = [1, 1] ${inLse ? 'in' : 'not in'} the LSE`,
      );
    expect(first({ segments: { queries: int32(1, 2), keys: int32(1, 1, 2) } })).toBe(
      'segments of queries [2] = [1, 2], of keys [3] = [1, 1, 2]',
    );
    expect(
      first({ dropout: { kept: { shape: [3], data: Uint8Array.of(1, 1, 0) }, probability: 0.25 } }),
    ).toBe('dropout 0.25, kept [3] = [1, 1, 0]');
    expect(
      first({
        sequences: sequencesOf([
          [2, 1],
          [0, 2],
        ]),
      }),
    ).toBe('sequences of queries × keys 2 × 1, 0 × 2');
  });
});
