import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { polynomialShare, type Fa4Configuration } from '../../kernels/index.js';
import type { PolynomialDegree } from '../../kernels/online-softmax/exp2-polynomial.js';
import { fa4Formats, type Fa4Format } from '../../kernels/fa4/configuration.js';
import { createPlainForwardTile } from '../../kernels/online-softmax/plain/plain-tile.js';
import { fa4Recipe, type TileSetting } from '../../kernels/fa4/recipe.js';
import { recipeSteps } from '../../kernels/online-softmax/steps.js';
import {
  addCounts,
  createSoftmaxRegisters,
  createWebAssemblyRows,
  type FragmentRegisters,
  type RowArithmetic,
} from '../../kernels/fa4/program/rows/index.js';
import { createInstructionRows } from './fa4/program/rows/instruction-rows.js';
import { encode, formats } from '../../src/formats/index.js';
import type { InstructionCounts } from '../../src/machine/index.js';
import { RequestError } from '../../src/request-error.js';
import { wordSource } from '../hardware/tensor-core/random-patterns.js';
import { scaled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const { fp32 } = formats;
const warpRows = 32;
const qkDim = 16;
const minusInfinity = encode(fp32, -Infinity);

/** One block as it comes from the tensor core, and what P·V makes of O after it. */
interface Block {
  /** [32][columns] fp32 bits. */
  readonly scores: Uint32Array;
  /** Begin and end of each row; null: not masked. */
  readonly begin: Int32Array | null;
  readonly end: Int32Array | null;
  /** [32][vDim] fp32 bits. */
  readonly output: Uint32Array;
}

/** Everything that a warp computes in a tile, numbers as bits. */
interface Results {
  readonly blocks: readonly {
    readonly weights: readonly number[];
    readonly alphas: readonly number[];
    readonly maxima: readonly number[];
    readonly sums: readonly number[];
    readonly rescales: boolean;
    /** What P·V is added to. */
    readonly rescaled: readonly number[];
  }[];
  readonly out: readonly number[];
  readonly lse: readonly number[];
}

const numberBits = (numbers: readonly number[]): number[] => numbers.map((x) => encode(fp32, x));

/** The definition, the plain tile, with scores and sums of P·V laid before it. */
function byDefinition(setting: TileSetting, vDim: number, blocks: readonly Block[]): Results {
  const { blockKeys } = setting.configuration;
  const recipe = fa4Recipe(setting, 1);
  const steps = recipeSteps(recipe);
  const is8Bit = fa4Formats[setting.format].bits === 8;
  const patterns = (length: number) => (is8Bit ? new Uint8Array(length) : new Uint16Array(length));
  let products = 0;
  let [alphas, maxima, sums]: number[][] = [[], [], []];
  const done: Results['blocks'][number][] = [];
  const tile = createPlainForwardTile(
    recipe,
    { qkDim, vDim },
    {
      steps: {
        // As numbers the zeros are equal; PTX's max takes +0 to be above −0.
        larger: (maximum, score) =>
          score === 0 && maximum === 0 ? Math.max(maximum, score) : steps.larger(maximum, score),
        rowMaximum: (...before) => {
          const result = steps.rowMaximum(...before);
          alphas.push(result.alpha);
          maxima.push(result.stored);
          return result;
        },
        rowSum: (...terms) => {
          const sum = steps.rowSum(...terms);
          sums.push(sum);
          return sum;
        },
      },
      product: (_, { a, c }) => {
        const block = blocks[products >> 1];
        if (products++ % 2 === 0) return block.scores;
        done.push({
          weights: Array.from(a),
          alphas: numberBits(alphas),
          maxima: numberBits(maxima),
          sums: numberBits(sums),
          rescales: done.length > 0 && steps.rescalesWarp(alphas),
          rescaled: Array.from(c),
        });
        [alphas, maxima, sums] = [[], [], []];
        return block.output.slice();
      },
    },
  );
  tile.begin(patterns(warpRows * qkDim), warpRows, -Infinity);
  for (const { begin, end } of blocks)
    tile.block(
      {
        first: 0,
        keys: blockKeys,
        interrupted: [],
        addend: null,
        visible: Array.from({ length: warpRows }, (_, row) => ({
          begin: Math.min(Math.max(begin?.[row] ?? 0, 0), blockKeys),
          end: Math.min(Math.max(end?.[row] ?? blockKeys, 0), blockKeys),
        })),
      },
      patterns(blockKeys * qkDim),
      patterns(blockKeys * vDim),
    );
  const { out, lse } = tile.finish();
  return { blocks: done, out: [...out], lse: [...new Uint32Array(lse.buffer)] };
}

/** `registers` of each lane from rows [32][n] to parts [part][32][registers], or back. */
function regroup(
  words: Uint32Array,
  registers: number,
  isToRows: boolean,
): Uint32Array<ArrayBuffer> {
  const columns = words.length / warpRows;
  const result = new Uint32Array(words.length);
  for (let row = 0; row < warpRows; row++)
    for (let j = 0; j < columns; j++) {
      const inRow = row * columns + j;
      const inParts =
        Math.floor(j / registers) * warpRows * registers + row * registers + (j % registers);
      if (isToRows) result[inRow] = words[inParts];
      else result[inParts] = words[inRow];
    }
  return result;
}

/** The same on the registers of a warp, O in pieces of `piece` columns. */
function onRegisters(
  rows: RowArithmetic,
  { configuration, format }: TileSetting,
  vDim: number,
  blocks: readonly Block[],
  { scores: scoreRegisters, weights: weightRegisters }: FragmentRegisters,
  piece: number,
): Results & { readonly issues: readonly InstructionCounts[] } {
  const registers = createSoftmaxRegisters(configuration, format);
  const issues: InstructionCounts[] = [];
  const is8Bit = fa4Formats[format].bits === 8;
  let out = new Uint32Array(warpRows * vDim);
  const pieces = <Word>(act: (columns: Uint32Array<ArrayBuffer>, first: number) => Word): Word[] =>
    Array.from({ length: vDim / piece }, (_, i) => {
      const columns = new Uint32Array(warpRows * piece);
      for (let row = 0; row < warpRows; row++)
        columns.set(out.subarray(row * vDim + i * piece).subarray(0, piece), row * piece);
      return act(columns, i * piece);
    });
  const done = blocks.map(({ scores, begin, end, output }, index) => {
    registers.scores.set(regroup(scores, scoreRegisters, false));
    const { maximum, weights, rowSum } = rows.softmax(
      registers,
      end === null ? null : { begin, end },
      index === 0,
    );
    const { ballot, issues: vote } = rows.needsRescale(registers.alphas);
    const rescales = index > 0 && ballot !== 0;
    issues.push(maximum, weights, rowSum, vote);
    if (rescales) {
      const rescaled = new Uint32Array(out.length);
      pieces((columns, first) => {
        issues.push(rows.rescale(columns, registers.alphas));
        for (let row = 0; row < warpRows; row++)
          rescaled.set(columns.subarray(row * piece, (row + 1) * piece), row * vDim + first);
      });
      out = rescaled;
    }
    const words = regroup(registers.weights, weightRegisters, true);
    const result = {
      weights: [...(is8Bit ? new Uint8Array(words.buffer) : new Uint16Array(words.buffer))],
      alphas: [...registers.alphas],
      maxima: [...registers.maxima],
      sums: [...registers.sums],
      rescales,
      rescaled: [...out],
    };
    out = output.slice();
    return result;
  });
  const { factors, issues: factorIssues } = rows.normalisers(registers.sums);
  const { lse, issues: lseIssues } = rows.logSumExp(registers.maxima, registers.sums);
  issues.push(factorIssues, lseIssues);
  const normalised = new Uint16Array(warpRows * vDim);
  pieces((columns, first) => {
    const words = new Uint32Array(columns.length / 2);
    issues.push(rows.normalise(columns, factors, words));
    const halves = new Uint16Array(words.buffer);
    for (let row = 0; row < warpRows; row++)
      normalised.set(halves.subarray(row * piece, (row + 1) * piece), row * vDim + first);
  });
  return { blocks: done, out: [...normalised], lse: [...lse], issues };
}

/** Kinds of scores; `level` drifts from block to block. */
const scoreKinds: readonly ((next: () => number, level: number) => number)[] = [
  // Ordinary, with maxima that grow across the threshold, and that fall.
  (next, level) => encode(fp32, Math.fround((next() / 2 ** 32 - 0.5) * 30 + level)),
  (next, level) => encode(fp32, Math.fround((next() / 2 ** 32 - 0.5) * 3 - level)),
  (next) => next(),
  () => minusInfinity,
  () => fp32.canonicalNan as number,
  (next) => (next() % 3 === 0 ? 0xffc00001 : encode(fp32, next() % 7)),
  (next) => encode(fp32, (next() % 2 === 0 ? 1 : -1) * 3e38),
  (next) => next() & 0x803fffff,
  (next) => next() & 0x80000000,
  // −0 alone at first, which stays in use when +0 comes, or not.
  (next, level) => (level === 0 ? 0x80000000 : next() & 0x80000000),
  (next) => [minusInfinity, encode(fp32, Infinity), encode(fp32, -1), 0][next() % 4],
  (_, level) => encode(fp32, level),
  (next) => encode(fp32, -(2 ** (next() % 128))),
];

function drawBlock(
  next: () => number,
  { blockKeys }: Fa4Configuration,
  vDim: number,
  index: number,
): Block {
  const scores = new Uint32Array(warpRows * blockKeys);
  const kinds = Array.from({ length: warpRows }, (_, row) =>
    // Most rows keep their kind, others change it.
    next() % 4 === 0 ? next() % scoreKinds.length : row % scoreKinds.length,
  );
  for (let i = 0; i < scores.length; i++)
    scores[i] = scoreKinds[kinds[Math.floor(i / blockKeys)]](next, 4 * index) >>> 0;
  const limits = (): Int32Array =>
    Int32Array.from({ length: warpRows }, () => (next() % (blockKeys + 80)) - 40);
  const mask = next() % 3;
  const output = Uint32Array.from({ length: warpRows * vDim }, () => {
    const bits = next();
    return bits % 4 === 0 ? bits : encode(fp32, Math.fround(bits / 2 ** 30 - 2));
  });
  return {
    scores,
    output,
    begin: mask === 2 ? limits() : null,
    end: mask === 0 ? null : limits(),
  };
}

const degrees = [1, 2, 3, 4, 5] as const satisfies readonly PolynomialDegree[];

const settings: fc.Arbitrary<TileSetting> = fc.record({
  format: fc.constantFrom(...(Object.keys(fa4Formats) as Fa4Format[])),
  scale: fc
    .oneof(
      fc.constantFrom(0.125 * Math.LOG2E, 1, 2 ** -20, 3e30),
      fc.float({ min: Math.fround(1e-3), max: 100, noNaN: true }),
    )
    .map(Math.fround),
  configuration: fc.record({
    architecture: fc.constant('sm_100' as const),
    exp2: fc.record({
      frequency: fc.constantFrom(0, 2, 8, 10, 14, 16, 32),
      reserve: fc.integer({ min: 0, max: 8 }),
      startFragment: fc.integer({ min: 0, max: 4 }),
      degree: fc.constantFrom(...degrees),
    }),
    rescaleThreshold: fc.constantFrom(0, 8, Infinity, 1e-30),
    maxOffset: fc.constantFrom(0, 8, -3.5),
    lseFused: fc.boolean(),
    blockKeys: fc.constantFrom(32, 64, 96, 128, 160, 256),
    outFormat: fc.constantFrom('bf16' as const, 'fp16' as const),
    descale: fc.record({
      q: fc.constant(1),
      k: fc.constant(1),
      v: fc.constantFrom(1, Math.fround(0.37), 2 ** 100),
    }),
    packGqa: fc.constant(false),
    splits: fc.constant(1),
  }),
});

const tiles = fc
  .record({
    setting: settings,
    vDim: fc.constantFrom(64, 128, 192),
    seed: fc.integer(),
    blocks: fc.integer({ min: 1, max: 3 }),
    piece: fc.constantFrom(2, 16, 64),
    scoreParts: fc.constantFrom(1, 2, 4),
    weightParts: fc.constantFrom(1, 2, 4),
  })
  .map(({ setting, vDim, seed, blocks, piece, scoreParts, weightParts }) => {
    const next = wordSource(seed);
    const { blockKeys } = setting.configuration;
    const words = (blockKeys * fa4Formats[setting.format].bits) / 32;
    return {
      setting,
      vDim,
      piece,
      blocks: Array.from({ length: blocks }, (_, i) =>
        drawBlock(next, setting.configuration, vDim, i),
      ),
      parts: { scores: blockKeys / scoreParts, weights: words / weightParts },
      toString: () =>
        JSON.stringify({ setting, vDim, seed, blocks, piece, scoreParts, weightParts }),
    };
  });

const runs = scaled(5);

/** toEqual, which takes long over the registers of many rows, where they are not deeply equal. */
function expectSame(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toEqual(expected);
}

describe('rows on the registers of a warp', () => {
  inTurn('equal the definition of the forward, with what they issue', () => {
    fc.assert(
      fc.property(tiles, ({ setting, vDim, blocks, piece, parts }) => {
        const run = (create: typeof createWebAssemblyRows) =>
          onRegisters(create(setting, parts), setting, vDim, blocks, parts, piece);
        const { issues, ...results } = run(createWebAssemblyRows);
        expectSame(results, byDefinition(setting, vDim, blocks));
        const { issues: issued, ...byInstruction } = run(createInstructionRows);
        expectSame(byInstruction, results);
        expect(issues).toEqual(issued);
      }),
      { numRuns: runs },
    );
  });

  it('compute every column of a block once, on the unit that the pattern says', () => {
    fc.assert(
      fc.property(settings, fc.boolean(), (setting, isFirst) => {
        const { blockKeys, exp2 } = setting.configuration;
        const registers = createSoftmaxRegisters(setting.configuration, setting.format);
        const { maximum, weights, rowSum } = createWebAssemblyRows(setting).softmax(
          registers,
          null,
          isFirst,
        );
        const polynomials = 2 * (weights['add.rm.ftz.f32x2'] ?? 0);
        expect(polynomials).toBe(blockKeys * polynomialShare(exp2, blockKeys / 32));
        expect((weights['ex2.approx.ftz.f32'] ?? 0) + polynomials).toBe(blockKeys);
        expect(weights[fa4Formats[setting.format].weightConversion]).toBe(blockKeys / 2);
        // A sum of n numbers takes n − 1 additions; one more of l·α and one of 0 after the first block.
        const additions = 2 * rowSum['add.rn.f32x2'] + rowSum['add.rn.f32'];
        expect(additions).toBe(blockKeys - 1 + (isFirst ? 0 : 2));
        // Three operands at a time: a maximum of n numbers takes n/2 instructions and those of a tree.
        expect(maximum['max.f32']).toBe(blockKeys / 2 + 2);
        const total = addCounts(maximum, weights, rowSum);
        expect(Object.values(total).reduce((sum, count) => sum + count)).toBe(
          [maximum, weights, rowSum]
            .flatMap((counts) => Object.values(counts))
            .reduce((sum, count) => sum + count),
        );
      }),
      { numRuns: runs },
    );
  });

  it('hold nothing between calls, so that one instance serves many warps', () => {
    fc.assert(
      fc.property(tiles, fc.integer(), fc.boolean(), (tile, seed, byInstruction) => {
        const { setting, vDim } = tile;
        const create = byInstruction ? createInstructionRows : createWebAssemblyRows;
        const { configuration, format } = setting;
        const shared = create(setting);
        const next = wordSource(seed);
        const warps = [
          tile.blocks,
          tile.blocks.map((_, i) => drawBlock(next, configuration, vDim, i)),
        ];
        const states = warps.map(() => createSoftmaxRegisters(configuration, format));
        const alone = warps.map(() => createSoftmaxRegisters(configuration, format));
        const step = (
          rows: RowArithmetic,
          state: (typeof states)[number],
          block: Block,
          i: number,
        ) => {
          state.scores.set(block.scores);
          rows.softmax(
            state,
            block.end === null ? null : { begin: block.begin, end: block.end },
            i === 0,
          );
        };
        tile.blocks.forEach((_, i) =>
          warps.forEach((blocks, warp) => step(shared, states[warp], blocks[i], i)),
        );
        warps.forEach((blocks, warp) => {
          const own = create(setting);
          blocks.forEach((block, i) => step(own, alone[warp], block, i));
        });
        expectSame(states, alone);
      }),
      { numRuns: Math.ceil(runs / 5) },
    );
  });

  const setting: TileSetting = {
    format: 'bf16',
    scale: 1,
    configuration: {
      architecture: 'sm_100',
      rescaleThreshold: 8,
      maxOffset: 0,
      lseFused: false,
      splits: 1,
      exp2: { frequency: 16, reserve: 4, startFragment: 1, degree: 3 },
      blockKeys: 128,
      outFormat: 'bf16',
      descale: { q: 1, k: 1, v: 1 },
      packGqa: false,
    },
  };

  describe.each([
    ['by WebAssembly', createWebAssemblyRows],
    ['by instruction', createInstructionRows],
  ])('%s', (_, create) => {
    const rows = create(setting);
    const registers = createSoftmaxRegisters(setting.configuration, setting.format);
    const words = (length: number) => new Uint32Array(length);

    it('refuse parts that do not make up a row', () => {
      expect(() => create(setting, { scores: 48 })).toThrow(
        new RequestError('48 registers of scores in a part; a row has 128: give a divisor of it'),
      );
      expect(() => create(setting, { weights: 0 })).toThrow(RequestError);
    });

    it.each([
      [
        'scores of another block',
        () => rows.softmax({ ...registers, scores: words(32 * 64) }, null, true),
        '2048 registers of scores for a warp; give 4096, 128 for each lane',
      ],
      [
        'limits of fewer rows',
        () => rows.softmax(registers, { begin: null, end: new Int32Array(16) }, true),
        '16 registers of visible.end for a warp; give 32, 1 for each lane',
      ],
      [
        'half a pair of columns',
        () => rows.rescale(words(32 * 15), words(32)),
        '480 registers of out for a warp; give 32 lanes an even number each',
      ],
      [
        'too little room for the output',
        () => rows.normalise(words(32 * 16), words(32), words(32 * 4)),
        '128 registers of words for a warp; give 256, 8 for each lane',
      ],
      [
        'sums of fewer rows',
        () => rows.logSumExp(words(32), words(31)),
        '31 registers of sums for a warp; give 32, 1 for each lane',
      ],
    ])('refuse %s', (_what, act, message) => {
      expect(act).toThrow(new RequestError(message));
    });
  });
});
