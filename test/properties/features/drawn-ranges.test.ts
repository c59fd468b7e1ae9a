import { describe, expect, it } from 'vitest';
import { type FeatureKind } from '../../../properties/index.js';
import { drawFactors, drawFeatures } from '../../../properties/problems/features/draw-features.js';
import {
  drawBroadcastShape,
  drawCuts,
  wholeSizes,
} from '../../../properties/problems/features/feature-request.js';
import { randomValues } from '../../../properties/problems/values.js';
import { decodeTensor, formats, type FormatName } from '../../../src/formats/index.js';
import { type ProblemFeatures } from '../../../src/problem/index.js';
import { sequencesOf } from '../../setup/problems.js';
import { upTo, seeds, expectShare } from './shares.js';

const sizes = { batch: 2, kvHeads: 2, groupSize: 2, queries: 6, keys: 9, qkDim: 3, vDim: 2 };
const [batches, heads, queries, keys] = [2, 4, 6, 9];

const request = (seed: number, format: FormatName = 'bf16') => ({
  sizes,
  format: formats[format],
  tiling: { blockKeys: 4 },
  random: randomValues(seed),
  sequences: null,
});

/** What is drawn of one kind with every seed. */
function drawn<Name extends keyof ProblemFeatures>(
  kind: FeatureKind,
  name: Name,
  format?: FormatName,
) {
  return seeds.map((seed) => {
    const feature = drawFeatures([kind], request(seed, format))[name];
    if (feature === undefined) return expect.fail(`${kind} has no ${name}`);
    return feature as NonNullable<ProblemFeatures[Name]>;
  });
}

describe('drawn numbers of a feature', () => {
  it('bias: normal, of four sizes, with hidden keys or without', () => {
    const all = drawn('bias', 'bias').map((bias) => ({ bias, values: [...decodeTensor(bias)] }));
    const long = all.filter(({ values }) => values.length > 50);
    const kinds = long.map(({ values }) => {
      const hidden = values.filter((x) => x === -Infinity).length / values.length;
      const rest = values.filter((x) => x !== -Infinity);
      const size = Math.sqrt(rest.reduce((sum, x) => sum + x * x, 0) / rest.length);
      const near = [0, 1, 8, 256].find((wanted) => Math.abs(size - wanted) <= 0.3 * wanted);
      return `${near} ${hidden === 0 ? 0 : hidden < 0.45 ? 0.3 : 0.6}`;
    });
    for (const kind of ['1 0', '8 0', '256 0', '1 0.3', '0 0.6']) expectShare(kinds, kind, 0.2);
    expectShare(
      all.map(({ bias }) => bias.format),
      'bf16',
      0.5,
    );
    expect(new Set(drawn('bias', 'bias', 'fp32').map(({ format }) => format))).toEqual(
      new Set(['fp32']),
    );
    expect(new Set(drawn('bias', 'bias', 'e4m3').map(({ format }) => format))).toEqual(
      new Set(['fp32']),
    );
  });

  it('alibi: the usual slopes or any, of heads or of batches and heads', () => {
    const usual = upTo(heads).map((head) => 2 ** (-2 * (head + 1)));
    const all = drawn('alibi', 'alibiSlopes');
    expectShare(
      all.map(({ shape }) => shape),
      [heads],
      0.5,
    );
    expectShare(
      all.map(({ shape }) => shape),
      [batches, heads],
      0.5,
    );
    const isUsual = all.map((slopes) =>
      [...decodeTensor(slopes)].every((x, i) => x === usual[i % heads]),
    );
    expectShare(isUsual, true, 0.5);
    for (const slopes of all)
      for (const x of decodeTensor(slopes))
        expect(x >= 0 && x <= 1 && slopes.format === 'fp32').toBe(true);
  });

  it('sink: none, 0, near, or far above or below, in the LSE or not', () => {
    const all = drawn('sink', 'sink', 'fp32');
    const kinds = all.flatMap(({ logits }) =>
      [...decodeTensor(logits)].map((x) =>
        x === -Infinity
          ? 'none'
          : x === 0
            ? 'zero'
            : Math.abs(x) < 9
              ? 'near'
              : x >= 10 && x <= 40
                ? 'above'
                : x <= -10 && x >= -100
                  ? 'below'
                  : 'else',
      ),
    );
    for (const [kind, share] of [
      ['none', 1 / 6],
      ['zero', 1 / 6],
      ['near', 1 / 3],
      ['above', 1 / 6],
      ['below', 1 / 6],
    ] as const)
      expectShare(kinds, kind, share);
    expect(kinds).not.toContain('else');
    const far = all.flatMap(({ logits }) => [...decodeTensor(logits)]).filter(Number.isFinite);
    expect(Math.max(...far)).toBeGreaterThan(35);
    expect(Math.min(...far)).toBeLessThan(-90);
    expectShare(
      all.map(({ inLse }) => inLse),
      true,
      0.5,
    );
    expect(all.every(({ logits }) => logits.shape.join() === String(heads))).toBe(true);
  });

  it('dropout: drops with its probability, most often of the whole shape', () => {
    const all = drawn('dropout', 'dropout');
    const probabilities = [0, 0.1, 0.25, 0.5, 0.9];
    for (const probability of probabilities) {
      const own = all.filter((one) => one.probability === probability);
      expect(own.length).toBeGreaterThan(30);
      const kept = own.flatMap(({ kept: { data } }) => [...data]);
      expect(Math.abs(kept.filter((x) => x === 0).length / kept.length - probability)).toBeLessThan(
        0.03,
      );
      expect(new Set(kept).size).toBe(probability === 0 ? 1 : 2);
    }
    const whole = all.filter(
      ({ kept: { shape } }) => shape.join() === [batches, heads, queries, keys].join(),
    );
    expect(whole.length / all.length).toBeGreaterThan(0.72);
    expect(whole.length / all.length).toBeLessThan(0.9);
  });

  it('prefix: up to one key more than there are', () => {
    const all = drawn('prefix', 'prefix');
    expect(new Set(all)).toEqual(new Set(upTo(keys + 2)));
  });

  it('factors: of some tensors of 8 bits, one, by head or by blocks of rows, from 2^-4 to 2^3', () => {
    expect(drawFactors(request(1))).toEqual({});
    const all = seeds.map((seed) => drawFactors(request(seed, 'e4m3'))!);
    for (const name of ['q', 'k', 'v'] as const)
      expectShare(
        all.map((factors) => factors[name] !== undefined),
        true,
        0.75,
      );
    const ofKeys = all.flatMap(({ k }) => (k === undefined ? [] : [k.factors[0]]));
    const values = ofKeys.flatMap((factors) => [...factors.values]);
    expect(values.every((x) => x >= 2 ** -4 && x <= 8 && Math.fround(x) === x)).toBe(true);
    expect(Math.min(...values)).toBeLessThan(2 ** -3.8);
    expect(Math.max(...values)).toBeGreaterThan(2 ** 2.8);
    const blocks = ofKeys.map((factors) => factors.blocks.join());
    expectShare(blocks, '2,2,9,3', 1 / 3);
    expectShare(blocks, '1,1,9,3', 1 / 3);
    for (const rows of [1, 16, 64, 128]) expectShare(blocks, `1,1,${rows},3`, 1 / 12);
    for (const { blocks: sizesOf, shape, values: list } of ofKeys) {
      expect(shape).toEqual(
        [2, 2, keys].map((size, axis) => Math.ceil(size / sizesOf[axis])).concat(1),
      );
      expect(list).toHaveLength(shape.reduce((a, b) => a * b, 1));
    }
    const packed = seeds.map((seed) =>
      drawFactors({ ...request(seed, 'e4m3'), sequences: sequencesOf([[6, 9]]) })!,
    );
    const rows = packed.flatMap(({ k }) => (k === undefined ? [] : [k.factors[0].blocks[2]]));
    expect(new Set(rows)).toEqual(new Set([9]));
  });
});

describe('drawn shapes and cuts', () => {
  it('broadcast shapes leave out axes, later ones less often, and leading ones of 1 as often as not', () => {
    const all = seeds.map((seed) =>
      drawBroadcastShape([batches, heads, queries, keys], randomValues(seed)),
    );
    const padded = all.map((shape) => [1, 1, 1, 1, ...shape].slice(-4));
    for (const [axis, share] of [2 / 3, 2 / 3, 3 / 4, 4 / 5].entries())
      expectShare(
        padded.map((shape) => shape[axis] > 1),
        true,
        share,
      );
    for (const shape of padded)
      shape.forEach((size, axis) =>
        expect([1, [batches, heads, queries, keys][axis]]).toContain(size),
      );
    const leading = all.filter((_, i) => padded[i][0] === 1 && padded[i].some((size) => size > 1));
    expectShare(
      leading.map((shape) => shape.length === 4),
      true,
      0.5,
    );
    for (const shape of leading) if (shape.length < 4) expect(shape[0]).toBeGreaterThan(1);
  });

  it('cuts end at the end, ascend, and lie anywhere or beside tiles', () => {
    const all = seeds.map((seed) => drawCuts(40, 4, 16, randomValues(seed)));
    for (const cuts of all) {
      expect(cuts).toHaveLength(4);
      expect(cuts[3]).toBe(40);
      expect([...cuts].sort((a, b) => a - b)).toEqual(cuts);
      expect(cuts[0]).toBeGreaterThanOrEqual(0);
    }
    const besideTiles = new Set([0, 1, 15, 16, 17, 31, 32, 33, 40]);
    const isBeside = all.map((cuts) => cuts.every((cut) => besideTiles.has(cut)));
    expectShare(isBeside, true, 1 / 3);
    expect(new Set(all.flat())).toEqual(new Set(upTo(41)));
    const besides = all.filter((_, i) => isBeside[i]).flatMap((cuts) => cuts.slice(0, 3));
    expect(new Set(besides)).toEqual(besideTiles);
  });

  it('the whole is that of the batches, or of the longest packed sequences', () => {
    expect(wholeSizes(request(1))).toEqual([batches, heads, queries, keys]);
    const sequences = sequencesOf([
      [1, 5],
      [4, 2],
      [0, 0],
    ]);
    expect(wholeSizes({ ...request(1), sequences })).toEqual([3, heads, 4, 5]);
  });
});
