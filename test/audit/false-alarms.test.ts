import { describe, expect } from 'vitest';
import { judgeOutputs } from '../../src/audit/index.js';
import type { FormatName } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { filledProblem, sumNormalNumbers, uniformNumbers } from '../setup/problems.js';
import { encode } from './damage.js';
import { roundingKernel } from './rounding-kernel.js';

const inTurn = turns(import.meta.url);

interface Sizes {
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
}

type Fill = (index: number, random: () => number) => number;

const normal: Fill = (_, random) => sumNormalNumbers(random)();

/**
 * Problems in which roundings add up instead of cancelling: the hard cases for a test that looks for
 * a bias. Each gives q, k and v by flat index within a head.
 */
const hardCases: Readonly<Record<string, (sizes: Sizes) => Record<'q' | 'k' | 'v', Fill>>> = {
  'independent numbers': () => ({ q: normal, k: normal, v: normal }),
  'equal keys': ({ dim }) => ({ q: normal, k: (i) => ((i % dim) % 3) - 1, v: normal }),
  'equal queries': ({ dim }) => ({ q: (i) => ((i % dim) % 5) / 4, k: normal, v: normal }),
  'one heavy key, the rest equal': ({ dim }) => ({
    q: () => 1,
    k: (i) => (i < dim ? 0.25 : 0),
    v: normal,
  }),
  'V of one sign': () => ({ q: normal, k: normal, v: (_, random) => 1 + random() }),
  'V constant': () => ({ q: normal, k: normal, v: () => 1.203125 }),
  'equal columns of V': ({ dim }) => ({
    q: normal,
    k: normal,
    v: (i) => Math.sin(Math.floor(i / dim)),
  }),
  'two values of score': ({ dim }) => ({
    q: () => 1,
    k: (i) => (Math.floor(i / dim) % 2 === 0 ? 0.0625 : 0),
    v: (i) => Math.cos(i),
  }),
  'tiny scores': () => ({ q: (i, r) => 1e-4 * normal(i, r), k: normal, v: normal }),
  'outputs among the subnormals of fp16': () => ({
    q: (i, r) => 0.1 * normal(i, r),
    k: normal,
    v: (i) => 2 ** -20 * Math.cos(i),
  }),
  'large scores': () => ({ q: (i, r) => 6 * normal(i, r), k: normal, v: normal }),
};

function buildProblem(
  fills: Record<'q' | 'k' | 'v', Fill>,
  sizes: Sizes,
  format: FormatName,
  causal: boolean,
  random: () => number,
): Problem {
  const { queries, keys, dim } = sizes;
  const inHead = (fill: Fill, rows: number) => (i: number) => fill(i % (rows * dim), random);
  return filledProblem(
    { ...sizes, batch: null, format },
    { q: inHead(fills.q, queries), k: inHead(fills.k, keys), v: inHead(fills.v, keys) },
    { causal },
  );
}

const sizes: Sizes = { heads: 2, queries: 70, keys: 200, dim: 32 };
const lags: Readonly<Record<string, (row: number) => number>> = {
  'exact max': () => 0,
  'lag of 0.51': () => 0.51,
  'lag by row': (row) => (row * 0.37) % 8,
};

/** Eight-bit inputs come with a 16-bit output, the others with their own format. */
const outputFormats: Readonly<Partial<Record<FormatName, FormatName>>> = {
  e4m3: 'bf16',
  e5m2: 'fp16',
};
const inputFormats = ['bf16', 'fp16', 'e4m3', 'e5m2', 'tf32', 'fp32', 'fp64'] as const;

describe.each(inputFormats)('a correct %s kernel raises no alarm', (format) => {
  // The sixteen-bit formats are the ones in use: they get the larger problem and more cases.
  const common = format === 'bf16' || format === 'fp16';
  const size = common ? sizes : { ...sizes, heads: 1, queries: 67, keys: 130 };
  const names = Object.keys(hardCases);
  // TEST_SEED draws some cases, each with one lag and one mask in turn. All of them with FALSE_ALARMS=all.
  const everything = process.env['FALSE_ALARMS'] === 'all';
  describe.each(everything ? names : sampled(names, common ? 5 : 2))('%s', (name) => {
    const turn = names.indexOf(name) + inputFormats.indexOf(format);
    const everyLag = Object.keys(lags);
    const lagInTurn = everyLag.filter((_, i) => everything || i === turn % everyLag.length);
    inTurn.each(common ? lagInTurn : ['lag by row'])('%s', (lag) => {
      const random = uniformNumbers(20_261_121);
      for (const causal of everything ? [false, true] : [turn % 2 === 0]) {
        const problem = buildProblem(hardCases[name](size), size, format, causal, random);
        const outputs = roundingKernel(problem, {
          outputFormat: outputFormats[format] ?? format,
          lag: lags[lag],
          tile: 64,
        });
        expect(judgeOutputs(problem, outputs).verdict.findings).toEqual([]);
      }
    });
  });
});

describe('damage to one head of several', () => {
  const random = uniformNumbers(7);
  const wide = { ...sizes, heads: 4, dim: 64 };
  const problem = buildProblem(hardCases['independent numbers'](wide), wide, 'bf16', true, random);
  const outputs = roundingKernel(problem, { outputFormat: 'bf16', lag: () => 0, tile: 128 });
  const unrounded = roundingKernel(problem, { outputFormat: 'fp32', lag: () => 0, tile: 128 });

  inTurn.each(sampled([0, 1, 2, 3], 1))('O × 0.99 on head %i is seen there', (head) => {
    const size = wide.queries * wide.dim;
    const { out } = outputs;
    const values = Float64Array.from(unrounded.out.data as Float32Array, (x, i) =>
      Math.floor(i / size) === head ? x * 0.99 : x,
    );
    const { verdict } = judgeOutputs(problem, {
      ...outputs,
      out: encode(values, 'bf16', out.shape),
    });
    expect(verdict.pass).toBe(false);
    expect(verdict.sentence).toMatch(new RegExp(`too small.* \\(head ${head}\\)\\.$`));
  });
});
