import { describe, expect, it } from 'vitest';
import { polynomialShare, type Exp2Pattern } from '../../kernels/fa4/exp2-tuning.js';
import {
  exponentialSplit,
  prepareFa4Program,
  rescaleTraffic,
} from '../../kernels/fa4/program/index.js';
import { emulate } from '../../src/emulate/index.js';
import { clocksOf, roofline, sumOfCounters, unitRates } from '../../src/machine/index.js';
import { differenceOfCounters, operandClocks } from './measured-work.js';
import { rescaleProblem } from '../kernels/fa4/rescale-regimes.js';
import {
  blockWork,
  countersOf,
  hardwareOnly,
  normalProblem,
  timedRun,
  totalOf,
} from './roofline-runs.js';

const { sm_100: rates } = unitRates;
const d128 = { qkDim: 128, vDim: 128 };
const withHardware = { overrides: { exp2: hardwareOnly } };

describe('a block of 128 keys', () => {
  // Table 1 of FlashAttention-4, arXiv 2603.05451: clocks by rows of the tile.
  it.each([
    [128, { mma: 1024, operands: 768, exponentials: 1024 }],
    [256, { mma: 2048, operands: 1536, exponentials: 2048 }],
  ])('takes the clocks of the paper with %i queries', (queries, paper) => {
    const work = blockWork({ queries, ...d128, ctas: 1, ...withHardware });
    const result = roofline(work, rates);
    expect(clocksOf(result.lines, 'tensor core')).toBe(paper.mma);
    expect(operandClocks(result)).toBe(paper.operands);
    const { hardware, factors } = exponentialSplit(work);
    expect(hardware / rates.mufuLanes).toBe(paper.exponentials);
    expect(factors).toBe(queries);
    expect(clocksOf(result.lines, 'MUFU')).toBe((hardware + factors) / rates.mufuLanes);
  });

  it('is as much work as the next one', () => {
    const runs = [384, 512, 640].map((keys) =>
      totalOf({ queries: 128, keys, qkDim: 64, vDim: 64, ctas: 1 }),
    );
    const [first, second] = [0, 1].map((i) => {
      const work = differenceOfCounters(runs[i + 1], runs[i]);
      // Which waits have to wait depends on where in the ring the block falls.
      return { ...work, blockedWaits: {} };
    });
    expect(second).toEqual(first);
    expect(clocksOf(roofline(sumOfCounters(runs), rates).lines, 'tensor core')).toBe(
      (3 + 4 + 5) * 512,
    );
  });

  it('takes the tensor core half as long with 8-bit operands', () => {
    const clocks = (['bf16', 'e4m3'] as const).map((format) =>
      clocksOf(
        roofline(blockWork({ queries: 128, qkDim: 64, vDim: 64, ctas: 1, format }), rates).lines,
        'tensor core',
      ),
    );
    expect(clocks).toEqual([512, 256]);
  });
});

describe('a pair of CTAs', () => {
  const setting = { queries: 512, keys: 384, ...d128, ...withHardware };
  const [alone, paired] = ([1, 2] as const).map((ctas) =>
    countersOf(normalProblem(setting), { ...setting, ctas }),
  );

  it('halves the bytes of B that each CTA reads and loads, exactly', () => {
    expect(alone).toHaveLength(2);
    expect(paired).toHaveLength(2);
    for (const [rank, { sharedBytes }] of paired.entries())
      for (const name of ['K → mma', 'V → mma', 'TMA → K', 'TMA → V'])
        expect(2 * sharedBytes[name]).toBe(alone[rank].sharedBytes[name]);
  });

  it('leaves all other work as it was', () => {
    const [one, two] = [alone, paired].map((list) => {
      const sum = sumOfCounters(list);
      const { lines } = roofline(sum, rates);
      return {
        q: sum.sharedBytes['Q → mma'],
        tensor: sum.tensorBytes,
        flops: sum.mmaFlops,
        ...Object.fromEntries(
          (['tensor core', 'MUFU', 'FMA'] as const).map((unit) => [unit, clocksOf(lines, unit)]),
        ),
      };
    });
    expect(two).toEqual(one);
  });

  it('does together what its CTAs do', () => {
    const both = roofline(paired, rates);
    const each = paired.map((counters) => roofline(counters, rates));
    for (const [i, { clocks, amount }] of both.lines.entries()) {
      expect(amount).toBe(each[0].lines[i].amount + each[1].lines[i].amount);
      expect(clocks).toBeCloseTo(each[0].lines[i].clocks + each[1].lines[i].clocks, 6);
    }
  });
});

describe('exponentials', () => {
  it.each<Exp2Pattern>([
    { frequency: 0, reserve: 4, startFragment: 0 },
    { frequency: 16, reserve: 4, startFragment: 1 },
    { frequency: 10, reserve: 4, startFragment: 1 },
    { frequency: 8, reserve: 6, startFragment: 0 },
  ])('are split as the pattern says: %o', (pattern) => {
    const setting = { queries: 100, keys: 300, qkDim: 64, vDim: 64, causal: true };
    const split = exponentialSplit(
      totalOf({ ...setting, overrides: { exp2: { ...pattern, degree: 3 } } }),
    );
    expect(split.polynomialShare).toBe(polynomialShare(pattern));
    // Whole tiles are computed, whatever of them is masked.
    expect(split.hardware + split.polynomial).toBe(128 * 384);
    expect(split.factors).toBe(2 * 128);
  });

  it('are none where nothing ran', () => {
    expect(exponentialSplit(sumOfCounters([])).polynomialShare).toBe(0);
  });
});

describe('rescaling O', () => {
  const queries = 128;
  const keys = 384;
  const dim = 64;
  // No mask: in blocks that are masked whole the kernel rescales what is 0 yet; the forward skips them.
  const votesOfRun = (queries / 32) * (keys / 128 - 1);

  it.each(['normal', 'large', 'descending'] as const)(
    'moves less the higher the threshold, as often as the forward says: %s',
    async (regime) => {
      const problem = rescaleProblem(regime, queries, keys, dim, 7);
      const often: number[] = [];
      for (const rescaleThreshold of [0, 8, 256]) {
        const counters = sumOfCounters(countersOf(problem, { overrides: { rescaleThreshold } }));
        const traffic = rescaleTraffic(counters, dim);
        expect(traffic.votes).toBe(votesOfRun);
        expect(traffic.finalBytes).toBe(queries * dim * 4);
        expect(traffic.bytesToRegisters).toBe(traffic.rescales * 32 * dim * 4);
        expect(traffic.bytesToTensorMemory).toBe(traffic.bytesToRegisters);
        const settings = new Map([['rescale.threshold', String(rescaleThreshold)]]);
        const forward = await emulate(problem, 'fa4', { settings });
        expect(traffic.rescales).toBe(forward.counters.warpRescales);
        often.push(traffic.rescales);
      }
      const [always, usual, never] = often;
      expect(usual).toBeLessThanOrEqual(always);
      expect(never).toBe(0);
      expect(always).toBeGreaterThan(0);
    },
  );
});

describe('a timed schedule', () => {
  it.each([1, 2] as const)('is no faster than the roofline: %i CTAs', (ctas) => {
    const { clocks, counters } = timedRun({ queries: 256 * ctas, keys: 256, ...d128, ctas });
    for (const one of counters) {
      // Shared memory is no unit of the schedule.
      for (const line of roofline(one, rates).lines)
        if (line.unit !== 'shared memory') expect(clocks).toBeGreaterThanOrEqual(line.clocks);
    }
    const { lines } = roofline(counters[0], rates);
    const { unitClocks } = counters[0];
    expect(unitClocks['tensor core']).toBe(clocksOf(lines, 'tensor core'));
    expect(unitClocks['TMA']).toBe(clocksOf(lines, 'TMA'));
    // There it is the clocks of the four parts together.
    expect(unitClocks['tensor memory']).toBe(4 * clocksOf(lines, 'tensor memory'));
  });
});

it('reads what the tuning picks off a run that nobody configured', () => {
  const setting = { queries: 256, keys: 256, qkDim: 64, vDim: 64 };
  const { configuration } = prepareFa4Program(normalProblem(setting));
  expect(exponentialSplit(totalOf(setting)).polynomialShare).toBe(
    polynomialShare(configuration.exp2),
  );
});
