import { describe, expect, it } from 'vitest';
import { emulate } from '../../../src/emulate/index.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { rescaleProblem, rescaleRegimes, type RescaleRegime } from './rescale-regimes.js';

const inTurn = turns(import.meta.url);

/** `RESCALES=all` prints the whole table, with longer rows and more thresholds. */
const printsAll = process.env['RESCALES'] === 'all';
const queries = 256;
const dim = 64;

interface Statistics {
  /** Rescales per row. */
  readonly perRow: number;
  /** Of the blocks in which a row's maximum grew, the share whose rescale was skipped. */
  readonly skippedRows: number;
  /** Of all blocks but the first, the share in which a warp had nothing to rescale. */
  readonly skippedWarps: number;
}

async function statistics(
  regime: RescaleRegime,
  keys: number,
  threshold: number | string,
): Promise<Statistics> {
  const problem = rescaleProblem(regime, queries, keys, dim, 20261121 + keys);
  const settings = new Map([['rescale.threshold', String(threshold)]]);
  const { counters } = await emulate(problem, 'fa4', { settings });
  const { rowRescales, rowRescalesSkipped, warpRescales, warpRescalesSkipped } = counters;
  const grown = rowRescales! + rowRescalesSkipped!;
  return {
    perRow: rowRescales! / queries,
    skippedRows: grown === 0 ? 1 : rowRescalesSkipped! / grown,
    skippedWarps: warpRescalesSkipped! / (warpRescales! + warpRescalesSkipped!),
  };
}

/** What an H200 counted, mean over the rows of one problem: by regime, keys, threshold. */
const counted: readonly (readonly [RescaleRegime, number, number, number])[] = [
  ['normal', 1024, 0, 1.65625],
  ['normal', 1024, 8, 0],
  ['normal', 4096, 0, 3.2109375],
  ['normal', 4096, 8, 0],
  ['large', 1024, 0, 1.65625],
  ['large', 1024, 8, 0.8359375],
  ['large', 4096, 0, 3.2109375],
  ['large', 4096, 8, 1.53125],
  ['student', 1024, 0, 1.40625],
  ['student', 1024, 8, 0.328125],
  ['student', 4096, 0, 3.1796875],
  ['student', 4096, 8, 1.04296875],
  ['sink', 1024, 0, 2.58203125],
  ['sink', 1024, 8, 0.0234375],
  ['sink', 4096, 0, 4.2109375],
  ['sink', 4096, 8, 0.015625],
  ['ascending', 1024, 0, 0],
  ['ascending', 1024, 8, 0],
  ['ascending', 4096, 0, 0],
  ['ascending', 4096, 8, 0],
];

describe('rescales per row', () => {
  // TEST_SEED draws some of them.
  inTurn.each(sampled(counted, 8))(
    '%s, %i keys, threshold %i: about the %f of an H200',
    async (...row) => {
      const [regime, keys, threshold, mean] = row;
      const { perRow } = await statistics(regime, keys, threshold);
      // Other draws of the same distribution. Rows share their keys, so that a mean over rows varies
      // by a good part of one row's deviation, √(H_n) for the n-th block's records.
      expect(Math.abs(perRow - mean)).toBeLessThanOrEqual(mean < 0.1 ? 0.05 : 0.6);
    },
  );

  it('follow the harmonic numbers where every block is alike', async () => {
    // The n-th block holds a new maximum with probability 1/n.
    const blocks = 32;
    const expected = Array.from({ length: blocks - 1 }, (_, n) => 1 / (n + 2)).reduce(
      (a, b) => a + b,
    );
    const { perRow } = await statistics('normal', blocks * 128, 0);
    expect(Math.abs(perRow - expected)).toBeLessThan(0.5);
  });

  it('are one per block where scores fall along the keys', async () => {
    const { perRow } = await statistics('descending', 1024, 0);
    expect(perRow).toBe(7);
  });
});

describe.runIf(printsAll)('the table of rescales', () => {
  it('is printed', { timeout: 600_000 }, async () => {
    const lines = ['| regime | keys | threshold | per row | rows skipped | warps skipped |'];
    for (const regime of rescaleRegimes)
      for (const keys of [1024, 4096, 16384])
        for (const threshold of [0, 2, 4, 8, 16, 'inf']) {
          const { perRow, skippedRows, skippedWarps } = await statistics(regime, keys, threshold);
          const percent = (x: number): string => `${(100 * x).toFixed(1)} %`;
          lines.push(
            `| ${regime} | ${keys} | ${threshold} | ${perRow.toFixed(3)} | ${percent(skippedRows)} | ${percent(skippedWarps)} |`,
          );
        }
    console.log(lines.join('\n'));
  });
});
