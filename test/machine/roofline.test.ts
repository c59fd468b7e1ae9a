import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import {
  createCtaCounters,
  type Amounts,
  type CtaCounters,
} from '../../src/machine/measure/counters.js';
import {
  clocksOf,
  roofline,
  sumOfCounters,
  unitRates,
  type Roofline,
  type RooflineUnit,
  type UnitRates,
} from '../../src/machine/index.js';
import { balancedShare } from './balanced-share.js';
import { differenceOfCounters, operandClocks } from './measured-work.js';
import { RequestError } from '../../src/request-error.js';

const { sm_100: rates } = unitRates;

function counted(amounts: Partial<Record<keyof CtaCounters, Amounts>>): CtaCounters {
  return { ...createCtaCounters(), ...amounts } as CtaCounters;
}

function lineOf({ lines }: Roofline, unit: RooflineUnit) {
  return lines.find((line) => line.unit === unit)!;
}

const amountsOf = (names: readonly string[]): fc.Arbitrary<Amounts> =>
  fc.dictionary(fc.constantFrom(...names), fc.integer({ min: 0, max: 2 ** 40 }));

/** Counters with every kind of name that a roofline tells apart. */
const anyCounters: fc.Arbitrary<CtaCounters> = fc
  .record({
    instructions: amountsOf([
      ...['ex2.approx.ftz.f32', 'fma.rn.f32x2', 'fma.rn.f32', 'mul.rn.f32', 'max.f32'],
      ...['cvt.rn.bf16x2.f32', 'tcgen05.ld', 'mbarrier.try_wait.parity'],
    ]),
    mmaFlopsByOperandBits: amountsOf(['16', '8']),
    sharedBytes: amountsOf(['K → mma', 'TMA → K', 'registers → α']),
    tensorBytes: amountsOf(['S → registers', 'registers → P', 'P → mma', 'mma → S']),
    globalBytes: amountsOf(['K → TMA', 'TMA → O', 'registers → LSE']),
  })
  .map(counted);

describe('clocks', () => {
  it('are work / rate, part by part, and ratios are to the tensor core', () => {
    fc.assert(
      fc.property(anyCounters, (counters) => {
        const result = roofline(counters, rates);
        for (const { parts, amount, clocks, ofTensorCore } of result.lines) {
          for (const part of parts) expect(part.clocks * part.rate).toBeCloseTo(part.amount, 3);
          expect(amount).toBe(parts.reduce((sum, part) => sum + part.amount, 0));
          expect(clocks).toBe(parts.reduce((sum, part) => sum + part.clocks, 0));
          const tensorCore = clocksOf(result.lines, 'tensor core');
          expect(ofTensorCore).toBe(tensorCore === 0 ? null : clocks / tensorCore);
        }
      }),
    );
  });

  it('are bound by the busiest unit whose rate is published', () => {
    fc.assert(
      fc.property(anyCounters, (counters) => {
        const { lines, bound } = roofline(counters, rates);
        const published = lines.filter(({ evidence }) => evidence === 'published');
        const most = Math.max(...published.map(({ clocks }) => clocks));
        if (most === 0) expect(bound).toBeNull();
        else expect(published.find(({ clocks }) => clocks === most)!.unit).toBe(bound);
      }),
    );
    const bytes = counted({ globalBytes: { 'K → TMA': 1e9 }, sharedBytes: { 'TMA → K': 128 } });
    expect(roofline(bytes, rates).bound).toBe('shared memory');
  });

  it('are 512 for a product of 128³ with 16-bit operands, half that with 8-bit operands', () => {
    const flops = 2 * 128 ** 3;
    for (const [bits, clocks] of Object.entries({ 16: 512, 8: 256 }))
      expect(
        clocksOf(
          roofline(counted({ mmaFlopsByOperandBits: { [bits]: flops } }), rates).lines,
          'tensor core',
        ),
      ).toBe(clocks);
  });

  it('are 1024 for 128 × 128 exponentials, 512 on sm_103', () => {
    const counters = counted({ instructions: { 'ex2.approx.ftz.f32': (128 * 128) / 32 } });
    expect(clocksOf(roofline(counters, rates).lines, 'MUFU')).toBe(1024);
    expect(clocksOf(roofline(counters, unitRates.sm_103).lines, 'MUFU')).toBe(512);
  });

  it('count a packed instruction as two operations and as one issue', () => {
    const packed = roofline(counted({ instructions: { 'fma.rn.f32x2': 4 } }), rates);
    const single = roofline(counted({ instructions: { 'fma.rn.f32': 4 } }), rates);
    expect(lineOf(packed, 'FMA').amount).toBe(2 * lineOf(single, 'FMA').amount);
    expect(lineOf(packed, 'issue').clocks).toBe(1);
    expect(lineOf(single, 'issue').clocks).toBe(1);
  });

  it('leave out what the unit does not do', () => {
    const result = roofline(
      counted({
        instructions: { 'max.f32': 2, 'cvt.rn.bf16x2.f32': 1, 'tcgen05.ld': 1 },
        tensorBytes: { 'P → mma': 512, 'mma → S': 512, 'S → registers': 512 },
        globalBytes: { 'registers → LSE': 64, 'K → TMA': 64 },
        sharedBytes: { 'K → mma': 256, 'TMA → K': 128 },
      }),
      rates,
    );
    expect(lineOf(result, 'tensor memory').clocks).toBe(1);
    expect(lineOf(result, 'TMA').clocks).toBe(1);
    expect(lineOf(result, 'FMA').parts).toEqual([]);
    expect(lineOf(result, 'issue').amount).toBe(4);
    expect(result.unrated).toEqual({
      alu: { 'max.f32': 64 },
      conversion: { 'cvt.rn.bf16x2.f32': 64 },
    });
    expect(lineOf(result, 'shared memory').clocks).toBe(3);
    expect(operandClocks(result)).toBe(2);
  });

  it('ask for rates that are positive', () => {
    for (const wrong of [0, -1, NaN, Infinity]) {
      const broken: UnitRates = { ...rates, name: 'broken', mufuLanes: wrong };
      expect(() => roofline(counted({}), broken)).toThrow(RequestError);
    }
  });
});

describe('sums and differences', () => {
  it('are taken name by name, and undo one another', () => {
    fc.assert(
      fc.property(anyCounters, anyCounters, (a, b) => {
        const sum = sumOfCounters([a, b]);
        const clean = sumOfCounters([a]);
        expect(differenceOfCounters(sum, b)).toEqual(clean);
        expect(sumOfCounters([b, a])).toEqual(sum);
      }),
    );
    expect(sumOfCounters([])).toEqual(createCtaCounters());
  });

  it('leave their operands alone and keep the most in use', () => {
    const a = { ...counted({ sharedBytes: { x: 1 } }), mostTensorColumns: 512 };
    const b = { ...counted({ sharedBytes: { x: 2 } }), mostSharedBytes: 7 };
    expect(sumOfCounters([a, b])).toMatchObject({ mostTensorColumns: 512, mostSharedBytes: 7 });
    expect(differenceOfCounters(b, a).sharedBytes).toEqual({ x: 1 });
    expect([a.sharedBytes, b.sharedBytes]).toEqual([{ x: 1 }, { x: 2 }]);
  });

  it('give several CTAs the clocks of all of them', () => {
    fc.assert(
      fc.property(anyCounters, anyCounters, (a, b) => {
        const [both, first, second] = [[a, b], a, b].map((counters) => roofline(counters, rates));
        for (const [i, { clocks }] of both.lines.entries())
          expect(clocks / (first.lines[i].clocks + second.lines[i].clocks || 1)).toBeCloseTo(
            clocks === 0 ? 0 : 1,
            9,
          );
      }),
    );
  });
});

describe('a balanced share', () => {
  /** Work whose exponentials move from the MUFU to the FMA units. */
  const at = (share: number, mma: number, exponentials: number, cost: number, base: number) => ({
    share,
    roofline: roofline(
      counted({
        mmaFlopsByOperandBits: { 16: mma * 8192 },
        instructions: {
          'ex2.approx.ftz.f32': (exponentials * (1 - share) * 16) / 32,
          'fma.rn.f32': ((base + cost * exponentials * share) * 128) / 32,
        },
      }),
      rates,
    ),
  });

  it('is where the MUFU has come down to the tensor core', () => {
    const points = [at(0, 512, 1024, 0.75, 256), at(0.25, 512, 1024, 0.75, 256)] as const;
    const { share, clocks, units } = balancedShare(points, ['tensor core', 'MUFU']);
    expect(share).toBeCloseTo(1 - 512 / 1024, 12);
    expect(clocks).toBeCloseTo(512, 9);
    expect(units).toEqual(['tensor core', 'MUFU']);
  });

  it('is 0 where the tensor core is busiest anyway', () => {
    const points = [at(0, 2048, 1024, 0.75, 256), at(0.5, 2048, 1024, 0.75, 256)] as const;
    expect(balancedShare(points, ['tensor core', 'MUFU', 'FMA'])).toEqual({
      share: 0,
      clocks: 2048,
      units: ['tensor core'],
    });
  });

  it('is never worse than any other share', () => {
    const clocks = fc.integer({ min: 1, max: 4096 });
    const cost = fc.integer({ min: 0, max: 16 }).map((n) => n / 8);
    const other = fc.integer({ min: 0, max: 64 }).map((n) => n / 64);
    const units: RooflineUnit[] = ['tensor core', 'MUFU', 'FMA'];
    fc.assert(
      fc.property(clocks, clocks, cost, clocks, other, (mma, exponentials, perOne, base, share) => {
        const points = [0, 0.5].map((s) => at(s, mma, exponentials, perOne, base));
        const best = balancedShare([points[0], points[1]], units);
        const { lines } = at(share, mma, exponentials, perOne, base).roofline;
        const there = Math.max(...units.map((unit) => clocksOf(lines, unit)));
        expect(best.clocks).toBeLessThanOrEqual(there * (1 + 1e-6));
        // Nor is a smaller one as good.
        if (share < best.share - 1e-4) expect(there).toBeGreaterThan(best.clocks);
        expect(best.share).toBeGreaterThanOrEqual(0);
        expect(best.share).toBeLessThanOrEqual(1);
      }),
    );
  });
});
