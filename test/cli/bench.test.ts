import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { median, runBenchmark, type Benchmark } from '../../src/bench/benchmark.js';
import { benchmarks } from '../../src/bench/benchmarks.js';
import { normalProblem, normalValues } from '../../src/bench/normal-problem.js';
import { multiplyAdds } from '../../src/bench/oracle-benchmarks.js';
import { formatQuantity, formatScaled } from '../../src/words/numbers.js';
import { builtDist } from '../setup/built-dist.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

/** A benchmark of two quantities that measures the given values and counts what happens. */
function scripted(values: readonly number[][], targets: { first?: number; second?: number }) {
  const happened = { measured: 0, disposed: 0 };
  const benchmark: Benchmark = {
    quantities: [
      { name: 'rate', unit: 'elements/s', better: 'higher', target: targets.first ?? 0 },
      { name: 'time', unit: 's', better: 'lower', target: targets.second ?? Infinity },
    ],
    runs: values.length - 1,
    prepare: () => ({
      measure: () => {
        const value = values[happened.measured++];
        if (value === undefined) throw new Error('measured too often');
        return value;
      },
      dispose: async () => void happened.disposed++,
    }),
  };
  return { benchmark, happened };
}

describe('a benchmark', () => {
  it('gives the median of its runs after a run to warm up, and cleans up', async () => {
    const { benchmark, happened } = scripted(
      [
        [1e9, 1e9],
        [5, 50],
        [1, 10],
        [3, 30],
      ], // the first is the warm-up
      { first: 3, second: 29 },
    );
    const [rate, time] = await runBenchmark(benchmark, false);
    expect(rate).toMatchObject({ median: 3, smallest: 1, largest: 5, runs: 3, meetsTarget: true });
    expect(time).toMatchObject({ median: 30, smallest: 10, largest: 50, meetsTarget: false });
    expect(happened).toEqual({ measured: 4, disposed: 1 });
  });

  it('judges the direction in which a quantity is better', async () => {
    const runs = [[], [4, 4]];
    const { benchmark } = scripted(runs, { first: 5, second: 5 });
    const readings = await runBenchmark(benchmark, false);
    expect(readings.map(({ meetsTarget }) => meetsTarget)).toEqual([false, true]);
  });

  it('measures once and judges nothing when quick', async () => {
    const { benchmark, happened } = scripted([[7, 8], [], []], {});
    const readings = await runBenchmark(benchmark, true);
    expect(readings.map((reading) => reading.median)).toEqual([7, 8]);
    expect(readings.map(({ meetsTarget }) => meetsTarget)).toEqual([null, null]);
    expect(happened).toEqual({ measured: 1, disposed: 1 });
  });

  it('cleans up when it fails', async () => {
    const { benchmark, happened } = scripted([], {});
    await expect(runBenchmark(benchmark, true)).rejects.toThrow('measured too often');
    expect(happened.disposed).toBe(1);
  });
});

describe('the median', () => {
  it('has as many values below it as above', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -1e300, max: 1e300, noNaN: true }), { minLength: 1 }),
        (values) => {
          const middle = median(values);
          const below = values.filter((value) => value < middle).length;
          const above = values.filter((value) => value > middle).length;
          return Math.max(below, above) <= values.length / 2;
        },
      ),
    );
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });
});

describe('quantities as text', () => {
  const factors: Record<string, number> = { G: 1e9, M: 1e6, k: 1e3, '': 1, m: 1e-3, µ: 1e-6 };

  it('keep three digits', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-6, max: 9e11, noNaN: true }), (value) => {
        const [digits, prefix = ''] = formatScaled(value).split(' ');
        expect(digits).toMatch(/^(\d\.\d\d|\d\d\.\d|\d{3})$/);
        const shown = Number(digits) * factors[prefix];
        return Math.abs(shown - value) <= 0.00501 * value;
      }),
    );
  });

  it.each([
    [2.806e9, 'elements/s', '2.81 G elements/s'],
    [0.1368, 's', '137 ms'],
    [9.364, 's', '9.36 s'],
    [0.99999, 's', '1.00 s'],
    [2.43e8, 'bytes', '243 MB'],
    [2.35e9, 'bytes/s', '2.35 GB/s'],
  ])('%d %s is %s', (value, unit, text) => {
    expect(formatQuantity(value, unit)).toBe(text);
  });
});

describe('the data', () => {
  it('is standard normal and repeats from run to run', () => {
    const values = normalValues(2 ** 18 + 5, 1);
    const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
    const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length;
    const beyond2 = values.filter((x) => Math.abs(x) > 2).length / values.length;
    // Standard errors: 2^-9 of the mean, √2·2^-9 of the variance, 4.1e-4 of P(|x| > 2) = 0.0455.
    expect(Math.abs(mean)).toBeLessThan(6 / 2 ** 9);
    expect(Math.abs(variance - 1)).toBeLessThan((6 * Math.SQRT2) / 2 ** 9);
    expect(Math.abs(beyond2 - 0.0455)).toBeLessThan(6 * 4.1e-4);
    expect(normalValues(9, 7)).toEqual(normalValues(9, 7));
    expect(normalValues(9, 7)).not.toEqual(normalValues(9, 8));
  });

  it('counts multiply-adds of visible keys', () => {
    const size = { heads: 3, seqlen: 10, dim: 16 };
    expect(multiplyAdds(normalProblem('bf16', size))).toBe(3 * 2 * 10 * 10 * 16);
    const causal = normalProblem('bf16', size, { causal: true });
    expect(multiplyAdds(causal)).toBe(3 * 2 * 55 * 16);
  });
});

describe('the laws that a check tries', () => {
  inTurn('are measured one by one, and by the words that ask for them only', async () => {
    const [benchmark, ...others] = benchmarks('main.js', 'laws of naive-input');
    expect(others).toEqual([]);
    expect(benchmarks('main.js').flatMap(({ quantities }) => quantities)).not.toContainEqual(
      expect.objectContaining({ unit: 'problems/s' }),
    );
    const readings = await runBenchmark(benchmark, true);
    const names = readings.map(({ name }) => name);
    expect(names).toContain('laws of naive-input: within-bound');
    // The model has no gradients.
    expect(names).not.toContain('laws of naive-input: gradients-linear');
    expect(new Set(names).size).toBe(names.length);
    for (const { name, median } of readings) expect(median, name).toBeGreaterThan(0);
  });
});

describe('flashproof bench', () => {
  let main = '';
  const scratch = mkdtempSync(join(tmpdir(), 'flashproof-bench-test-'));
  beforeAll(async () => {
    main = join(await builtDist(), 'src/cli/main.js');
  });
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  inTurn('runs every benchmark when quick, and writes valid JSON beside the table', () => {
    const json = join(scratch, 'bench.json');
    const { status, stdout } = spawnSync(
      process.execPath,
      [main, 'bench', '--quick', '--json', json],
      { encoding: 'utf8' },
    );
    expect(status).toBe(0);
    const document = JSON.parse(readFileSync(json, 'utf8')) as {
      readings: { name: string; median: number }[];
    };
    expect(document).toMatchObject({ kind: 'bench', schemaVersion: 1, quick: true });
    const quantities = benchmarks(main).flatMap((benchmark) => benchmark.quantities);
    const names = quantities.map(({ name }) => name);
    expect(document.readings.map(({ name }) => name)).toEqual(names);
    expect(new Set(names).size).toBe(names.length);
    for (const { name, median } of document.readings) {
      expect(median, name).toBeGreaterThan(0);
      expect(stdout).toContain(name);
    }
  });
});
