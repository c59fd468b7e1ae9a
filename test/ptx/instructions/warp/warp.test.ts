import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ResolvedOperand } from '../../../../src/ptx/instructions/index.js';
import { constant, createTestWarp, vector, warpOperation } from './warp-registers.js';

const all = 0xffffffff;
const lanes = Array.from({ length: 32 }, (_, lane) => lane);
const warpOf = (element: fc.Arbitrary<number>) =>
  fc.array(element, { minLength: 32, maxLength: 32 });
const word = fc.integer({ min: 0, max: all });

/** Executes a shuffle of given values, with the same b and c in all lanes. */
function shuffle(mode: string, values: readonly number[], b: number, c: number) {
  const warp = createTestWarp();
  const [d, p, a] = [warp.register(), warp.register('pred'), warp.register()];
  warp.words(a).set(values);
  const pair: ResolvedOperand = { kind: 'pair', first: d, second: p };
  const operands = [pair, a, constant(b), constant(c), constant(all)];
  const operation = warpOperation(`shfl.sync.${mode}.b32`, operands);
  expect(operation.execute(warp.registers, all)).toBe(null);
  return { values: [...warp.words(d)], inRange: [...warp.words(p)].map((bits) => bits === all) };
}

describe('shfl.sync', () => {
  it('takes what CUDA says of segments of 2, 4, 8, 16 or 32 lanes', () => {
    fc.assert(
      fc.property(
        warpOf(word),
        fc.integer({ min: 0, max: 31 }),
        fc.constantFrom(2, 4, 8, 16, 32),
        (values, b, width) => {
          // __shfl_down_sync and the others make this c of a width.
          const last = ((32 - width) << 8) | 0x1f;
          const start = (lane: number) => lane - (lane % width);
          const expected = {
            down: (lane: number) => (lane % width) + b < width && lane + b,
            bfly: (lane: number) => (lane ^ b) < start(lane) + width && lane ^ b,
            idx: (lane: number) => start(lane) + (b % width),
          };
          for (const [mode, from] of Object.entries(expected)) {
            const result = shuffle(mode, values, b, last);
            for (const lane of lanes) {
              const source = from(lane);
              expect(result.inRange[lane]).toBe(source !== false);
              expect(result.values[lane]).toBe(values[source === false ? lane : source]);
            }
          }
          const up = shuffle('up', values, b, (32 - width) << 8);
          for (const lane of lanes) {
            const isInRange = (lane % width) - b >= 0;
            expect(up.inRange[lane]).toBe(isInRange);
            expect(up.values[lane]).toBe(values[isInRange ? lane - b : lane]);
          }
        },
      ),
      { numRuns: 8 },
    );
  });

  it('reports what takes part without being asked, and what is asked of lanes that do not', () => {
    const warp = createTestWarp();
    const [d, a] = [warp.register(), warp.register()];
    const run = (mask: number, present: number) =>
      warpOperation('shfl.sync.bfly.b32', [
        d,
        a,
        constant(1),
        constant(31),
        constant(mask),
      ]).execute(warp.registers, present);
    expect(run(0x3, 0x3)).toBe(null);
    expect(run(0x3, 0x7)).toMatch(/lane 2 is not in its membermask 0x00000003/);
    expect(run(0x7, 0x5)).toMatch(/lane 0 takes the value of lane 1, which does not execute it/);
  });
});

describe('votes', () => {
  const vote = (mode: string, values: readonly number[], mask: number, present = mask) => {
    const warp = createTestWarp();
    const [d, p] = [warp.register(mode === 'ballot' ? 32 : 'pred'), warp.register('pred')];
    warp.words(p).set(values.map((value) => (value & 1 ? all : 0)));
    const type = mode === 'ballot' ? 'b32' : 'pred';
    const operation = warpOperation(`vote.sync.${mode}.${type}`, [d, p, constant(mask)]);
    return { finding: operation.execute(warp.registers, present), words: warp.words(d) };
  };

  it('are those of the lanes of the mask', () => {
    fc.assert(
      fc.property(warpOf(word), word, (values, mask) => {
        fc.pre(mask !== 0);
        const members = lanes.filter((lane) => (mask >>> lane) & 1);
        const yes = members.filter((lane) => values[lane] & 1);
        const expected = {
          all: yes.length === members.length ? all : 0,
          any: yes.length > 0 ? all : 0,
          uni: yes.length === 0 || yes.length === members.length ? all : 0,
          ballot: yes.reduce((sum, lane) => sum + 2 ** lane, 0),
        };
        for (const [mode, result] of Object.entries(expected)) {
          const { finding, words } = vote(mode, values, mask);
          expect(finding).toBe(null);
          for (const lane of lanes) expect(words[lane]).toBe((mask >>> lane) & 1 ? result : 0);
        }
      }),
      { numRuns: 8 },
    );
  });

  it('report lanes that are missing', () => {
    const values = lanes.map(() => 1);
    expect(vote('ballot', values, 0xf, 0x7).finding).toMatch(/do not execute it: 0x00000008/);
  });

  it('elect one lane, and know who is active', () => {
    const warp = createTestWarp();
    const [d, p] = [warp.register(), warp.register('pred')];
    const pair: ResolvedOperand = { kind: 'pair', first: { kind: 'sink' }, second: p };
    warpOperation('elect.sync', [pair, constant(0xf0)]).execute(warp.registers, 0xf0);
    expect([...warp.words(p)].filter((bits) => bits === all).length).toBe(1);
    expect(warp.words(p)[4]).toBe(all);
    warpOperation('activemask.b32', [d]).execute(warp.registers, 0x30);
    expect([...warp.words(d)].slice(3, 7)).toEqual([0, 0x30, 0x30, 0]);
  });
});

describe('reductions', () => {
  const reduce = (name: string, values: readonly number[], mask: number) => {
    const warp = createTestWarp();
    const [d, a] = [warp.register(), warp.register()];
    warp.words(a).set(values);
    const finding = warpOperation(name, [d, a, constant(mask)]).execute(warp.registers, mask);
    expect(finding).toBe(null);
    return warp.words(d);
  };
  const integer = (type: string, value: number) => (type === 's32' ? value | 0 : value >>> 0);
  const expected: Record<string, (values: number[]) => number> = {
    'add.s32': (values) => values.reduce((sum, value) => (sum + value) | 0, 0),
    'add.u32': (values) => values.reduce((sum, value) => (sum + value) | 0, 0),
    'min.s32': (values) => Math.min(...values),
    'max.s32': (values) => Math.max(...values),
    'min.u32': (values) => Math.min(...values),
    'max.u32': (values) => Math.max(...values),
    'and.b32': (values) => values.reduce((result, value) => result & value),
    'or.b32': (values) => values.reduce((result, value) => result | value),
    'xor.b32': (values) => values.reduce((result, value) => result ^ value),
  };

  it('combine the lanes of the mask', () => {
    fc.assert(
      fc.property(warpOf(word), word, (values, mask) => {
        fc.pre(mask !== 0);
        for (const [form, combine] of Object.entries(expected)) {
          const type = form.split('.')[1];
          const members = lanes.filter((lane) => (mask >>> lane) & 1);
          const result = combine(members.map((lane) => integer(type, values[lane]))) >>> 0;
          const words = reduce(`redux.sync.${form}`, values, mask);
          for (const lane of members) expect(words[lane], form).toBe(result);
        }
      }),
      { numRuns: 6 },
    );
  });

  it('of fp32 leave NaN out, or keep it', () => {
    const values = lanes.map((lane) =>
      lane === 3 ? 0x7fc00001 : lane === 4 ? 0xc0000000 : 0x3f800000,
    );
    expect(reduce('redux.sync.min.f32', values, all)[0]).toBe(0xc0000000);
    expect(reduce('redux.sync.max.abs.f32', values, all)[9]).toBe(0x40000000);
    expect(reduce('redux.sync.max.NaN.f32', values, all)[0]).toBe(0x7fffffff);
  });

  it('match equal values', () => {
    const warp = createTestWarp();
    const [d, p, a] = [warp.register(), warp.register('pred'), warp.register()];
    warp.words(a).set(lanes.map((lane) => lane % 3));
    warpOperation('match.any.sync.b32', [d, a, constant(all)]).execute(warp.registers, all);
    for (const lane of lanes)
      expect(warp.words(d)[lane]).toBe(
        lanes.filter((other) => other % 3 === lane % 3).reduce((sum, other) => sum + 2 ** other, 0),
      );
    const pair: ResolvedOperand = { kind: 'pair', first: d, second: p };
    const matchAll = warpOperation('match.all.sync.b32', [pair, a, constant(all)]);
    matchAll.execute(warp.registers, all);
    expect([warp.words(d)[5], warp.words(p)[5]]).toEqual([0, 0]);
    warp.words(a).fill(7);
    matchAll.execute(warp.registers, all);
    expect([warp.words(d)[5], warp.words(p)[5]]).toEqual([all, all]);
  });
});

describe('movmatrix', () => {
  it('transposes, and twice gives the matrix back', () => {
    const warp = createTestWarp();
    const [d, e, a] = [warp.register(), warp.register(), warp.register()];
    // Row ⌊l / 4⌋, columns 2 (l mod 4) and the next.
    warp.words(a).set(lanes.map((lane) => (2 * lane) | ((2 * lane + 1) << 16)));
    const name = 'movmatrix.sync.aligned.m8n8.trans.b16';
    warpOperation(name, [d, a]).execute(warp.registers, all);
    expect(warp.words(d)[1]).toBe((2 * 8) | ((3 * 8) << 16));
    warpOperation(name, [e, d]).execute(warp.registers, all);
    expect([...warp.words(e)]).toEqual([...warp.words(a)]);
  });

  it('reports a warp that is not whole', () => {
    const warp = createTestWarp();
    const operands = [warp.register(), warp.register()];
    const operation = warpOperation('movmatrix.sync.aligned.m8n8.trans.b16', operands);
    expect(operation.execute(warp.registers, 0xffff)).toMatch(/only the lanes 0x0000ffff/);
    expect(vector(operands).kind).toBe('vector');
  });
});
