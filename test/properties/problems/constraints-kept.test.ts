import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  attentionProblem,
  fittingRegimes,
  regimeNames,
  type ProblemConstraints,
} from '../../../properties/index.js';
import { decodeProblem } from '../../../properties/problems/plain-problem.js';
import { resolveConstraints } from '../../../properties/problems/resolve-constraints.js';
import { hasEmptyRows } from '../../../properties/problems/index.js';
import { decodeTensor, plainFormats } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';

const small: ProblemConstraints = {
  regimes: ['normal'],
  formats: ['fp32'],
  batch: { max: 1 },
  kvHeads: { max: 1 },
  groupSize: { max: 1 },
  queries: { max: 6 },
  keys: { max: 9 },
  qkDim: { max: 4 },
  vDim: { max: 2 },
};
const drawn = (constraints: ProblemConstraints = {}, numRuns = 400): Problem[] =>
  fc.sample(attentionProblem({ ...small, ...constraints }), { seed: 11, numRuns });
const share = <T>(list: readonly T[], test: (one: T) => boolean) =>
  list.filter(test).length / list.length;

describe('the settings of drawn problems', () => {
  const all = drawn();

  it('are causal in a third and more, have a window in a third and a softcap in a quarter', () => {
    // Causal problems with a masked last block come on top.
    expect(Math.abs(share(all, ({ causal }) => causal) - 1 / 3)).toBeLessThan(0.1);
    expect(Math.abs(share(all, ({ window }) => window !== null) - 1 / 3)).toBeLessThan(0.08);
    expect(Math.abs(share(all, ({ softcap }) => softcap !== null) - 1 / 4)).toBeLessThan(0.08);
    const caps = all.flatMap(({ softcap }) => (softcap === null ? [] : [softcap]));
    expect(caps.every((cap) => cap >= 2 ** -6 && cap <= 2 ** 12)).toBe(true);
    expect(Math.abs(share(caps, (cap) => [0.5, 1, 15, 30, 50].includes(cap)) - 0.5)).toBeLessThan(
      0.18,
    );
  });

  it('have windows of no limit, of nothing, and up to one key more than there are', () => {
    const windows = drawn({ window: true, causal: false }).map(({ window, ...rest }) => ({
      ...window!,
      keys: problemShape({ window, ...rest }).keys,
    }));
    for (const side of ['left', 'right'] as const) {
      expect(windows.every((one) => one[side] >= -1 && one[side] <= one.keys + 1)).toBe(true);
      expect(share(windows, (one) => one[side] === -1)).toBeGreaterThan(0.13);
      expect(share(windows, (one) => one[side] === 0)).toBeGreaterThan(0.2);
      expect(windows.some((one) => one[side] === one.keys + 1)).toBe(true);
    }
    expect(windows.some(({ left, right }) => left === -1 && right === -1)).toBe(false);
  });

  it('have scales of the kinds that are allowed', () => {
    const scales = (kind: NonNullable<ProblemConstraints['scales']>[number]) =>
      drawn({ scales: [kind] }, 200).map((problem) => ({
        scale: problem.scale,
        usual: 1 / Math.sqrt(problemShape(problem).qkDim),
      }));
    expect(scales('default').every(({ scale, usual }) => scale === usual)).toBe(true);
    expect(scales('zero').every(({ scale }) => scale === 0)).toBe(true);
    const odd = scales('odd').map(({ scale }) => scale);
    expect(odd.every((scale) => scale >= 2 ** -12 && scale <= 2 ** 6)).toBe(true);
    expect(Math.abs(share(odd, (scale) => scale === 1) - 0.5)).toBeLessThan(0.15);
    expect([Math.min(...odd) < 2 ** -10, Math.max(...odd) > 2 ** 4]).toEqual([true, true]);
    const negative = scales('negative');
    expect(
      negative.every(({ scale }) => scale < 0 && scale >= -(2 ** 6) && scale <= -(2 ** -12)),
    ).toBe(true);
    expect(Math.abs(share(negative, ({ scale, usual }) => scale === -usual) - 0.5)).toBeLessThan(
      0.15,
    );
  });

  it('are as they are fixed', () => {
    for (const fixed of [true, false]) {
      expect(drawn({ causal: fixed }, 60).every(({ causal }) => causal === fixed)).toBe(true);
      expect(drawn({ window: fixed }, 60).every(({ window }) => (window !== null) === fixed)).toBe(
        true,
      );
      expect(
        drawn({ softcap: fixed }, 60).every(({ softcap }) => (softcap !== null) === fixed),
      ).toBe(true);
    }
  });

  it('mask a last block of up to eight keys from most queries now and then', () => {
    const tiling = { blockKeys: 16, threshold: 8 };
    const sizes = { queries: { max: 60 }, keys: { max: 60 }, qkDim: { max: 1 }, vDim: { max: 1 } };
    const blocks = drawn({ ...sizes, tiling, causal: true }).map((problem) =>
      problemShape(problem),
    );
    const isMasked = ({ queries, keys }: (typeof blocks)[number]) =>
      keys > 16 && keys % 16 >= 1 && keys % 16 <= 8 && queries > keys % 16;
    expect(share(blocks, isMasked)).toBeGreaterThan(0.25);
    const masked = blocks.filter(isMasked);
    expect(new Set(masked.map(({ keys }) => keys % 16))).toEqual(new Set([1, 2, 3, 4, 5, 6, 7, 8]));
    expect(new Set(masked.map(({ keys }) => keys >> 4))).toEqual(new Set([1, 2, 3]));
  });

  it('leave no query without a key where they must not, and mend what does', () => {
    const sizes = { queries: { max: 9 }, keys: { min: 0, max: 4 } };
    expect(drawn({ ...sizes, emptyRows: true }).some(hasEmptyRows)).toBe(true);
    const mended = drawn({ ...sizes, emptyRows: false });
    expect(mended.some(hasEmptyRows)).toBe(false);
    expect(mended.every((problem) => problemShape(problem).keys > 0)).toBe(true);
    const causal = drawn({ ...sizes, emptyRows: false, causal: true });
    expect(causal.some(hasEmptyRows)).toBe(false);
    expect(causal.every((problem) => problem.causal)).toBe(true);
  });

  it('have one to three special values in two thirds, where these are asked for', () => {
    const counts = (
      specialValues: ProblemConstraints['specialValues'],
      formats: ProblemConstraints['formats'] = ['fp32'],
    ) =>
      drawn({ specialValues, formats }).map(({ q, k, v }) =>
        [q, k, v].flatMap((tensor) => [...decodeTensor(tensor)]).filter((x) => !Number.isFinite(x)),
      );
    expect(counts([]).flat()).toEqual([]);
    const nans = counts(['nan']);
    expect(new Set(nans.flat().map(String))).toEqual(new Set(['NaN']));
    expect(new Set(nans.map((list) => list.length))).toEqual(new Set([0, 1, 2, 3]));
    expect(Math.abs(share(nans, (list) => list.length > 0) - 0.75)).toBeLessThan(0.08);
    expect(new Set(counts(['infinity']).flat())).toEqual(new Set([Infinity, -Infinity]));
    expect(new Set(counts(['nan', 'infinity']).flat())).toEqual(
      new Set([NaN, Infinity, -Infinity]),
    );
    expect(counts(['infinity', 'nan'], ['e4m3']).flat().every(Number.isNaN)).toBe(true);
  });
});

describe('constraints', () => {
  it.each<[ProblemConstraints, RegExp]>([
    [{ other: 1 } as unknown as ProblemConstraints, /no constraint "other"/],
    [{ formats: [] }, /formats is empty/],
    [{ regimes: [] }, /regimes is empty/],
    [{ regimes: ['none' as 'normal'] }, /regimes has "none"/],
    [{ scales: [] }, /scales is empty/],
    [{ multiples: { keys: 0 } }, /multiples.keys is 0/],
    [{ multiples: { keys: 1.5 } }, /multiples.keys is 1.5/],
    [{ multiples: { rows: 2 } as never }, /no size "rows"/],
    [{ multiples: { keys: 50 }, keys: { min: 51, max: 99 } }, /multiples.keys is 50/],
    [{ groupSizes: [0] }, /groupSizes has 0/],
    [{ groupSizes: [1.5] }, /groupSizes has 1.5/],
    [{ groupSizes: [4], groupSize: { max: 3 } }, /groupSizes has none/],
    [{ groupSizes: [4], groupSize: { min: 5, max: 6 } }, /groupSizes has none/],
    [{ dims: [] }, /dims is empty/],
    [{ dims: [0] }, /dims has 0/],
    [{ dims: [64], qkDim: { max: 63 } }, /dims has none/],
    [{ dims: [64], vDim: { min: 65 } }, /dims has none/],
    [{ dims: [64], multiples: { qkDim: 48 } }, /dims has none/],
    [{ dims: [64], multiples: { vDim: 48 } }, /dims has none/],
    [{ emptyRows: false, keys: { max: 0 } }, /emptyRows is false but keys.max is 0/],
    [
      { emptyRows: false, causal: true, queries: { min: 9 }, keys: { max: 8 } },
      /queries.min 9 exceeds keys.max 8/,
    ],
    [{ maximumElements: -1 }, /maximumElements is -1/],
    [{ maximumElements: NaN }, /maximumElements is NaN/],
    [{ specialValues: ['infinity'], formats: ['e4m3'] }, /asks for infinities/],
    [{ tiling: { blockKeys: 0 } }, /blockKeys is 0/],
    [{ tiling: { threshold: -1 } }, /threshold is -1/],
    [{ tiling: { threshold: 0.1 } }, /threshold is 0.1/],
    [{ tiling: { order: 'none' as 'first-to-last' } }, /order is "none"/],
    [{ regimes: ['one-key'], keys: { min: 2 } }, /one-key needs keys from 1 to 1/],
    [{ regimes: ['sink'], scales: ['odd'] }, /sink needs scales default/],
    [{ regimes: ['empty-tiles'] }, /empty-tiles needs features mask/],
    [{ regimes: ['steps-above'], qkDim: { max: 9 } }, /steps-above needs qkDim from 10/],
    [{ regimes: ['steps-above'], dims: [8, 9] }, /steps-above needs dims from 10/],
    [{ regimes: ['long-tail'], maximumElements: 199 }, /long-tail needs maximumElements from 200/],
  ])('%o are refused in one line', (constraints, words) => {
    expect(() => resolveConstraints(constraints)).toThrow(RequestError);
    expect(() => resolveConstraints(constraints)).toThrow(words);
  });

  it.each<[ProblemConstraints]>([
    [{ multiples: { keys: 50 }, keys: { min: 50, max: 99 } }],
    [{ groupSizes: [4], groupSize: { min: 4, max: 4 } }],
    [{ dims: [64], qkDim: { max: 64 }, vDim: { min: 64 } }],
    [{ emptyRows: false, keys: { max: 1 } }],
    [{ emptyRows: false, causal: true, queries: { min: 8 }, keys: { max: 8 } }],
    [{ emptyRows: true, causal: true, queries: { min: 9 }, keys: { max: 8 } }],
    [{ maximumElements: 0, regimes: ['zeros'], queries: { min: 0 } }],
    [{ specialValues: ['infinity'], formats: ['e4m3', 'e5m2'] }],
    [{ specialValues: ['infinity', 'nan'], formats: ['e4m3'] }],
    [{ tiling: { blockKeys: 1, threshold: 0, order: 'last-to-first' } }],
    [{ regimes: ['one-key'], keys: { min: 1 } }],
    [{ regimes: ['steps-above'], dims: [8, 10] }],
    [{ regimes: ['long-tail'], maximumElements: 200 }],
  ])('%o are none too narrow', (constraints) => {
    expect(resolveConstraints(constraints).choices.length).toBeGreaterThan(0);
  });

  it('leave of sizes, dimensions and groups what is listed, ascending, and open ends give way', () => {
    const { dims, groupSizes, sizes } = resolveConstraints({
      dims: [96, 32, 96, 64],
      groupSizes: [8, 2, 8],
      qkDim: { max: 64 },
    });
    expect([dims, groupSizes, sizes.groupSize]).toEqual([[32, 64], [2, 8], { min: 2, max: 8 }]);
    const of = (constraints: ProblemConstraints, name: 'keys' | 'queries') =>
      resolveConstraints(constraints).sizes[name];
    expect(of({ multiples: { keys: 300 } }, 'keys')).toEqual({ min: 300, max: 300 });
    expect(of({ multiples: { keys: 64 }, keys: { min: 1, max: 200 } }, 'keys')).toEqual({
      min: 64,
      max: 192,
    });
    expect(of({ emptyRows: false, keys: { min: 0, max: 9 } }, 'keys')).toEqual({ min: 1, max: 9 });
    expect(
      of({ emptyRows: false, keys: { min: 0, max: 9 }, multiples: { keys: 4 } }, 'keys'),
    ).toEqual({ min: 4, max: 8 });
    expect(of({ emptyRows: true, keys: { min: 0, max: 9 } }, 'keys')).toEqual({ min: 0, max: 9 });
    const [choice] = resolveConstraints({ regimes: ['long-tail'] }).choices;
    expect([choice.sizes.keys, choice.scales, choice.formats]).toEqual([
      { min: 200, max: 257 },
      ['default'],
      plainFormats,
    ]);
    const [steps] = resolveConstraints({
      regimes: ['steps-below'],
      tiling: { blockKeys: 300 },
    }).choices;
    expect(steps.sizes.keys).toEqual({ min: 301, max: 301 });
    const [paged] = resolveConstraints({
      regimes: ['large-bias'],
      features: ['bias', 'packed', 'mask'],
    }).choices;
    expect([paged.features, paged.needs]).toEqual([['bias', 'mask'], ['bias']]);
  });

  it('leave the usual regimes, of features the served ones, and all that are named', () => {
    const fitting = fittingRegimes();
    expect(fitting).not.toContain('one-key');
    expect(fitting).toContain('long-tail');
    expect(fittingRegimes({ features: ['mask'] })).toEqual(
      expect.arrayContaining(['one-key', 'empty-tiles', 'normal']),
    );
    expect(fittingRegimes({ features: ['mask'] })).not.toContain('level-values');
    expect(fittingRegimes({ regimes: regimeNames })).toContain('level-values');
    expect(
      resolveConstraints({ features: ['packed', 'wide-groups'], batch: { min: 2 } }).features,
    ).toEqual([]);
    const plain = decodeProblem(drawn({}, 1)[0]);
    expect(plain.features).toBeUndefined();
  });
});
