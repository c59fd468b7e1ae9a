import { describe, expect, it } from 'vitest';
import { mismatchingBlocks } from '../../../src/conform/index.js';
import { formats, smallestNormal, smallestSubnormal } from '../../../src/formats/index.js';
import type { NumberFormat } from '../../../src/formats/index.js';
import {
  conversions,
  convertPacked,
  convertPair,
  createConversionArray,
} from '../../../src/hardware/index.js';
import type { PairConversionName } from '../../../src/hardware/index.js';
import type { ArrayFunction } from '../../../src/simd/index.js';
import { blocksUnlikeSilicon, definitionUnlikeSilicon, hex } from '../silicon-blocks.js';
import {
  edgeCases,
  fingerprint,
  fromFp8PairNames,
  fromFp8Table,
  fromHalfPairNames,
  fromHalfTable,
  packedEdges,
  pairNames,
  wideningNames,
  wideningTable,
} from './captures.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** What the model gives otherwise than silicon, worded for the failure: of each result in order. */
function differences(model: (index: number) => number, captured: ArrayLike<number>): string[] {
  return Array.from(captured, (result, i) =>
    model(i) === result ? '' : `${hex(i)}: ${hex(model(i))}, silicon has ${hex(result)}`,
  ).filter(Boolean);
}

/**
 * The blocks of 2^20 fp32 inputs on both sides of every exponent at which a conversion to the format
 * changes its ways, and some in between: every other one positive, by TEST_SEED these or those. Zeros,
 * infinities and NaN are there with both signs.
 */
function comparedBlocks(format: NumberFormat): number[] {
  const blocksPerBinade = 8;
  const exponents = [
    Math.log2(smallestSubnormal(format)) - 1,
    Math.log2(smallestSubnormal(format)),
    Math.log2(smallestNormal(format)),
    0,
    format.maxExponent,
    format.maxExponent + 1,
  ];
  const edges = exponents
    .map((exponent) => (exponent + 127) * blocksPerBinade)
    .flatMap((block) => [block - 1, block, block + blocksPerBinade - 1]);
  const between = Array.from({ length: 8 }, (_, i) => 97 + 251 * i);
  const signBlock = 0x800;
  const ends = [0, 0x7f7, 0x7f8, 0x7ff].flatMap((block) => [block, block + signBlock]);
  const inRange = new Set(
    [...edges, ...between].filter((block) => block >= 0 && block < signBlock),
  );
  const signed = [...inRange].map((block, i) => block + ((i + testSeed) % 2) * signBlock);
  return [...new Set([...ends, ...signed])];
}

/** Whether results of the two are alike enough to be taken for one another: to one format, or fp8. */
function mayBeTaken(one: PairConversionName, other: PairConversionName): boolean {
  const [a, b] = [one, other].map((name) => formats[conversions[name].destination]);
  return a === b || (a.storageBits === 8 && b.storageBits === 8);
}

const inWebAssembly = new Map<PairConversionName, ArrayFunction>(
  pairNames.map((name) => [name, createConversionArray(name)]),
);

describe.each(pairNames)('%s on an H200', (name) => {
  const { destination, evaluate, evaluateArray } = conversions[name];
  const expected = fingerprint(name);
  const comparison = {
    definition: evaluateArray,
    webAssembly: inWebAssembly.get(name)!,
    expected,
    blocks: comparedBlocks(formats[destination]),
  };

  inTurn('is matched in WebAssembly, on whole blocks of inputs', () => {
    expect(blocksUnlikeSilicon(comparison)).toEqual([]);
  });

  inTurn('is matched on four drawn blocks, its WebAssembly at inputs of every block', () => {
    expect(definitionUnlikeSilicon(comparison, 4)).toEqual([]);
  });

  const others = pairNames.filter((other) => other !== name && mayBeTaken(name, other));
  it.each(others)('is told apart from %s', (other) => {
    // Between 1.125 and 1.25 rounding shows, at infinity saturation.
    const telling = { expected, blocks: [0x3f9, 0x7f8] };
    expect(mismatchingBlocks(inWebAssembly.get(other)!, telling)).not.toEqual([]);
  });

  if (destination === 'bf16' || destination === 'fp16')
    it('is matched by the scalar form of the instruction, on midpoints and special values', () => {
      const cases = edgeCases(name);
      expect(cases).toHaveLength(422);
      const results = cases.map(([, result]) => result);
      expect(differences((i) => evaluate(cases[i][0]), results)).toEqual([]);
    });
});

describe('both lanes on an H200, at every exponent of both signs', () => {
  const { first, second, results } = packedEdges();
  const halves = results.get('cvt.rn.f16x2.f32')!;

  it('holds different operands in the two lanes', () => {
    expect(first).toHaveLength(4096);
    expect(first.filter((bits, i) => bits === second[i])).toHaveLength(0);
  });

  inTurn.each(pairNames)('%s is matched', (name) => {
    const model = (i: number): number => convertPair(name, first[i], second[i]);
    expect(differences(model, results.get(name)!)).toEqual([]);
  });

  it.each(fromHalfPairNames)('%s is matched', (name) => {
    const model = (i: number): number => convertPacked(name, halves[i]);
    expect(differences(model, results.get(name)!)).toEqual([]);
  });
});

describe('conversions of 16-bit inputs on an H200, all 65,536 of them', () => {
  it.each(fromFp8PairNames)('%s is matched', (name) => {
    expect(differences((word) => convertPacked(name, word), fromFp8Table(name))).toEqual([]);
  });

  it.each(fromHalfPairNames)('%s is matched', (name) => {
    expect(differences((word) => convertPacked(name, word), fromHalfTable(name))).toEqual([]);
  });

  it.each(wideningNames)('%s is matched', (name) => {
    expect(differences(conversions[name].evaluate, wideningTable(name))).toEqual([]);
  });
});
