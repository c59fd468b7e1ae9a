import type { LaneInstruction, LaneValue, RegisterWidth } from '../../../isa/index.js';
import { type FamilyFacts, row } from './row.js';

const facts: FamilyFacts = {
  meaning: 'moves',
  unit: 'alu',
  evidence: 'isa',
  source: 'PTX ISA, Data Movement and Conversion Instructions: mov',
};

const types: readonly (readonly [RegisterWidth, readonly string[]])[] = [
  ['pred', ['pred']],
  [16, ['b16', 'u16', 's16']],
  [32, ['b32', 'u32', 's32', 'f32']],
  [64, ['b64', 'u64', 's64', 'f64']],
  [128, ['b128']],
];

const copies = types.flatMap(([width, names]) =>
  names.map((type) =>
    row(
      `mov.${type}`,
      { destinations: [width], sources: [width], evaluate: (value) => value },
      facts,
    ),
  ),
);

/** Types that hold several elements, with the numbers of elements; an element has at least 8 bits. */
const vectors: readonly (readonly [16 | 32 | 64 | 128, readonly (2 | 4)[]])[] = [
  [16, [2]],
  [32, [2, 4]],
  [64, [2, 4]],
  [128, [2, 4]],
];

function valueOf(bits: number, pattern: bigint): LaneValue {
  const low = BigInt.asUintN(bits, pattern);
  return bits > 32 ? low : Number(low);
}

function vectorRows(bits: 16 | 32 | 64 | 128, count: 2 | 4): LaneInstruction[] {
  const elementBits = bits / count;
  const elements = Array.from(
    { length: count },
    (): RegisterWidth => Math.max(elementBits, 16) as RegisterWidth,
  );
  const pack = (...values: LaneValue[]): LaneValue =>
    valueOf(
      bits,
      values.reduce<bigint>(
        (packed, value, i) =>
          packed | (BigInt.asUintN(elementBits, BigInt(value)) << BigInt(i * elementBits)),
        0n,
      ),
    );
  const unpack = (value: LaneValue): LaneValue[] =>
    elements.map((_, i) => valueOf(elementBits, BigInt(value) >> BigInt(i * elementBits)));
  return [
    row(
      `mov.b${bits}.pack${count}`,
      { destinations: [bits], sources: elements, evaluate: pack },
      facts,
    ),
    row(
      `mov.b${bits}.unpack${count}`,
      { destinations: elements, sources: [bits], evaluate: unpack },
      facts,
    ),
  ];
}

/** Copies, and `mov` between a register and its elements; elements of 8 bits lie in a register of 16. */
export const moves: readonly LaneInstruction[] = [
  ...copies,
  ...vectors.flatMap(([bits, counts]) => counts.flatMap((count) => vectorRows(bits, count))),
];
