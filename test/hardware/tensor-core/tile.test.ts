import { describe, expect, it } from 'vitest';
import {
  createTensorCoreTile,
  decodeOperand,
  findTensorCoreArithmetic,
  fusedDotProduct,
  operandFormats,
  tensorCoreArithmetic,
  tensorCoreProduct,
} from '../../../src/hardware/index.js';
import type {
  OperandFormatName,
  TensorCoreArithmetic,
  TensorCoreTile,
} from '../../../src/hardware/index.js';
import { RequestError } from '../../../src/request-error.js';
import { exactFusedSum } from './exact-sum.js';
import { fillPatterns, spreads, wordSource, type Spread } from './random-patterns.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** How many fused sums to compare for each arithmetic, at least; a million takes minutes. */
const sets = scaled(1000);

const rows = 8;
const columns = 16;
const setsPerTile = rows * columns;

/** The arithmetics of tiles, one of each, with their pairs of operand formats. */
const arithmetics = tensorCoreArithmetic
  .filter(({ accumulator, sequence }) => accumulator === 'fp32' && sequence === 'chain')
  .filter(({ architecture }) => architecture !== 'sm_103')
  .map((arithmetic) => ({ arithmetic, pairs: pairsOf(arithmetic) }));

function pairsOf({ operands, mixed }: TensorCoreArithmetic) {
  return operands.flatMap((a) =>
    operands.flatMap((b) => (mixed || a === b ? [[a, b] as const] : [])),
  );
}

function nameOf({ instruction, architecture, operands, mixed }: TensorCoreArithmetic): string {
  return `${instruction} ${architecture} ${operands.join('/')}${mixed ? ' mixed' : ''}`;
}

function hex(patterns: ArrayLike<number>): string {
  return Array.from(patterns, (bits) => bits.toString(16)).join(' ');
}

/** Fills a tile with random operands of one fused sum each; how many took the exact path. */
function runTile(
  tile: TensorCoreTile,
  [aFormat, bFormat]: readonly [OperandFormatName, OperandFormatName],
  c: Uint32Array,
  word: () => number,
  spread: () => Spread,
): number {
  fillPatterns(aFormat, tile.a, spread(), 2 + (word() % 30), word);
  fillPatterns(bFormat, tile.b, spread(), 2 + (word() % 30), word);
  fillPatterns('fp32', c, spread(), 1 + (word() % 6), word);
  tile.packA();
  tile.packTransposedB();
  tile.cBits.set(c);
  return tile.multiplyAccumulate();
}

/** Fails unless the tile's sums are those of the definition and of integers. */
function expectExactSums(
  arithmetic: TensorCoreArithmetic,
  tile: TensorCoreTile,
  [aFormat, bFormat]: readonly [OperandFormatName, OperandFormatName],
  c: Uint32Array,
): void {
  const inner = arithmetic.productsPerSum;
  const operands = (format: OperandFormatName, patterns: ArrayLike<number>) =>
    Array.from(patterns, (bits) => decodeOperand(operandFormats[format], bits));
  const left = operands(aFormat, tile.a);
  const right = operands(bFormat, tile.b);
  for (let i = 0; i < setsPerTile; i++) {
    const [m, n] = [Math.floor(i / columns), i % columns];
    const [a, b] = [m * inner, n * inner];
    const defined = fusedDotProduct(
      arithmetic,
      left.slice(a, a + inner),
      right.slice(b, b + inner),
      c[i],
    );
    const set = {
      a: [...tile.a.subarray(a, a + inner)],
      b: [...tile.b.subarray(b, b + inner)],
      c: c[i],
    };
    const exact = exactFusedSum(arithmetic, aFormat, bFormat, set);
    if (tile.cBits[i] !== defined || exact !== defined)
      expect.fail(
        `${aFormat} ${hex(set.a)} × ${bFormat} ${hex(set.b)} + ${hex([set.c])}: tile ${hex([tile.cBits[i]])}, definition ${hex([defined])}, integers ${hex([exact])}`,
      );
  }
}

describe.each(arithmetics.map((entry) => ({ ...entry, name: nameOf(entry.arithmetic) })))(
  '$name',
  ({ arithmetic, pairs, name }) => {
    const inner = arithmetic.productsPerSum;
    const c = new Uint32Array(setsPerTile);
    const tileOf = ([aFormat, bFormat]: (typeof pairs)[number]) =>
      createTensorCoreTile(arithmetic, {
        rows,
        columns,
        inner,
        aFormat,
        bFormat,
        instructionLength: inner,
      });

    inTurn(
      'gives the bits of the definition and of integers, whatever the operands',
      () => {
        const word = wordSource(testSeed + name.length * 7919);
        const anySpread = (): Spread => spreads[word() % spreads.length];
        const tilesPerPair = Math.ceil(sets / setsPerTile / pairs.length);
        for (const pair of pairs) {
          const tile = tileOf(pair);
          for (let t = 0; t < tilesPerPair; t++) {
            runTile(tile, pair, c, word, anySpread);
            expectExactSums(arithmetic, tile, pair, c);
          }
        }
      },
      60_000 + sets,
    );

    it('gives them by either path', () => {
      const tile = tileOf(pairs[0]);
      // Operands of a fixed seed: in how many sums their spread keeps off the fast path varies.
      const exactSums = (spread: Spread): number => {
        const exact = runTile(tile, pairs[0], c, wordSource(4), () => spread);
        expectExactSums(arithmetic, tile, pairs[0], c);
        return exact;
      };
      expect(exactSums('bits')).toBeGreaterThan(0);
      expect(exactSums({ band: 4 })).toBeLessThan(setsPerTile);
    });
  },
);

describe('sums of the largest significands', () => {
  it.each(arithmetics.map((entry) => ({ ...entry, name: nameOf(entry.arithmetic) })))(
    'do not overflow, of one sign: $name',
    ({ arithmetic, pairs }) => {
      for (const [aFormat, bFormat] of pairs) {
        const inner = arithmetic.productsPerSum;
        const shape = { rows: 1, columns: 8, inner, aFormat, bFormat, instructionLength: inner };
        const tile = createTensorCoreTile(arithmetic, shape);
        // All just below 2, C included.
        const [a, b] = [aFormat, bFormat].map((name) => {
          const { exponentBias, precision, paddingBits } = operandFormats[name];
          return ((exponentBias + 1) * 2 ** (precision - 1) - 1) * 2 ** paddingBits;
        });
        for (const sign of [0, 1]) {
          const c = sign * 0x80000000 + 0x3fffffff;
          tile.a.fill(a + sign * 2 ** (operandFormats[aFormat].storageBits - 1));
          tile.b.fill(b);
          tile.cBits.fill(c);
          tile.packA();
          tile.packB();
          expect(tile.multiplyAccumulate()).toBe(0);
          const set = { a: [...tile.a], b: Array.from({ length: inner }, () => b), c };
          const expected = exactFusedSum(arithmetic, aFormat, bFormat, set);
          expect([...new Set(tile.cBits)]).toEqual([expected]);
        }
      }
    },
  );
});

describe('a tile', () => {
  const bf16 = findTensorCoreArithmetic({
    instruction: 'tcgen05.mma',
    architecture: 'sm_100',
    a: 'bf16',
  });
  const shape = { rows: 5, columns: 24, inner: 64, aFormat: 'bf16', bFormat: 'bf16' } as const;

  it('chains fused sums, and tiles, in ascending k', () => {
    const word = wordSource(11);
    const tile = createTensorCoreTile(bf16, shape);
    const c = new Uint32Array(shape.rows * shape.columns);
    fillPatterns('fp32', c, { band: 12 }, 9, word);
    tile.cBits.set(c);
    let expected: Uint32Array = c;
    for (let step = 0; step < 3; step++) {
      fillPatterns('bf16', tile.a, { band: 12 }, 9, word);
      fillPatterns('bf16', tile.b, { band: 12 }, 9, word);
      tile.packA();
      tile.packTransposedB();
      tile.multiplyAccumulate();
      const { rows: m, columns: n, inner: k, aFormat, bFormat } = shape;
      const [a, bTransposed] = [tile.a, tile.b];
      expected = tensorCoreProduct(bf16, {
        m,
        n,
        k,
        a,
        aFormat,
        bTransposed,
        bFormat,
        c: expected,
      });
      expect(tile.cBits).toEqual(expected);
    }
  });

  it('holds zeros at first, which leave C alone', () => {
    const tile = createTensorCoreTile(bf16, shape);
    fillPatterns('fp32', tile.cBits, 'all', 2 ** 32, wordSource(14));
    const before = tile.cBits.slice();
    tile.multiplyAccumulate();
    expect(tile.cBits).toEqual(before);
  });

  it('packs B in either order to the same product', () => {
    const word = wordSource(12);
    const formats = Object.keys(operandFormats) as OperandFormatName[];
    for (const format of formats) {
      const query = { instruction: 'tcgen05.mma', architecture: 'sm_100', a: format } as const;
      const tile = createTensorCoreTile(findTensorCoreArithmetic(query), {
        ...shape,
        aFormat: format,
        bFormat: format,
      });
      fillPatterns(format, tile.a, 'bits', 9, word);
      fillPatterns(format, tile.b, 'bits', 9, word);
      tile.packA();
      tile.packTransposedB();
      tile.multiplyAccumulate();
      const transposed = tile.cBits.slice();
      const { inner, columns } = shape;
      tile.b.set(tile.b.map((_, i) => tile.b[(i % columns) * inner + Math.floor(i / columns)]));
      tile.packB();
      tile.c.fill(0);
      tile.multiplyAccumulate();
      expect(tile.cBits).toEqual(transposed);
    }
  });

  it('ignores the padding of short formats', () => {
    const e2m1 = findTensorCoreArithmetic({
      instruction: 'tcgen05.mma',
      architecture: 'sm_100',
      a: 'e2m1',
    });
    const tile = createTensorCoreTile(e2m1, { ...shape, aFormat: 'e2m1', bFormat: 'e2m1' });
    const word = wordSource(13);
    fillPatterns('e2m1', tile.a, 'bits', 9, word);
    fillPatterns('e2m1', tile.b, 'bits', 9, word);
    const run = () => {
      tile.packA();
      tile.packTransposedB();
      tile.c.fill(0);
      tile.multiplyAccumulate();
      return tile.cBits.slice();
    };
    const clean = run();
    tile.a.set(tile.a.map((bits, i) => bits | ((i % 16) << 4)));
    tile.b.set(tile.b.map((bits, i) => bits | ((i % 11) << 4)));
    expect(run()).toEqual(clean);
  });

  it('adds ones on the fast path', () => {
    const tile = createTensorCoreTile(bf16, shape);
    tile.a.fill(0x3f80);
    tile.b.fill(0x3f80);
    tile.packA();
    tile.packTransposedB();
    expect(tile.multiplyAccumulate()).toBe(0);
    expect([...new Set(tile.c)]).toEqual([64]);
  });

  it('of zeros takes the fast path and gives +0', () => {
    const tile = createTensorCoreTile(bf16, shape);
    tile.a.fill(0x8000);
    tile.cBits.fill(0x80000000);
    tile.packA();
    tile.packTransposedB();
    expect(tile.multiplyAccumulate()).toBe(0);
    expect([...new Set(tile.cBits)]).toEqual([0]);
  });

  it.each([
    { ...shape, columns: 12 },
    { ...shape, columns: 0 },
    { ...shape, rows: 0 },
    { ...shape, rows: 2.5 },
    { ...shape, inner: 24 },
    { ...shape, instructionLength: 8 },
  ])('refuses %j', (impossible) => {
    expect(() => createTensorCoreTile(bf16, impossible)).toThrow(RequestError);
  });

  it('refuses what it cannot do and says who can', () => {
    const fp16 = findTensorCoreArithmetic({
      instruction: 'wgmma',
      architecture: 'sm_90',
      a: 'fp16',
      accumulator: 'fp16',
    });
    const fp8 = findTensorCoreArithmetic({
      instruction: 'mma.sync',
      architecture: 'sm_90',
      a: 'e4m3',
    });
    for (const arithmetic of [fp16, fp8])
      expect(() => createTensorCoreTile(arithmetic, shape)).toThrow(/call tensorCoreProduct/);
  });
});
