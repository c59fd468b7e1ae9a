import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  arithmeticInstructions,
  createRegisters,
  executeArithmeticRun,
  findArithmetic,
  immediate,
  immediateFloat32,
  register,
  registerRun,
  registersOf,
  warpLanes,
  type ArithmeticInstruction,
  type Operand,
  type WarpRegisters,
} from '../../../src/machine/isa/arithmetic/index.js';
import { RequestError } from '../../../src/request-error.js';
import { firstDifference } from '../memory/first-difference.js';
import { randomRegisters } from './fragments.js';

const registersPerLane = 24;
const count = 5;

/** The operand in the k-th execution of a run, as an operand of its own. */
function execution(operand: Operand, width: number, k: number): Operand {
  return { ...operand, first: operand.first + k * operand.step * width, step: 0 };
}

/** The words of an operand in a lane. */
function wordsIn({ words, first, laneStride }: Operand, lane: number, width: number): number[] {
  return Array.from({ length: width }, (_, word) => words[first + lane * laneStride + word]);
}

/** What the PTX of the run does, straight from the definition of each instruction. */
function executeByDefinition(
  instruction: ArithmeticInstruction,
  destination: Operand,
  sources: readonly Operand[],
  activeLanes: number,
): void {
  const { width } = instruction;
  const element = instruction.width === 2 ? instruction.element : instruction;
  for (let k = 0; k < count; k++)
    for (let lane = 0; lane < warpLanes; lane++) {
      if (((activeLanes >>> lane) & 1) === 0) continue;
      const values = sources.map((source) => wordsIn(execution(source, width, k), lane, width));
      const { words, first, laneStride } = execution(destination, width, k);
      for (let word = 0; word < width; word++)
        words[first + lane * laneStride + word] = element.evaluate(
          ...values.map((value) => value[word]),
        );
    }
}

/** Operands in one set of registers, so that runs overlap; half the operands begin where others do. */
const place = fc.record({
  pair: fc.integer({ min: 0, max: 2 }),
  odd: fc.boolean(),
  step: fc.constantFrom(0, 1, 1, 1),
});
const source = fc.oneof(
  { weight: 5, arbitrary: place },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 2 ** 32 - 1 }) },
);

function operandAt(
  registers: WarpRegisters,
  width: number,
  where: { pair: number; odd: boolean; step: number } | number,
): Operand {
  if (typeof where === 'number') return immediate(where);
  const first = 2 * where.pair + (width === 1 && where.odd ? 1 : 0);
  return registerRun(registers, first, where.step);
}

const titled = arithmeticInstructions.map(
  (instruction) => [`${instruction.name} of ${instruction.operands}`, instruction] as const,
);

test.each(titled)('a run of %s is as many instructions in a row', (_, instruction) => {
  fc.assert(
    fc.property(
      place,
      fc.tuple(source, source, source, source),
      fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      fc.integer(),
      (to, from, activeLanes, seed) => {
        const [actual, expected] = [0, 1].map(() => {
          const registers = randomRegisters(registersPerLane, seed);
          const { width, operands } = instruction;
          const destination = operandAt(registers, width, to);
          const sources = from.slice(0, operands).map((at) => operandAt(registers, width, at));
          return { registers, destination, sources };
        });
        executeArithmeticRun(instruction, actual.destination, actual.sources, count, activeLanes);
        executeByDefinition(instruction, expected.destination, expected.sources, activeLanes);
        expect(firstDifference(actual.registers.words, expected.registers.words)).toBe(null);
      },
    ),
    { numRuns: 4 },
  );
});

describe('a run', () => {
  it('of more words than the buffers hold is complete', () => {
    const length = 300;
    for (const name of ['ex2.approx.ftz.f32', 'cvt.rn.bf16x2.f32']) {
      const instruction = findArithmetic(name);
      if (instruction.width === 2) throw new Error('packed');
      const a = randomRegisters(length, 1);
      const b = randomRegisters(length, 2);
      const d = createRegisters(length);
      const sources = [a, b].slice(0, instruction.operands);
      const operands = sources.map((registers) => registerRun(registers, 0));
      executeArithmeticRun(instruction, registerRun(d, 0), operands, length);
      const expected = d.words.map((_, i) =>
        instruction.evaluate(...sources.map(({ words }) => words[i])),
      );
      expect(d.words).toEqual(expected);
    }
  });

  it('with one destination accumulates', () => {
    const scores = createRegisters(8);
    scores.floats.forEach((_, i) => (scores.floats[i] = ((i * 37) % 101) - 50));
    const result = createRegisters(2);
    result.floats.fill(-Infinity);
    const [maximum, sum] = [register(result, 0), register(result, 1)];
    executeArithmeticRun(findArithmetic('max.f32'), maximum, [maximum, registerRun(scores, 0)], 8);
    executeArithmeticRun(findArithmetic('mov.f32'), sum, [immediateFloat32(0)], 1);
    executeArithmeticRun(findArithmetic('add.f32'), sum, [sum, registerRun(scores, 0)], 8);
    for (let lane = 0; lane < warpLanes; lane++) {
      const row = [...scores.floats.subarray(8 * lane, 8 * lane + 8)];
      expect(result.floats[2 * lane]).toBe(Math.max(...row));
      expect(result.floats[2 * lane + 1]).toBe(row.reduce((total, score) => total + score));
    }
  });

  it('packs every other register as PTX orders halves', () => {
    const scores = createRegisters(4);
    scores.floats.set([1, 2, 3, 4]);
    const weights = createRegisters(2);
    const [odd, even] = [registerRun(scores, 1, 2), registerRun(scores, 0, 2)];
    executeArithmeticRun(
      findArithmetic('cvt.rn.bf16x2.f32'),
      registerRun(weights, 0),
      [odd, even],
      2,
    );
    expect([...weights.words.subarray(0, 2)]).toEqual([0x40003f80, 0x40804040]);
  });
});

describe('registers', () => {
  it('are views of the words of a fragment', () => {
    const words = new Uint32Array(2 * warpLanes);
    executeArithmeticRun(
      findArithmetic('mov.b32'),
      register(registersOf(words), 1),
      [immediate(-1)],
      1,
    );
    expect([...words.subarray(0, 4)]).toEqual([0, 0xffffffff, 0, 0xffffffff]);
  });

  it('of a part of a buffer begin there', () => {
    const whole = new Uint32Array(2 * warpLanes);
    const upper = registersOf(whole.subarray(warpLanes));
    executeArithmeticRun(findArithmetic('mov.f32'), register(upper, 0), [immediateFloat32(1)], 1);
    expect(whole[warpLanes - 1]).toBe(0);
    expect(whole[warpLanes]).toBe(0x3f800000);
  });
});

describe('a mistaken request', () => {
  const four = createRegisters(4);
  const add = findArithmetic('add.f32');
  const pair = findArithmetic('add.rn.f32x2');
  const two = [register(four, 0), register(four, 1)];
  const mistakes: readonly (readonly [string, () => void, string])[] = [
    [
      'too few sources',
      () => executeArithmeticRun(add, two[0], [two[1]], 1),
      'takes 2 sources but 1',
    ],
    [
      'an immediate destination',
      () => executeArithmeticRun(add, immediate(0), two, 1),
      'immediate',
    ],
    ['no execution', () => executeArithmeticRun(add, two[0], two, 0), 'cannot run 0 times'],
    [
      'a run that is too long',
      () => executeArithmeticRun(add, registerRun(four, 1), two, 4),
      'reaches register 4, but a lane has 4',
    ],
    [
      'a source that is too short',
      () => executeArithmeticRun(add, two[0], [registerRun(four, 0, 2), two[1]], 3),
      'reaches register 4, but a lane has 4',
    ],
    ['an odd pair', () => executeArithmeticRun(pair, register(four, 1), two, 1), 'even'],
    [
      'half a pair',
      () => executeArithmeticRun(pair, register(createRegisters(1), 0), two, 1),
      'register 1',
    ],
    ['a register too many', () => register(four, 4), 'from 0 to 3'],
    ['a fraction of a register', () => register(four, 0.5), 'no register 0.5'],
    ['a run backwards', () => registerRun(four, 3, -1), 'step of 0 or more'],
    ['a wide immediate', () => immediate(2 ** 32), 'no 32-bit immediate'],
    ['a fraction as bits', () => immediate(0.5), 'immediateFloat32'],
    ['no registers', () => createRegisters(0), 'positive integer'],
    ['a ragged fragment', () => registersOf(new Uint32Array(33)), 'multiple of 32'],
  ];
  it.each(mistakes)('%s is told', (_, act, message) => {
    expect(act).toThrow(RequestError);
    expect(act).toThrow(message);
  });
});
