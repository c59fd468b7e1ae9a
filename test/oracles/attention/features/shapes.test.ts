import { describe, expect, it } from 'vitest';
import { attentionOracle, type AttentionReference } from '../../../../oracles/index.js';
import { readOperand } from '../../../../oracles/attention/operand.js';
import { randomValues } from '../../../../properties/problems/values.js';
import { patternsOf, formats, storageOf } from '../../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../../src/problem/index.js';
import { filledProblem, sequencesOf, tensor } from '../../../setup/problems.js';
import { testSeed } from '../../../setup/effort.js';
import { loadMpfr } from '../../mpfr.js';
import { arbitrarySolver, doubleDoubleSolver, oracleSolver, tileSolver } from '../oracle-levels.js';
import { assertWithinRadii, RadiusUse } from '../radius-check.js';
import { withReference } from '../reference-attention.js';

const mpfr = await loadMpfr();

/** Rows of each head of a tensor of rank 4. */
function pickRows({ data, format, shape, ...more }: Tensor, rows: readonly (readonly number[])[]) {
  const [batch, heads, length, dim] = shape;
  const patterns = patternsOf(data, formats[format]);
  const width = patterns.length / data.length;
  const perRow = dim * width;
  const picked = patterns.slice(0, rows.flat().length * perRow);
  let to = 0;
  rows.forEach((ofHead, head) => {
    for (const row of ofHead) {
      const from = (head * length + row) * perRow;
      picked.set(patterns.subarray(from, from + perRow), to);
      to += perRow;
    }
  });
  const count = rows[0].length;
  return {
    ...more,
    format,
    shape: [batch, heads, count, dim],
    data: storageOf(formats[format], picked),
  };
}

/** All numbers of one row of a reference. */
function rowOf({ quantities, shape, ...more }: AttentionReference, row: number) {
  const { vDim } = shape;
  const columns = (values: Float64Array) => [...values.subarray(row * vDim, (row + 1) * vDim)];
  const { out, lse } = quantities;
  return {
    out: columns(out.values),
    radius: columns(out.radius),
    magnitude: columns(out.magnitude),
    lse: lse.values[row],
    lseRadius: lse.radius[row],
    maximum: more.maximum[row],
    denominator: more.denominator[row],
    level: more.level[row],
  };
}

/** Features that have a number for each query and key. */
function denseFeatures(heads: number, queries: number, keys: number, seed: number) {
  const random = randomValues(seed);
  const pairs = heads * queries * keys;
  const truths = (share: number) => ({
    shape: [1, heads, queries, keys],
    data: new Uint8Array(pairs).map(() => (random.uniform() < share ? 1 : 0)),
  });
  return {
    mask: truths(0.7),
    dropout: { kept: truths(0.8), probability: 0.2 },
    bias: tensor('bf16', [1, heads, queries, keys], random.normal),
    alibiSlopes: tensor('fp32', [heads], () => 2 ** -random.integer(1, 8)),
    sink: { logits: tensor('bf16', [heads], random.normal), inLse: true },
  };
}

describe('head dimensions and groups of models', () => {
  it.each([
    ['MLA, 192 and 128', { heads: 2, kvHeads: 2, queries: 2, keys: 5, dim: 192, vDim: 128 }],
    [
      'MLA absorbed, 576 and 512',
      { heads: 3, kvHeads: 1, queries: 1, keys: 4, dim: 576, vDim: 512 },
    ],
    ['128 query heads a group', { heads: 128, kvHeads: 1, queries: 1, keys: 3, dim: 8, vDim: 4 }],
    ['V wider than Q', { heads: 1, kvHeads: 1, queries: 2, keys: 3, dim: 1, vDim: 9 }],
  ])('%s: within the radii at every level', (_, frame) => {
    const { heads, queries, keys } = frame;
    const problem = filledProblem(
      { ...frame, format: 'bf16' },
      randomValues(testSeed).normal,
      denseFeatures(heads, queries, keys, testSeed),
    );
    withReference(mpfr, problem, (reference) => {
      for (const solve of [oracleSolver(), tileSolver, doubleDoubleSolver, arbitrarySolver(192)])
        assertWithinRadii(problem, reference, solve, new RadiusUse());
    });
  });
});

describe('a sample of rows', () => {
  it('has the bits of the same rows among all', () => {
    const [heads, queries, keys] = [2, 150, 170];
    const random = randomValues(testSeed);
    const whole = filledProblem({ heads, queries, keys, dim: 8, vDim: 5 }, random.normal, {
      causal: true,
      ...denseFeatures(heads, queries, keys, testSeed),
    });
    const picked = [
      [0, 3, 63, 64, 127, 149],
      [1, 2, 70, 71, 128, 140],
    ];
    const sample: Problem = {
      ...whole,
      q: pickRows(whole.q, picked),
      rows: { queries: Int32Array.from(picked.flat()), of: queries },
    };
    const ofWhole = attentionOracle(whole);
    const ofSample = attentionOracle(sample);
    picked
      .flatMap((ofHead, head) => ofHead.map((row) => head * queries + row))
      .forEach((row, i) => {
        expect(rowOf(ofSample, i)).toEqual(rowOf(ofWhole, row));
      });
  });
});

describe('packed sequences', () => {
  it('are each the problem of the sequence alone', () => {
    const random = randomValues(testSeed);
    const sequences = sequencesOf([
      [70, 90],
      [0, 5],
      [3, 0],
      [1, 130],
    ]);
    const total = 74;
    const heads = 2;
    const sink = { logits: tensor('bf16', [heads], random.normal), inLse: false };
    const slopes = tensor('fp32', [sequences.length, heads], random.uniform);
    const settings = { causal: true, window: { left: 100, right: -1 }, softcap: 4 } as const;
    const whole = filledProblem(
      { heads, kvHeads: 1, queries: total, keys: 225, dim: 6, vDim: 4 },
      random.normal,
      { ...settings, sink },
    );
    const packed = { ...whole, alibiSlopes: slopes, sequences };
    const ofPacked = attentionOracle(packed);
    sequences.forEach((sequence, index) => {
      const range = (first: number, count: number) =>
        Array.from({ length: count }, (_, i) => first + i);
      const keys = [range(sequence.firstKey, sequence.keys)];
      const queries = range(sequence.firstQuery, sequence.queries);
      const alone: Problem = {
        ...whole,
        q: pickRows(packed.q, [queries, queries]),
        k: pickRows(packed.k, keys),
        v: pickRows(packed.v, keys),
        alibiSlopes: {
          ...slopes,
          shape: [heads],
          data: slopes.data.slice(index * heads, (index + 1) * heads),
        },
      };
      const ofAlone = attentionOracle(alone);
      for (let head = 0; head < heads; head++)
        queries.forEach((query, i) => {
          const a = rowOf(ofPacked, head * total + query);
          const b = rowOf(ofAlone, head * sequence.queries + i);
          a.out.forEach((x, c) =>
            expect(Math.abs(x - b.out[c])).toBeLessThanOrEqual(a.radius[c] + b.radius[c]),
          );
          if (a.lse !== b.lse)
            expect(Math.abs(a.lse - b.lse)).toBeLessThanOrEqual(a.lseRadius + b.lseRadius);
        });
    });
  });
});

describe('long heads', () => {
  const dim = 64;
  const keys = 2 ** 15 + 64;
  const near = 128;
  const fill = (i: number) => ((i * 7919) % 1009) / 1009 - 0.5;

  it('are held a tile at a time, with the same elements', () => {
    const long = tensor('bf16', [1, 1, keys, dim], fill);
    patternsOf(long.data, formats.bf16)[70 * dim + 3] = 0x7fc0;
    const operand = readOperand(long, 0, keys, dim);
    const first = readOperand(long, 0, 64, dim).tile(0);
    expect([...operand.tile(0)]).toEqual([...first]);
    expect(operand.tile(7).buffer.byteLength).toBeLessThanOrEqual(64 * dim * 8);
    for (const first of [0, 1, 511]) {
      const rows = 128;
      const short = readOperand(long, first * 64 * dim, rows, dim);
      for (const tile of [1, 0]) {
        expect([...operand.tile(first + tile)]).toEqual([...short.tile(tile)]);
        expect([...operand.tileBits(first + tile)]).toEqual([...short.tileBits(tile)]);
        expect(operand.ofTile(first + tile)).toEqual(short.ofTile(tile));
      }
    }
    expect(operand.tile(1)[6 * dim + 3]).toBe(0);
    expect(operand.raw(70, 3)).toBeNaN();
    expect(operand.raw(71, 3)).toBe(operand.tile(1)[7 * dim + 3]);
  });

  it('have the bits of short ones, at every level', () => {
    const slope = tensor('fp32', [1], () => 2 ** -8);
    const long = filledProblem({ queries: 3, keys, dim, vDim: 2, format: 'fp32' }, fill, {
      causal: true,
      window: { left: 90, right: 0 },
      alibiSlopes: slope,
    });
    // A whole number of tiles is left out.
    const last = [Array.from({ length: near }, (_, i) => keys - near + i)];
    const short = { ...long, k: pickRows(long.k, last), v: pickRows(long.v, last) };
    for (const accuracy of [
      { outputFormat: 'bf16', ulpFraction: 0, magnitudeFraction: 2 ** -40 },
      { outputFormat: 'fp64', ulpFraction: 0, magnitudeFraction: 0 },
    ] as const) {
      const [a, b] = [attentionOracle(long, { accuracy }), attentionOracle(short, { accuracy })];
      for (let row = 0; row < 3; row++) {
        // What a column's largest value adds to a radius is of all keys, seen or not.
        const { radius: ofLong, ...one } = rowOf(a, row);
        const { radius: ofShort, ...other } = rowOf(b, row);
        expect(one).toEqual(other);
        ofLong.forEach((radius, c) => expect(radius).toBeCloseTo(ofShort[c], 25));
      }
    }
  });
});
