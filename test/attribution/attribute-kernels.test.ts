import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import {
  attributeError,
  attributeLag,
  attributeTiles,
  type RowErrors,
  type TileErrors,
} from '../../src/attribution/index.js';
import { renderAttribution, renderShares } from '../../src/report/text/attribution/index.js';
import { emulate } from '../../src/emulate/index.js';
import { decodeToFloat64, encodeFromFloat64, formats } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { rescaleProblem } from '../kernels/fa4/rescale-regimes.js';
import { kernelOf } from './attributed-runs.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

/** Two heads, whose rows are cut into tiles, one row without keys in each. */
function tiledProblem(): Problem {
  const flat = rescaleProblem('large', 2 * 141, 2 * 140, 16, 4);
  const heads = ({ shape, ...rest }: Problem['q'], rows: number) => ({
    ...rest,
    shape: [2, rows, shape.at(-1)!],
  });
  return {
    ...flat,
    q: heads(flat.q, 141),
    k: heads(flat.k, 140),
    v: heads(flat.v, 140),
    causal: true,
  };
}

const problem = tiledProblem();
const reference = attentionOracle(problem);
const kernels = [
  { kernel: 'fa4', settings: new Map([['exp2.frequency', '10']]) },
  { kernel: 'naive-input', settings: new Map<string, string>() },
  { kernel: 'naive-fp32', settings: new Map<string, string>() },
];

describe.each(kernels)('the attribution of $kernel', ({ kernel, settings }) => {
  const tiles: TileErrors[] = [];
  const onTile = (tile: TileErrors): number => tiles.push(tile);
  const attribution = attributeError(problem, { kernel, settings, reference, onTile });
  const partOf = (name: string) =>
    attribution.techniques.find(({ technique }) => technique === name);

  it("has the model's own errors of outputs and LSEs as the whole", async () => {
    const { out, lse } = await emulate(problem, kernel, { settings });
    const values = decodeToFloat64(out.data, formats[out.format]);
    const largest = values.reduce(
      (max, x, i) => Math.max(max, Math.abs(x - reference.quantities.out.values[i])),
      0,
    );
    expect(attribution.total.absolute.max).toBe(largest);
    expect(attribution.kernel).toBe(kernel);
    const errors = [...(lse.data as Float32Array)].flatMap((x, row) =>
      x === -Infinity ? [] : [x - reference.quantities.lse.values[row]],
    );
    expect(errors).toHaveLength(2 * 140);
    const { total, exact } = attribution.lse;
    expect(total).toMatchObject({ rows: 280, nonFinite: 0 });
    expect(total.max).toBe(Math.max(...errors.map(Math.abs)));
    expect(total.mean).toBeCloseTo(errors.reduce((a, b) => a + b) / 280, 15);
    expect(total.rms).toBeCloseTo(Math.hypot(...errors) / Math.sqrt(280), 15);
    expect(exact.max).toBeLessThan(1e-12);
    expect(attribution.exact.relative.max).toBeLessThan(1e-13);
  });

  it('has every technique of the kernel, in order, whose shares sum to the whole', () => {
    const { techniques } = kernelOf(problem, {
      model: kernel,
      settings: Object.fromEntries(settings),
    });
    expect(attribution.techniques.map(({ technique }) => technique)).toEqual(techniques);
    for (const error of ['whole', 'beforeRounding'] as const) {
      const sum = (name: 'share' | 'shareAlone'): number =>
        attribution.techniques.reduce((total, part) => total + (part[error]?.[name] ?? 0), 0);
      expect(sum('share')).toBeCloseTo(1, 9);
      expect(sum('shareAlone') + attribution.interaction[error]).toBeCloseTo(1, 12);
    }
  });

  it('gives the LSE no error by what comes after it, and one by all before', () => {
    const { exact } = attribution.lse;
    for (const { technique, lse } of attribution.techniques) {
      if (['p-round', 'pv-accumulate', 'output-round'].includes(technique))
        expect(lse).toEqual(exact);
      else if (technique !== 'rescale') expect(lse.max).toBeGreaterThan(10 * exact.max);
    }
  });

  inTurn('hands out the errors of all rows once, as attributeTiles does', () => {
    const again: TileErrors[] = [];
    attributeTiles(problem, { kernel, settings, reference }, (tile) => again.push(tile));
    expect(again).toEqual(tiles);
    expect(tiles.length).toBeGreaterThan(2);
    let row = 0;
    for (const tile of tiles) {
      expect(tile.firstRow).toBe(row);
      row += tile.rows;
    }
    expect(row).toBe(282);
    const largest = (of: (tile: TileErrors) => RowErrors, what: 'out' | 'lse'): number =>
      tiles.reduce(
        (max, tile) => of(tile)[what].reduce((a, x) => Math.max(a, Math.abs(x)), max),
        0,
      );
    expect(largest(({ all }) => all, 'out')).toBe(attribution.total.absolute.max);
    expect(largest(({ all }) => all, 'lse')).toBe(attribution.lse.total.max);
    expect(largest(({ none }) => none, 'out')).toBe(attribution.exact.absolute.max);
    for (const { technique, alone, lse } of attribution.techniques) {
      expect(largest((tile) => tile.alone[technique], 'out')).toBe(alone.absolute.max);
      expect(largest((tile) => tile.alone[technique], 'lse')).toBe(lse.max);
    }
  });

  it('is rendered with its settings and the errors of its LSEs', () => {
    const text = renderAttribution(attribution);
    expect(text.split('\n')[0]).toContain(`${kernel} to bf16`);
    for (const [key, value] of Object.entries(attribution.settings))
      expect(text).toContain(`${key}=${value}`);
    const lines = text.split('\n');
    const column = lines.find((line) => line.includes('LSE max'))!.indexOf('LSE max');
    for (const { technique, lse } of attribution.techniques) {
      const line = lines.find((one) => one.startsWith(`  ${technique} `))!;
      const cell = line.slice(column, column + 'LSE max'.length).trim();
      expect(Number(cell)).toBeCloseTo(lse.max, 1 - Math.floor(Math.log10(lse.max)));
    }
    expect(text).not.toMatch(/NaN|undefined|Infinity/);
    expect(JSON.parse(JSON.stringify(attribution))).toEqual(attribution);
    expect(text.includes('largest weight')).toBe(partOf('p-round') !== undefined);
    expect(/maximum lags|No maximum/.test(text)).toBe(attribution.lag !== null);
    expect(attribution.lag !== null).toBe(kernel === 'fa4');
  });

  it('splits the rounding of weights where the kernel rounds them', () => {
    const whole = partOf('p-round')?.alone;
    expect(attribution.weightRounding === null).toBe(whole === undefined);
    if (attribution.weightRounding === null) return;
    const { largestWeight, otherWeights } = attribution.weightRounding;
    expect(largestWeight.absolute.mean + otherWeights.absolute.mean).toBeCloseTo(
      whole!.absolute.mean,
      12,
    );
    expect(otherWeights.relative.rms).toBeLessThan(whole!.relative.rms);
  });
});

describe('settings', () => {
  inTurn('choose as the configuration does', () => {
    const settings = new Map([
      ['rescale.threshold', '0'],
      ['lse.fused', 'true'],
    ]);
    const bySettings = attributeError(problem, { kernel: 'fa4', settings, reference });
    const configuration = { rescaleThreshold: 0, lseFused: true };
    expect(attributeError(problem, { configuration, reference })).toEqual(bySettings);
    const lag = attributeLag(problem, { settings: new Map([['lse.fused', 'true']]), reference });
    expect(lag.alwaysRescaled).toEqual(bySettings);
    expect(lag.lagging.settings['rescale.threshold']).toBe(8);
  });

  it('that no kernel has are refused', () => {
    const attribute = (options: Parameters<typeof attributeError>[1]) => () =>
      attributeError(problem, { reference, ...options });
    expect(attribute({ kernel: 'fa5' })).toThrow(/no kernel model "fa5"/);
    expect(attribute({ kernel: 'naive-fp32', settings: new Map([['x', '1']]) })).toThrow(
      /no setting "x"/,
    );
    for (const options of [
      { kernel: 'naive-fp32', configuration: {} },
      { settings: new Map<string, string>(), configuration: {} },
    ])
      expect(attribute(options)).toThrow(RequestError);
    expect(() => attributeLag(problem, { kernel: 'naive-fp32', reference })).toThrow(
      /maximum of naive-fp32 cannot lag/,
    );
  });
});

describe('what is not finite', () => {
  it('is NaN among the errors of a tile, and counted', () => {
    const data = (problem.v.data as Uint16Array).slice();
    data[3] = 0x7f80;
    const special = { ...problem, v: { ...problem.v, data } };
    let [nan, rows] = [0, 0];
    const onTile = ({ all }: TileErrors): void => {
      nan += all.out.filter(Number.isNaN).length;
      rows += all.lse.filter(Number.isNaN).length;
    };
    const { total, lse } = attributeError(special, { kernel: 'naive-fp32', onTile });
    expect(total.nonFinite).toBe(140);
    expect({ nan, rows }).toEqual({ nan: 140, rows: 0 });
    expect(lse.total.nonFinite).toBe(0);
  });

  it('is counted among LSEs too', () => {
    // Scores of 2^130, which fp32 does not hold.
    const large = encodeFromFloat64(formats.bf16, new Float64Array(16).fill(2 ** 65));
    const tensor = { format: 'bf16' as const, shape: [1, 1, 16], data: large };
    const overflowing: Problem = {
      q: tensor,
      k: tensor,
      v: tensor,
      scale: 1,
      causal: false,
      window: null,
      softcap: null,
    };
    const { lse } = attributeError(overflowing, { kernel: 'naive-fp32' });
    expect(lse.total).toMatchObject({ rows: 0, nonFinite: 1, max: 0 });
    expect(lse.exact).toMatchObject({ rows: 1, nonFinite: 0 });
  });
});

describe('several kernels', () => {
  inTurn('are rendered side by side, without the techniques that one does not have', () => {
    const attributions = ['naive-fp32', 'naive-input'].map(
      (kernel) => [kernel, attributeError(problem, { kernel, reference })] as const,
    );
    const text = renderShares(attributions, { error: 'whole', share: 'share' });
    const [heads, first, second] = text.split('\n');
    const at = heads.indexOf('p-round');
    expect(first.slice(at, at + 'p-round'.length).trim()).toBe('');
    expect(second.slice(at, at + 'p-round'.length).trim()).toMatch(/^-?\d+\.\d$/);
  });
});

describe('the polynomial', () => {
  it('shifts the LSE of a row with few keys by its error near zero, which the unit does not', () => {
    // One key: x is 0 or a tiny negative number, where the polynomial of degree 3 gives 0.99991.
    const single = { ...rescaleProblem('large', 64, 64, 32, 2), window: { left: 0, right: 0 } };
    const settings = new Map([
      ['exp2.frequency', '16'],
      ['exp2.startFragment', '0'],
    ]);
    const { techniques, lse } = attributeError(single, { settings });
    const unit = techniques.find(({ technique }) => technique === 'exp2-hardware')!;
    expect(unit.lse.max).toBeLessThan(1e-6);
    expect(lse.total.max).toBeGreaterThan(8e-5);
    expect(lse.total.max).toBeLessThan(1e-4);
  });
});
