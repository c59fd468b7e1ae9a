import { describe, expect, it } from 'vitest';
import { encode, formats, type NumberFormat } from '../../../src/formats/index.js';
import { knownRows } from './known-rows.js';
import {
  compareWithDefinition,
  compilerWithMemory,
  createRandom,
  operation,
  slotsOf,
} from './warp-memory.js';

/** Of the product's unit in fp64, in which the sums below are rounded first. */
const unit = 2 ** -28;
const addends = [0, 2 ** -40, unit, unit * (1 + 2 ** -10), unit * (1 - 2 ** -10), 1, 2 ** -12];

/** An odd number of 13 bits; the product of two has 25 bits. */
function oddNumber(word: number): number {
  return 4097 + 2 * (word % 847);
}

/** The three operands in one lane. */
type Draw = (random: () => number, round: number) => readonly [number, number, number];

const draws: readonly { readonly title: string; readonly draw: Draw }[] = [
  {
    // The product lies halfway between two fp32 numbers, and what is added decides, however small it is.
    title: 'next to a midpoint',
    draw: (random, round) => {
      const addend = addends[random() % addends.length] * (random() % 2 === 0 ? 1 : -1);
      const exponent = round < 20 ? -(random() % 100) : -130 - (random() % 30);
      const half = exponent >> 1;
      return [
        oddNumber(random()) * 2 ** half,
        oddNumber(random()) * 2 ** (exponent - half),
        addend * 2 ** exponent,
      ];
    },
  },
  {
    // The product is just more or less than half of the smallest number.
    title: 'among subnormal numbers',
    draw: (random) => {
      const nearOne = [1 - 2 ** -23, 1 - 2 ** -24, 1, 1 + 2 ** -23, 1 + 2 ** -22];
      const factor = (): number => nearOne[random() % nearOne.length] * 2 ** -75;
      const sign = random() % 2 === 0 ? 1 : -1;
      return [sign * factor(), factor(), (random() % 2 ** 22) * 2 ** -149];
    },
  },
];

interface Half {
  readonly name: string;
  readonly format: NumberFormat;
  /** Odd factors of so many bits, whose product lies halfway between two numbers of the format. */
  readonly factorBits: readonly [number, number];
}

const halves: readonly Half[] = [
  { name: 'fma.rn.f16', format: formats.fp16, factorBits: [6, 6] },
  { name: 'fma.rn.relu.f16', format: formats.fp16, factorBits: [6, 6] },
  { name: 'fma.rn.bf16', format: formats.bf16, factorBits: [4, 5] },
];

/** An odd number of exactly so many bits. */
function oddOfBits(bits: number, word: number): number {
  return (2 ** (bits - 1) + (word % 2 ** (bits - 1))) | 1;
}

const names = ['fma.rn.f32', 'fma.rn.ftz.f32'];

describe('fma in WebAssembly', () => {
  it.each(names.flatMap((name) => draws.map((draw) => ({ name, ...draw }))))(
    '$name is rounded once $title',
    ({ name, draw }) => {
      const row = knownRows.find((known) => known.name === name);
      if (row === undefined) throw new Error(`no row ${name}`);
      const { memory, compiler } = compilerWithMemory(4096);
      const layout = slotsOf([32, 32, 32, 32]);
      const [result, ...sources] = layout.slots;
      const operations = [operation(row, [result], sources)];
      const run = compiler.compile(operations);
      const floats = new Float32Array(memory.buffer, 0, 4 * 32);
      const random = createRandom(1);
      for (let round = 0; round < 60; round++) {
        for (let lane = 0; lane < 32; lane++)
          draw(random, round).forEach((value, i) => {
            floats[32 * (i + 1) + lane] = value;
          });
        expect(compareWithDefinition(memory, run, operations, layout, -1)).toBeNull();
      }
    },
  );

  it.each(halves)('$name is rounded once next to a midpoint', ({ name, format, factorBits }) => {
    const row = knownRows.find((known) => known.name === name);
    if (row === undefined) throw new Error(`no row ${name}`);
    const { memory, compiler } = compilerWithMemory(4096);
    const layout = slotsOf([16, 16, 16, 16]);
    const [result, ...sources] = layout.slots;
    const operations = [operation(row, [result], sources)];
    const run = compiler.compile(operations);
    const words = new Uint32Array(memory.buffer, 0, 4 * 32);
    const random = createRandom(1);
    const [first, second] = factorBits;
    for (let round = 0; round < 40; round++) {
      for (let lane = 0; lane < 32; lane++) {
        const sign = random() % 2 === 0 ? 1 : -1;
        const values = [
          oddOfBits(first, random()) * 2 ** (5 - first),
          oddOfBits(second, random()) * 2 ** (5 - second),
          sign * 2 ** -(random() % 25),
        ];
        values.forEach((value, i) => {
          words[32 * (i + 1) + lane] = Number(encode(format, value));
        });
      }
      expect(compareWithDefinition(memory, run, operations, layout, -1)).toBeNull();
    }
  });
});
