import { expect, test } from 'vitest';
import {
  findLaneInstruction,
  type LaneInstruction,
  type LaneValue,
  type RegisterWidth,
} from '../../../../src/ptx/instructions/index.js';
import { laneInstructions } from './lane-instructions.js';
import { specialWords } from '../../../machine/arithmetic/patterns.js';

/** Patterns of special values of every format, for a register of that width. */
const specials: Readonly<Record<RegisterWidth, readonly LaneValue[]>> = {
  pred: [0, 1],
  16: [0, 1, 2, 0x7f, 0x80, 0xff, 0x3c00, 0x3f80, 0x7c00, 0x7c01, 0x7f80, 0x7fff, 0x8000, 0xffff],
  32: [...specialWords, 2, 3, 0xffffffff, 0xff800000, 0x3c003c00, 0x7c007f80],
  64: [
    ...[0n, 1n, 2n, 0x7fn, 2n ** 31n, 2n ** 32n - 1n, 2n ** 63n, 2n ** 64n - 1n],
    ...[0x3ff0000000000000n, 0x7ff0000000000000n, 0x7ff0000000000001n, 0xfff8000000000000n],
  ],
  128: [0n, 1n, 2n ** 64n, 2n ** 127n, 2n ** 128n - 1n],
};

function isValue(width: RegisterWidth, value: LaneValue): boolean {
  const bits = width === 'pred' ? 1 : width;
  return bits > 32
    ? typeof value === 'bigint' && BigInt.asUintN(bits, value) === value
    : typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 2 ** bits;
}

/** Sources that go through the special patterns in steps that have no common factor. */
function sourcesOf({ sources }: LaneInstruction, turn: number): LaneValue[] {
  return sources.map((width, i) => {
    const patterns = specials[width];
    return patterns[(turn * (2 * i + 1) + 3 * i + Math.floor(turn / 7) * i) % patterns.length];
  });
}

test('a row is known by its name and its operands', () => {
  const keys = laneInstructions().map(
    ({ name, destinations, sources }) => `${name} ${destinations.join()} ${sources.join()}`,
  );
  expect(new Set(keys).size).toBe(keys.length);
});

test('every row gives values of its registers for special patterns', () => {
  for (const instruction of laneInstructions())
    for (let turn = 0; turn < 24; turn++) {
      const sources = sourcesOf(instruction, turn);
      const result = instruction.evaluate(...sources);
      const results = Array.isArray(result) ? result : [result];
      const fits =
        results.length === instruction.destinations.length &&
        results.every((value, i) => isValue(instruction.destinations[i], value));
      if (!fits) expect.fail(`${instruction.name}(${sources.join()}) = ${String(result)}`);
    }
});

test('every row is found by its opcode, modifiers and operands', () => {
  for (const instruction of laneInstructions()) {
    const [opcode, ...modifiers] = instruction.name.split('.');
    const form = { destinations: instruction.destinations, sources: instruction.sources.length };
    expect(findLaneInstruction(opcode, modifiers, form), instruction.name).toBe(instruction);
  }
});
