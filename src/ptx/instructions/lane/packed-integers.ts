import { type LaneInstruction, ofHalves } from '../../../isa/index.js';
import { type FamilyFacts, wordRow } from './row.js';

function facts(instruction: string): FamilyFacts {
  return {
    meaning: 'is',
    unit: 'alu',
    laneOperations: 2,
    evidence: 'isa',
    source: `PTX ISA, Integer Arithmetic Instructions: ${instruction}`,
  };
}

const halves: Readonly<Record<string, (half: number) => number>> = {
  u16x2: (half) => half,
  s16x2: (half) => (half << 16) >> 16,
};

const operations: Readonly<Record<string, (a: number, b: number) => number>> = {
  add: (a, b) => a + b,
  min: Math.min,
  max: Math.max,
};

function pairRow(name: string, compute: (a: number, b: number) => number): LaneInstruction {
  const evaluate = ofHalves((a, b) => compute(a, b) & 0xffff);
  return wordRow(name, 32, [32, 32], evaluate, facts(name.slice(0, name.indexOf('.'))));
}

const pairs = Object.entries(halves).flatMap(([type, numberOf]) =>
  Object.entries(operations).map(([opcode, compute]) =>
    pairRow(`${opcode}.${type}`, (a, b) => compute(numberOf(a), numberOf(b))),
  ),
);

const limited = (['min', 'max'] as const).map((opcode) =>
  pairRow(`${opcode}.relu.s16x2`, (a, b) =>
    Math.max(operations[opcode](halves.s16x2(a), halves.s16x2(b)), 0),
  ),
);

/** The i-th element of a word, read as the type's integer. */
function element(word: number, bits: 8 | 16, i: number, isSigned: boolean): number {
  const above = word << (32 - bits * (i + 1));
  return isSigned ? above >> (32 - bits) : above >>> (32 - bits);
}

const types: Readonly<Record<string, boolean>> = { u32: false, s32: true };

function dotProducts(aType: string, bType: string): LaneInstruction[] {
  const [aSigned, bSigned] = [types[aType], types[bType]];
  const dot = (name: string, sum: (a: number, b: number) => number): LaneInstruction =>
    wordRow(
      `${name}.${aType}.${bType}`,
      32,
      [32, 32, 32],
      (a, b, c) => (sum(a, b) + c) >>> 0,
      facts(name.slice(0, 4)),
    );
  const products = (count: number, product: (i: number) => number): number =>
    Array.from({ length: count }, (_, i) => product(i)).reduce((total, term) => total + term, 0);
  return [
    dot('dp4a', (a, b) =>
      products(4, (i) => element(a, 8, i, aSigned) * element(b, 8, i, bSigned)),
    ),
    ...[0, 2].map((first) =>
      dot(first === 0 ? 'dp2a.lo' : 'dp2a.hi', (a, b) =>
        products(2, (i) => element(a, 16, i, aSigned) * element(b, 8, first + i, bSigned)),
      ),
    ),
  ];
}

/** Pairs of 16-bit integers, and sums of products of bytes added to an integer, which wrap around. */
export const packedIntegers: readonly LaneInstruction[] = [
  ...pairs,
  ...limited,
  ...Object.keys(types).flatMap((a) => Object.keys(types).flatMap((b) => dotProducts(a, b))),
];
