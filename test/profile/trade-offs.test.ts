import { describe, expect, it } from 'vitest';
import {
  createFa4Forward,
  exp2Polynomial,
  exp2Tunings,
  type Fa4Configuration,
} from '../../kernels/index.js';
import { attentionOracle } from '../../oracles/index.js';
import { scoreProblem, scoreRegimeNames } from '../../properties/index.js';
import { decodeToFloat64, formats, storageOf } from '../../src/formats/index.js';
import {
  profilePolynomialShare,
  profileRescale,
  type RescaleCase,
  type RescaleMeasure,
} from '../../src/profile/index.js';
import { renderProfile } from '../../src/report/text/profile/index.js';
import { profileDocument } from '../../src/report/json/index.js';
import { largestExponent } from '../../src/profile/limits/lag-bound.js';
import { wrapAtSpaces } from '../../src/report/layout/wrap-text.js';
import { rescaleThresholds } from '../../src/profile/techniques/rescale.js';
import { blockScores } from '../../src/profile/trade-offs/block-scores.js';
import { avoidLastFragment } from '../../src/profile/trade-offs/polynomial-share-case.js';
import { exponentialShares } from '../../src/profile/trade-offs/exp2-shares.js';
import {
  errorRatio,
  forwardErrors,
  modelledFormats,
  runForward,
} from '../../src/profile/trade-offs/forward-run.js';
import {
  measureRescale,
  stepOf,
  mergeReached,
  reachedWeights,
} from '../../src/profile/trade-offs/rescale-case.js';
import { resolveTradeOff } from '../../src/profile/trade-offs/trade-off-request.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const sizes = { queries: 16, keys: 650, dim: 16, seed: 3 };
const usual = { ...sizes, regimes: scoreRegimeNames };

/** A forward made without the profile's own code. */
function directRun(problem: Problem, configuration: Partial<Fa4Configuration>) {
  const forward = createFa4Forward(problem, {
    configuration: { architecture: 'sm_100', ...configuration },
  });
  const { out, lse, counters } = forward.runTile(0);
  const format = problem.q.format as 'bf16' | 'fp16';
  return { counters, lse, out: decodeToFloat64(storageOf(formats[format], out), formats[format]) };
}

describe('rescale, measured', () => {
  const request = resolveTradeOff({ ...sizes, formats: ['bf16', 'fp16'] }, usual);
  const cases: RescaleCase[] = request.formats.flatMap((format) =>
    scoreRegimeNames.map((regime) =>
      measureRescale({ format, regime }, rescaleThresholds, request),
    ),
  );
  const measures = cases.flatMap(({ format, regime, thresholds }) =>
    thresholds.map((measure) => ({ format, regime, measure })),
  );
  const found = (format: string, regime: string, threshold: number): RescaleMeasure =>
    measures.find(
      (one) =>
        one.format === format && one.regime === regime && one.measure.threshold === threshold,
    )!.measure;

  it('threshold 0 never skips, an infinite one always does', () => {
    for (const { measure } of measures) {
      if (measure.threshold === 0) expect(measure.rowsSkipped ?? 0).toBe(0);
      if (measure.threshold === Infinity) {
        expect(measure.rowsSkipped ?? 1).toBe(1);
        expect(measure.warpsSkipped).toBe(1);
      }
    }
    expect(measures.some(({ measure }) => measure.rowsSkipped !== null)).toBe(true);
  });

  it('a threshold skips no steps above it and lets steps below it lag', () => {
    for (const threshold of [2, 4, 8, 16]) {
      const above = found('bf16', 'steps-above', threshold);
      expect(above.rowsSkipped).toBe(0);
      expect(above.largestWeight).toBe(0);
      const below = found('bf16', 'steps-below', threshold);
      // Six blocks: every other of the five steps is skipped, the first among them.
      expect(below.rowsSkipped).toBe(3 / 5);
      expect(below.largestWeight).toBe(threshold - 1 / 16);
      expect(below.headroom.weights).toBeCloseTo(128 + Math.log2(1 - 2 ** -8) - threshold, 0);
    }
  });

  it('no weight exceeds the proven bound', () => {
    for (const { measure } of measures) {
      if (measure.threshold === Infinity) continue;
      const { threshold } = measure;
      const bound = largestExponent({ threshold, offset: 0, scoreExponent: 1024 });
      expect(measure.largestWeight).toBeLessThanOrEqual(bound);
    }
  });

  it.each([
    ['normal-16', 8],
    ['student-t', 2],
    ['steps-below', 4],
    ['descending', Infinity],
  ] as const)('has the figures of the forward itself: %s, threshold %f', (regime, threshold) => {
    const step = stepOf(threshold);
    const problem = scoreProblem(regime, { ...sizes, format: 'bf16', step });
    const { out, lse, counters } = directRun(problem, { rescaleThreshold: threshold });
    const exact = attentionOracle(problem);
    const errors = [...out].map((value, i) => Math.abs(value - exact.quantities.out.values[i]));
    const relative = errors.map((error, i) => error / exact.quantities.out.magnitude[i]);
    const measure = found('bf16', regime, threshold);
    const near = (a: number | null, b: number): void => {
      // The reference of the profile may be off by 2^-24 of a magnitude.
      expect(Math.abs(a! - b)).toBeLessThan(1e-6);
    };
    near(
      measure.errors.largest,
      Math.max(...errors) / Math.max(...exact.quantities.out.values.map(Math.abs)),
    );
    near(measure.errors.largestRelative, Math.max(...relative));
    const squares = relative.reduce((sum, x) => sum + x * x, 0);
    near(measure.errors.rootMeanSquare, Math.sqrt(squares / relative.length));
    near(
      measure.errors.largestLse,
      Math.max(...lse.map((x, i) => Math.abs(x - exact.quantities.lse.values[i]))),
    );
    const { rowRescales, rowRescalesSkipped, warpRescales, warpRescalesSkipped } = counters;
    expect(measure.rowsSkipped).toBe(rowRescalesSkipped / (rowRescales + rowRescalesSkipped));
    expect(measure.warpsSkipped).toBe(warpRescalesSkipped / (warpRescales + warpRescalesSkipped));
    const baseline = directRun(problem, { rescaleThreshold: 0 });
    const squaresOf = (values: Float64Array): number =>
      values.reduce(
        (sum, x, i) =>
          sum + ((x - exact.quantities.out.values[i]) / exact.quantities.out.magnitude[i]) ** 2,
        0,
      );
    near(measure.rootMeanSquareRatio, Math.sqrt(squares / squaresOf(baseline.out)));
  });

  it('loses values exactly where fp16 has no room left for P', () => {
    for (const { measure } of measures.filter(({ format }) => format === 'fp16')) {
      const { headroom, errors } = measure;
      // Between the largest finite number and half an ulp more, rounding decides.
      if (Math.abs(headroom.weights) > 0.001)
        expect(errors.notFinite > 0).toBe(headroom.weights < 0);
    }
    expect(found('fp16', 'steps-below', 16).errors.notFinite).toBe(0);
    expect(found('fp16', 'steps-below', Infinity).errors.notFinite).toBeGreaterThan(0);
  });

  it('sums as many weights as there are keys where all are equal', () => {
    const { headroom } = found('bf16', 'constant-keys', 8);
    expect(headroom.rowSum).toBeCloseTo(128 - Math.log2(sizes.keys), 4);
  });

  inTurn.each(modelledFormats())('follows the maximum as the forward does, in %s', (format) => {
    // TEST_SEED draws a third of the regimes.
    for (const regime of sampled(scoreRegimeNames, 4)) {
      const problem = scoreProblem(regime, { ...sizes, queries: 130, keys: 400, format, step: 4 });
      const scale = Math.fround(problem.scale * Math.LOG2E);
      const tiles = [...blockScores(problem, 'sm_100', 128, scale)];
      for (const threshold of rescaleThresholds) {
        const settings = { architecture: 'sm_100', 'rescale.threshold': threshold };
        const { counters, settings: chosen } = runForward(problem, settings);
        const maxOffset = Number(chosen['maxOffset']);
        const reached = tiles
          .map((tile) => reachedWeights(tile, { threshold, maxOffset, scale }))
          .reduce(mergeReached);
        const { rowRescales, rowRescalesSkipped } = reached;
        expect({ rowRescales, rowRescalesSkipped }).toEqual({
          rowRescales: counters['rowRescales'],
          rowRescalesSkipped: counters['rowRescalesSkipped'],
        });
      }
    }
  });

  inTurn('reaches at least the sums that the forward ends with, whatever the format', () => {
    for (const format of modelledFormats()) {
      const architecture = 'sm_100';
      const options = { ...request, formats: [format as 'bf16'], architecture } as const;
      for (const regime of ['normal-16', 'sink', 'descending'] as const) {
        const [measure] = measureRescale(
          { format: format as 'bf16', regime },
          [4],
          options,
        ).thresholds;
        const problem = scoreProblem(regime, { ...sizes, format });
        const settings = { architecture, 'rescale.threshold': 4 };
        const { lse, settings: chosen } = runForward(problem, settings);
        // log2 l + m·c = LSE in log2 + offset, and m·c is at most the largest score.
        const exact = attentionOracle(problem);
        const offset = Number(chosen['maxOffset']);
        const sums = [...lse].map((x, i) => (x - exact.maximum[i]) / Math.LN2 + offset);
        expect(128 - measure!.headroom.rowSum).toBeGreaterThanOrEqual(Math.max(...sums) - 1e-3);
        expect(measure!.largestWeight).toBeLessThanOrEqual(4 + offset + 2 ** -12);
      }
    }
  });

  it.runIf(modelledFormats().includes('e4m3'))(
    'shows e4m3 clamping P: the output shrinks, the LSE does not change',
    () => {
      const options = resolveTradeOff({ ...sizes, formats: ['e4m3'] }, usual);
      const one = { format: 'e4m3', regime: 'steps-below' } as const;
      const { maxOffset, thresholds } = measureRescale(one, [0, 4], options);
      expect(maxOffset).toBe(8);
      const [never, lagging] = thresholds;
      expect(never!.headroom.weights).toBeCloseTo(Math.log2(448) - 8, 5);
      expect(lagging!.headroom.weights).toBeCloseTo(Math.log2(448) - (12 - 1 / 16), 5);
      expect(never!.errors.largestRelative).toBeLessThan(0.1);
      // A weight of 2^(12 − 1/16) becomes 448: 88 % of it are lost, 89 % by the proven limit.
      expect(lagging!.errors.largestRelative).toBeGreaterThan(0.3);
      expect(lagging!.errors.largestRelative).toBeLessThan(0.890625 + 0.1);
      expect(lagging!.errors.largestLse).toBeLessThan(1e-4);
    },
  );
});

describe('errors of a forward', () => {
  const problem = scoreProblem('normal-1', { ...sizes, format: 'bf16' });
  const exact = attentionOracle(problem);
  const {
    quantities: {
      lse: { values: lse },
      out: { values: out },
    },
  } = exact;
  const asFloat32 = Float32Array.from(lse);

  it('counts what is not finite and measures the rest', () => {
    const broken = out.slice();
    [broken[3], broken[4]] = [NaN, Infinity];
    const measured = forwardErrors({ out: broken, lse: asFloat32 }, exact);
    expect(measured).toMatchObject({ largest: 0, rootMeanSquare: 0, notFinite: 2 });
    const off = forwardErrors({ out: out.map((x) => x + 0.5), lse: asFloat32 }, exact);
    expect(off.largest).toBeCloseTo(0.5 / Math.max(...out.map(Math.abs)), 12);
  });

  it('has none where nothing is finite', () => {
    const lost = forwardErrors({ out: out.map(() => NaN), lse: asFloat32.map(() => NaN) }, exact);
    expect(lost).toMatchObject({ largest: null, rootMeanSquare: null, meanLse: null });
    expect(lost.notFinite).toBe(out.length + lse.length);
    expect([errorRatio(null, 1), errorRatio(0, 0), errorRatio(1, 0)]).toEqual([
      null,
      null,
      Infinity,
    ]);
  });
});

describe('shares of the polynomial', () => {
  const shares = exponentialShares([1, 2, 3, 4, 5]);
  const problem = scoreProblem('normal-4', { ...sizes, format: 'bf16' });
  const settingsOf = (share: (typeof shares)[number]) => ({
    architecture: 'sm_100',
    'exp2.frequency': share.pattern.frequency,
    'exp2.reserve': share.pattern.reserve,
    'exp2.startFragment': share.pattern.startFragment,
    ...(share.degree === null ? {} : { 'exp2.degree': share.degree }),
  });

  it('are those of the lanes that the forward counts', () => {
    for (const share of shares) {
      const keys = share.avoidsLastFragment ? avoidLastFragment(problem) : problem;
      const { counters } = runForward(keys, settingsOf(share));
      const lanes = counters['polynomialLanes'] + counters['hardwareLanes'];
      // With the last fragment empty, 96 of 128 columns hold all keys.
      const expected = share.avoidsLastFragment ? (share.share * 96) / 128 : share.share;
      expect(counters['polynomialLanes'] / lanes).toBe(expected);
    }
  });

  it('are 0, then 25, 50, 75 and 100 % for each degree, then every pattern that is tuned', () => {
    expect(shares[0]).toMatchObject({ degree: null, share: 0 });
    expect(shares.slice(1, 5).map(({ share }) => share)).toEqual([0.25, 0.5, 0.75, 1]);
    const tuned = shares.slice(21);
    const enabled = exp2Tunings.filter(({ pattern }) => pattern.frequency > 0);
    expect(tuned.flatMap(({ tunings }) => tunings)).toHaveLength(enabled.length);
    const keyOf = ({ pattern }: { readonly pattern: object }): string => JSON.stringify(pattern);
    expect(tuned.map(keyOf).sort()).toEqual([...new Set(enabled.map(keyOf))].sort());
    expect(exponentialShares([3], 'd128-causal-1cta-sm_100').slice(5)).toMatchObject([
      { degree: 3, share: 0.125, tunings: ['d128-causal-1cta-sm_100'] },
    ]);
  });

  it.each([1, 95, 96, 97, 192, 193, 650])('keep clear of the last fragment: %i keys', (keys) => {
    for (const regime of ['normal-16', 'descending'] as const) {
      const whole = scoreProblem(regime, { ...sizes, keys, format: 'bf16' });
      const spread = runForward(avoidLastFragment(whole), { 'exp2.frequency': 0 });
      // A forward with blocks of 96 keys does the same, bit for bit.
      const blocks = runForward(whole, { 'exp2.frequency': 0, blockKeys: 96 });
      expect(spread.out).toEqual(blocks.out);
      expect(spread.lse).toEqual(blocks.lse);
    }
  });
});

describe('what the notes say', () => {
  it('an infinite threshold loses rows whose first block is masked, a finite one none', () => {
    const whole = scoreProblem('normal-1', { ...sizes, queries: 256, keys: 256, format: 'bf16' });
    const problem = { ...whole, causal: true };
    const lost = (threshold: number): number =>
      [...runForward(problem, { 'rescale.threshold': threshold }).lse].filter(
        (x) => !Number.isFinite(x),
      ).length;
    // The blocks of a pair of tiles are visited from key 128 on: the first 128 rows see none there.
    expect([lost(0), lost(1000), lost(Infinity)]).toEqual([0, 0, 128]);
  });

  it('the polynomial wraps around from 128 on', () => {
    expect(exp2Polynomial(127.5)).toBeGreaterThan(2 ** 127);
    expect(exp2Polynomial(128)).toBe(Infinity);
    expect(exp2Polynomial(200.5)).toBeLessThan(0);
    expect(exp2Polynomial(400.5)).toBeGreaterThan(0);
  });
});

describe('profiles of trade-offs', () => {
  const options = { ...sizes, regimes: ['normal-4', 'steps-below'], formats: ['fp16', 'bf16'] };

  inTurn('of rescale: every regime in every format, summed up, the same each time', async () => {
    const profile = await profileRescale(options);
    expect(profile.cases.map(({ format, regime }) => `${format} ${regime}`)).toEqual([
      ...['bf16 normal-4', 'bf16 steps-below', 'fp16 normal-4', 'fp16 steps-below'],
    ]);
    expect(profile.summary.join('\n')).toMatch(/e4m3 with offset 8: every threshold up to 0\.8071/);
    expect(profile.summary.join('\n')).toMatch(/fp16: values that are not finite were measured/);
    expect(await profileRescale(options)).toEqual(profile);
    const text = renderProfile(profile);
    expect(text).toContain('steps-below in fp16');
    expect(text).toMatch(/\n {2}- bf16 with offset 0: /);
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(132);
    expect(text).toMatch(/e4m3, offset 8 +safe +O -56\.25 % +O -89\.06 %/);
    expect(text).not.toMatch(/undefined|NaN %|null/);
    const document = JSON.parse(JSON.stringify(profileDocument(profile))) as typeof profile;
    expect(document.thresholds.at(-1)).toBe('Infinity');
    expect(document.cases).toHaveLength(4);
  });

  it('of shares: the unit alone is the unit of ratios, and degree 1 is worse than it', async () => {
    const profile = await profilePolynomialShare({ ...options, degrees: [1, 5] });
    for (const { shares } of profile.cases) {
      const [unit, ...others] = shares;
      expect(unit).toMatchObject({ degree: null, rootMeanSquareRatio: 1, largestLseRatio: 1 });
      const worst = (degree: number): number =>
        Math.max(
          ...others.filter((one) => one.degree === degree).map((one) => one.errors.largestLse!),
        );
      expect(worst(1)).toBeGreaterThan(100 * worst(5));
      for (const { errors, largestRatio } of others)
        expect(largestRatio).toBeCloseTo(errors.largest! / unit!.errors.largest!, 12);
    }
    const text = renderProfile(profile).replaceAll(/\s+/g, ' ');
    expect(text).toMatch(/degree 1 from 25 % on/);
    expect(text).toContain('d256-full-2cta-sm_100, d256-causal-2cta-sm_100');
    expect(text).not.toMatch(/undefined|NaN|null/);
  });

  it.each([
    [{ regimes: ['flat'] }, /no regime of scores "flat"; choose from normal-1, /],
    [{ formats: ['fp32'] }, /no format "fp32"; choose from bf16, fp16/],
    [{ keys: 0 }, /keys is 0; give a whole number from 1 to 131072/],
    [{ queries: 1.5 }, /queries is 1\.5/],
    [{ dim: 193 }, /dim is 193; give a whole number from 1 to 192/],
    [{ seed: -1 }, /seed is -1/],
    [{ dim: 9, regimes: ['steps-above'] }, /steps of the maximum need 10 dimensions, not 9/],
  ])('refuse %j', async (change, message) => {
    const made = profileRescale({ ...options, ...change });
    await expect(made).rejects.toThrow(RequestError);
    await expect(made).rejects.toThrow(message);
  });
});

describe('wrapped text', () => {
  it('keeps every word and every width', () => {
    const text = 'one two three four five six seven eight nine ten';
    for (let columns = 5; columns < 60; columns++) {
      const lines = wrapAtSpaces(text, columns);
      expect(lines.join(' ')).toBe(text);
      for (const [i, line] of lines.entries()) {
        expect(line.length).toBeLessThanOrEqual(columns);
        // No word would have fitted on the line before.
        const [word] = line.split(' ');
        if (i > 0) expect(`${lines[i - 1]} ${word}`.length).toBeGreaterThan(columns);
      }
    }
    expect(wrapAtSpaces('an unbreakable word', 6)).toEqual(['an', 'unbreakable', 'word']);
  });
});
