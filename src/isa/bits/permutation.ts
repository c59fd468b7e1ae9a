import { type Row, row } from '../row.js';
import type { Emit, SourceValue } from '../vectors/index.js';
import { type Expression, type FunctionBody, i8x16, i32x4, v128 } from '../webassembly/index.js';

/** A byte of {b, a} by its number from 0 to 7. */
function byteOf(a: number, b: number, number: number): number {
  return ((number < 4 ? a : b) >>> (8 * (number & 3))) & 0xff;
}

/**
 * `prmt.b32`: every byte of the result is the byte of {b, a} that the lowest three bits of a nibble of
 * `selector` name; the nibble's highest bit replaces it by eight copies of its sign. The lowest four
 * nibbles count.
 */
function permuteBytes(a: number, b: number, selector: number): number {
  let result = 0;
  for (let position = 0; position < 4; position++) {
    const nibble = (selector >>> (4 * position)) & 0xf;
    const byte = byteOf(a, b, nibble & 7);
    const taken = nibble < 8 ? byte : -(byte >>> 7) & 0xff;
    result |= taken << (8 * position);
  }
  return result >>> 0;
}

const lanes = [0, 1, 2, 3] as const;
const eachByte = 0x01010101;

/** The nibbles of a selector, the lowest first. */
function nibblesOf(selector: number): number[] {
  return lanes.map((position) => (selector >>> (4 * position)) & 0xf);
}

/** Bytes of {b, a} by their numbers from a's lowest, in every lane. */
function shuffled(a: Expression, b: Expression, numbers: readonly number[]): Expression {
  const bytes = lanes.flatMap((lane) =>
    numbers.map((number) => 4 * lane + (number < 4 ? number : number + 12)),
  );
  return i8x16.shuffle(a, b, bytes);
}

/** Bytes whose mask has its highest bit set become eight copies of their own highest bit. */
function withSigns(bytes: Expression, mask: Expression): Expression {
  return v128.bitselect(i8x16.shrS(bytes, 7), bytes, i8x16.shrS(mask, 7));
}

function byConstant(
  body: FunctionBody,
  a: Expression,
  b: Expression,
  selector: number,
): Expression {
  const nibbles = nibblesOf(selector);
  const bytes = shuffled(
    a,
    b,
    nibbles.map((nibble) => nibble & 7),
  );
  if (nibbles.every((nibble) => nibble < 8)) return bytes;
  const signs = nibbles.reduce((mask, nibble, i) => mask | ((nibble & 8) << (8 * i + 4)), 0);
  return withSigns(body.keep(bytes), i32x4.splat(signs));
}

/** Nibbles of a word's lower half, one in each byte. */
function spread(word: Expression): Expression {
  return lanes
    .map((position) => i32x4.shl(v128.and(word, i32x4.splat(0xf << (4 * position))), 4 * position))
    .reduce((bytes, byte) => v128.or(bytes, byte));
}

const firstByteOfLane = i32x4.of(lanes.map((lane) => 4 * lane * eachByte));

/** In each lane the bytes of a word with the given numbers from 0 to 3; 0 where a number is from 4 to 7. */
function picked(word: Expression, numbers: Expression): Expression {
  // A number with its highest bit set picks 0.
  const isBeyond = i32x4.shl(v128.and(numbers, i32x4.splat(4 * eachByte)), 5);
  return i8x16.swizzle(word, i32x4.add(v128.or(numbers, isBeyond), firstByteOfLane));
}

function byWord(
  body: FunctionBody,
  a: Expression,
  b: Expression,
  selector: Expression,
): Expression {
  const nibbles = body.keep(spread(selector));
  const ofA = body.keep(v128.and(nibbles, i32x4.splat(7 * eachByte)));
  const ofB = body.keep(v128.xor(ofA, i32x4.splat(4 * eachByte)));
  const bytes = body.keep(v128.or(picked(a, ofA), picked(b, ofB)));
  const signs = i32x4.shl(v128.and(nibbles, i32x4.splat(8 * eachByte)), 4);
  return withSigns(bytes, signs);
}

/**
 * The selector that a mode stands for, by the lowest two bits of the third operand. Source: PTX ISA, instruction
 * `prmt`.
 */
const modeSelectors: Readonly<Record<string, readonly [number, number, number, number]>> = {
  f4e: [0x3210, 0x4321, 0x5432, 0x6543],
  b4e: [0x5670, 0x6701, 0x7012, 0x0123],
  rc8: [0x0000, 0x1111, 0x2222, 0x3333],
  ecl: [0x3210, 0x3211, 0x3222, 0x3333],
  ecr: [0x0000, 0x1110, 0x2210, 0x3210],
  rc16: [0x1010, 0x3232, 0x1010, 0x3232],
};

/** One of four constants, by the lowest two bits of a word. */
function chosen(body: FunctionBody, choices: readonly number[], word: Expression): Expression {
  const isOdd = body.keep(i32x4.shrS(i32x4.shl(word, 31), 31));
  const isUpper = i32x4.shrS(i32x4.shl(word, 30), 31);
  const [first, second, third, fourth] = choices.map((choice) => i32x4.splat(choice));
  return v128.bitselect(
    v128.bitselect(fourth, third, isOdd),
    v128.bitselect(second, first, isOdd),
    isUpper,
  );
}

/** A permutation whose selector is a constant, or a word. */
function emitted(selectorOf: (body: FunctionBody, mode: SourceValue) => number | Expression): Emit {
  return (body, { vectors: [a] }, { vectors: [b] }, mode) => {
    const selector = selectorOf(body, mode);
    return [
      [
        typeof selector === 'number'
          ? byConstant(body, a, b, selector)
          : byWord(body, a, b, selector),
      ],
    ];
  };
}

const common = {
  isOfMachine: true,
  meaning: 'confirmed',
  unit: 'alu',
  evidence: 'silicon',
  section: 'Data Movement and Conversion Instructions',
} as const;

/** `prmt`, with and without a mode. */
export const permutationRows: readonly Row[] = [
  row({
    ...common,
    syntax: 'prmt.b32 d, a, b, c',
    evaluate: () => permuteBytes,
    emit: () =>
      emitted((_, { constant, vectors }) =>
        constant === null ? vectors[0] : Number(constant & 0xffffn),
      ),
  }),
  row({
    ...common,
    syntax: 'prmt.b32.mode d, a, b, c',
    alternatives: { mode: Object.keys(modeSelectors).map((mode) => `.${mode}`) },
    evaluate: ({ mode }) => {
      const selectors = modeSelectors[mode];
      return (a: number, b: number, c: number) => permuteBytes(a, b, selectors[c & 3]);
    },
    emit: ({ mode }) => {
      const selectors = modeSelectors[mode];
      return emitted((body, { constant, vectors }) =>
        constant === null
          ? body.keep(chosen(body, selectors, vectors[0]))
          : selectors[Number(constant & 3n)],
      );
    },
  }),
];
