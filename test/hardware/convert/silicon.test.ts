import { describe, expect, it } from 'vitest';
import { mismatchingBlocks } from '../../../src/conform/index.js';
import { formats, smallestNormal, smallestSubnormal } from '../../../src/formats/index.js';
import type { NumberFormat } from '../../../src/formats/index.js';
import { conversions, convertPacked, convertPair } from '../../../src/hardware/index.js';
import type { PairConversionName } from '../../../src/hardware/index.js';
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

function hex(bits: number): string {
  return `0x${bits.toString(16).padStart(8, '0')}`;
}

/** What the model gives otherwise than silicon, worded for the failure: of each result in order. */
function differences(model: (index: number) => number, captured: ArrayLike<number>): string[] {
  return Array.from(captured, (result, i) =>
    model(i) === result ? '' : `${hex(i)}: ${hex(model(i))}, silicon has ${hex(result)}`,
  ).filter(Boolean);
}

/**
 * The blocks of 2^20 fp32 inputs on both sides of every exponent at which a conversion to the format
 * changes its ways, of both signs, and some in between.
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
  const positive = [0, 0x7f7, 0x7f8, 0x7ff, ...edges, ...between];
  const inRange = positive.filter((block) => block >= 0 && block < 0x800);
  return [...new Set(inRange.flatMap((block) => [block, block + 0x800]))];
}

/** Whether results of the two are alike enough to be taken for one another: to one format, or fp8. */
function mayBeTaken(one: PairConversionName, other: PairConversionName): boolean {
  const [a, b] = [one, other].map((name) => formats[conversions[name].destination]);
  return a === b || (a.storageBits === 8 && b.storageBits === 8);
}

describe.each(pairNames)('%s on an H200', (name) => {
  const { destination, evaluate, evaluateArray } = conversions[name];
  const expected = fingerprint(name);

  it('is matched on whole blocks of inputs', () => {
    const blocks = comparedBlocks(formats[destination]);
    expect(mismatchingBlocks(evaluateArray, { expected, blocks }).map(hex)).toEqual([]);
  });

  const others = pairNames.filter((other) => other !== name && mayBeTaken(name, other));
  it.each(others)('is told apart from %s', (other) => {
    // Between 1.125 and 1.25 rounding shows, at infinity saturation.
    const comparison = { expected, blocks: [0x3f9, 0x7f8] };
    expect(mismatchingBlocks(conversions[other].evaluateArray, comparison)).not.toEqual([]);
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

  it.each(pairNames)('%s is matched', (name) => {
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
