import type { Meaning } from '../../../isa/index.js';
import { type ByteStore, copyOfBytes, type TracedUpdate } from '../../../machine/index.js';
import type { InstructionRequest, Unsupported } from '../request.js';
import type { WarpInstruction, WarpOperation } from '../warp-instruction.js';
import { operandBits, type WarpRegisters } from '../warp-registers.js';
import { findLaneInstruction } from '../lane.js';
import { wrongOperands } from '../operands.js';
import {
  destinationsOf,
  groupOperation,
  lanesOf,
  readerOf,
  valueWriterOf,
  writerOf,
} from './operands.js';

/** How `redux.sync` combines two values, and what the result stands for. */
interface Combination {
  readonly combine: (a: number, b: number) => number;
  readonly meaning: Meaning;
}

/** The combination by the lane instruction of that name, after the sign has been taken from the values with `.abs`. */
function combinationOf(modifiers: readonly string[]): Combination | null {
  const [operation, ...rest] = modifiers;
  const type = rest[rest.length - 1];
  const isInteger = /^(add|min|max)$/.test(operation) && /^[us]32$/.test(type);
  const isLogic = /^(and|or|xor)$/.test(operation) && type === 'b32';
  const isFloat = /^(min|max)$/.test(operation) && type === 'f32';
  const known = isFloat
    ? rest.slice(0, -1).every((part) => /^(abs|NaN)$/.test(part))
    : rest.length === 1;
  if (!known || !(isInteger || isLogic || isFloat)) return null;
  const plain = rest.filter((part) => part !== 'abs');
  const instruction = findLaneInstruction(operation, plain, { destinations: [32], sources: 2 });
  return instruction === null
    ? null
    : {
        combine: (a, b) => instruction.evaluate(a, b) as number,
        meaning: rest.includes('abs') ? 'is' : instruction.meaning,
      };
}

/** A word with the combination of lanes' words, of whose values the tracer is told one by one. */
function tracedCombination(
  registers: WarpRegisters,
  words: ByteStore,
  lanes: readonly number[],
  combine: Combination['combine'],
  operation: Pick<TracedUpdate, 'mnemonic' | 'site' | 'operation' | 'type'>,
): ByteStore {
  const bytes = 4;
  const result = copyOfBytes(words, bytes * lanes[0], bytes);
  for (const lane of lanes.slice(1)) {
    const old = copyOfBytes(result);
    result.words[0] = combine(old.words[0], words.words[lane]);
    registers.followed?.tracer.update({
      ...operation,
      old,
      operand: { store: words, byte: bytes * lane },
      compared: null,
      next: { store: result, byte: 0 },
      bytes,
    });
  }
  return result;
}

function lowerReduction({
  opcode,
  modifiers,
  operands,
  site,
}: InstructionRequest): WarpOperation | Unsupported {
  const combination = combinationOf(modifiers.slice(1));
  if (combination === null)
    return {
      unsupported:
        'reductions other than add, min, max of integers, and, or, xor of b32, min, max of f32',
    };
  const [write, read, readMask] = [
    writerOf(operands[0]),
    readerOf(operands[1]),
    readerOf(operands[2]),
  ];
  if (!write || !read || !readMask) return wrongOperands('d, a, membermask');
  const magnitude = modifiers.includes('abs') ? 0x7fffffff : 0xffffffff;
  const isFloat = modifiers.includes('f32');
  const { combine, meaning } = combination;
  const [writeValue, source] = [valueWriterOf(operands[0]), operands[1]];
  // With magnitudes a result is none of the values.
  const tracesItself = source?.kind === 'register' && !modifiers.includes('abs');
  const traced = {
    mnemonic: [opcode, ...modifiers].join('.'),
    site,
    operation: modifiers[1],
    type: modifiers[modifiers.length - 1],
  };
  const reduction = groupOperation(
    operands,
    { maskOperand: 2, readMask, meaning },
    (registers, members) => {
      const lanes = lanesOf(members);
      if (registers.followed !== null && tracesItself) {
        const [words] = registers.parts(source.slot);
        // A number is combined with itself first, as below.
        const combined = isFloat ? [lanes[0], ...lanes] : lanes;
        const store = tracedCombination(registers, words, combined, combine, traced);
        writeValue?.(registers, { store, offset: 0, stride: 0, bytes: 4 }, members);
        return;
      }
      const values = lanes.map((lane) => (read(registers, lane) & magnitude) >>> 0);
      // A minimum of one number with itself makes a NaN the canonical one.
      const result = values.reduce(
        combine,
        isFloat ? combine(values[0], values[0]) : combineStart(modifiers[1], values),
      );
      for (const lane of lanes) write(registers, lane, result);
    },
  );
  return tracesItself ? { ...reduction, tracesItself } : reduction;
}

/** A value that changes nothing when it is combined with the values. */
function combineStart(operation: string, values: readonly number[]): number {
  if (operation === 'and') return 0xffffffff;
  return operation === 'min' || operation === 'max' ? values[0] : 0;
}

function lowerMatch({ modifiers, operands }: InstructionRequest): WarpOperation | Unsupported {
  const [mode, sync, type] = modifiers;
  const isKnown = (mode === 'any' || mode === 'all') && sync === 'sync' && /^b(32|64)$/.test(type);
  const [result, allEqual = null] = destinationsOf(operands[0]);
  const write = writerOf(result);
  const writeAllEqual = allEqual === null ? () => {} : writerOf(allEqual);
  const readMask = readerOf(operands[2]);
  const value = operands[1];
  if (!isKnown || !write || !writeAllEqual || !readMask || value === undefined)
    return wrongOperands('any or all of b32 or b64: d|p, a, membermask');
  const group = { maskOperand: 2, readMask, meaning: 'decides' } as const;
  return groupOperation(operands, group, (registers, members) => {
    const equals = new Map<bigint, number>();
    const bits = new Map(
      lanesOf(members).map((lane) => [lane, operandBits(registers, value, lane)]),
    );
    for (const [lane, pattern] of bits)
      equals.set(pattern, ((equals.get(pattern) ?? 0) | (1 << lane)) >>> 0);
    for (const [lane, pattern] of bits) {
      const isOne = equals.size === 1;
      const same = equals.get(pattern) ?? 0;
      write(registers, lane, mode === 'any' || isOne ? same : 0);
      writeAllEqual(registers, lane, isOne ? 1 : 0);
    }
  });
}

/** `redux.sync`, whose sums wrap around, and `match`. */
export const reductionInstructions: readonly WarpInstruction[] = [
  {
    name: 'redux.sync',
    meaning: ['chooses', 'confirmed', 'is'],
    evidence: 'isa',
    source: 'PTX ISA, Parallel Synchronization and Communication Instructions: redux.sync',
    lower: lowerReduction,
  },
  {
    name: 'match',
    meaning: 'decides',
    evidence: 'isa',
    source: 'PTX ISA, Parallel Synchronization and Communication Instructions: match.sync',
    lower: lowerMatch,
  },
];
