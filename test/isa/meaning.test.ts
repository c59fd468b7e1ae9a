import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { laneRows, type LaneValue, type RegisterWidth, type Variant } from '../../src/isa/index.js';
import { addressRows } from '../../src/ptx/instructions/lane.js';
import { scaled, testSeed } from '../setup/effort.js';
import { wordSource } from '../hardware/tensor-core/random-patterns.js';

const variants = [...laneRows, ...addressRows].flatMap((row) => row.variants());
const ofMeaning = (meaning: string) => variants.filter((variant) => variant.meaning === meaning);

const bitsOf = (width: RegisterWidth): number => (width === 'pred' ? 1 : width);

function valueOf(width: RegisterWidth, bits: bigint): LaneValue {
  const value = BigInt.asUintN(bitsOf(width), bits);
  return bitsOf(width) > 32 ? value : Number(value);
}

function drawn({ sources }: Variant, next: () => number): LaneValue[] {
  return sources.map((width) =>
    valueOf(
      width,
      Array.from({ length: 4 }, next).reduce((all, word) => (all << 32n) | BigInt(word >>> 0), 0n),
    ),
  );
}

function resultsOf(variant: Variant, sources: readonly LaneValue[]): readonly LaneValue[] {
  const result = variant.evaluate(...sources);
  return Array.isArray(result) ? (result as readonly LaneValue[]) : [result as LaneValue];
}

/** A register's bytes with other names; a predicate has no bytes, and keeps its value. */
function renamed(width: RegisterWidth, value: LaneValue, names: Uint8Array): LaneValue {
  if (width === 'pred') return value;
  let bits = 0n;
  for (let byte = BigInt(width) - 8n; byte >= 0n; byte -= 8n)
    bits = (bits << 8n) | BigInt(names[Number((BigInt(value) >> byte) & 0xffn)]);
  return valueOf(width, bits);
}

/** Names of bytes that keep the first bit, and 0 and 255, by which numbers are extended. */
function renaming(next: () => number): Uint8Array {
  const names = Uint8Array.from({ length: 256 }, (_, i) => i);
  for (const first of [1, 128])
    for (let i = first + 126; i > first; i--) {
      const other = first + (next() % (i - first + 1));
      [names[i], names[other]] = [names[other], names[i]];
    }
  return names;
}

/** The bits of the elements of packed types, and of other types. */
function elementBits({ name, destinations: [width] }: Variant): number {
  if (name.endsWith('16x2')) return 16;
  return name.endsWith('32x2') ? 32 : bitsOf(width);
}

function elementsOf(value: LaneValue, width: RegisterWidth, bits: number): bigint[] {
  return Array.from({ length: bitsOf(width) / bits }, (_, i) =>
    BigInt.asUintN(bits, BigInt(value) >> BigInt(bits * i)),
  );
}

/** Whether an element is a NaN or a subnormal number of the type, whose bits need not stay. */
function isSpecial(type: string, element: bigint): boolean {
  const fields = { f16: [5, 10], f32: [8, 23], f64: [11, 52], bf16: [8, 7] }[
    type.replace('x2', '')
  ];
  if (fields === undefined) return false;
  const exponent = BigInt.asUintN(fields[0], element >> BigInt(fields[1]));
  return exponent === 0n || exponent === (1n << BigInt(fields[0])) - 1n;
}

describe('an instruction on registers that moves bytes', () => {
  it.each(ofMeaning('moves').map((variant) => [variant.name, variant] as const))(
    'takes no notice of their values, but for the sign: %s',
    (_, variant) => {
      fc.assert(
        fc.property(fc.integer(), (seed) => {
          const next = wordSource(seed);
          const names = renaming(next);
          const sources = drawn(variant, next);
          const { destinations } = variant;
          const before = resultsOf(variant, sources);
          const after = resultsOf(
            variant,
            sources.map((value, i) => renamed(variant.sources[i], value, names)),
          );
          expect(after).toEqual(before.map((value, i) => renamed(destinations[i], value, names)));
        }),
        { numRuns: scaled(5), seed: testSeed },
      );
    },
  );
});

describe('an instruction on registers that chooses', () => {
  it.each(ofMeaning('chooses').map((variant) => [variant.name, variant] as const))(
    'gives the bits of one of its operands, or 0: %s',
    (name, variant) => {
      const bits = elementBits(variant);
      const type = name.split('.').at(name.startsWith('slct') ? -2 : -1)!;
      const [width] = variant.destinations;
      fc.assert(
        fc.property(fc.integer(), (seed) => {
          const sources = drawn(variant, wordSource(seed));
          const operands = sources
            .filter((_, i) => variant.sources[i] === width)
            .map((value) => elementsOf(value, width, bits));
          fc.pre(!operands.flat().some((element) => isSpecial(type, element)));
          const [result] = resultsOf(variant, sources);
          elementsOf(result, width, bits).forEach((element, i) => {
            const zero = name.includes('relu') ? [0n] : [];
            expect([...operands.map((all) => all[i]), ...zero]).toContain(element);
          });
        }),
        { numRuns: scaled(20), seed: testSeed },
      );
    },
  );
});
