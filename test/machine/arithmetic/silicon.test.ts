import { fingerprintTargets } from '../../../src/conform/targets.js';
import { expect, test } from 'vitest';
import {
  arithmeticInstructions,
  createRegisters,
  executeArithmeticRun,
  immediate,
  registerRun,
  warpLanes,
  type WarpRegisters,
} from '../../../src/machine/isa/arithmetic/index.js';
import { wordInstruction } from './fragments.js';
import { hashOf, operandPatterns, patternCount } from './patterns.js';
import { operandsHash, siliconHashes } from './silicon.js';

const patterns = operandPatterns();
const perLane = patternCount / warpLanes;

test('the patterns are those the device ran', () => {
  expect(hashOf(patterns)).toBe(operandsHash);
});

/** The k-th words of all patterns as registers, the first patterns in lane 0. */
function operandRegisters(k: number, mask: number): WarpRegisters {
  const registers = createRegisters(perLane);
  registers.words.forEach((_, i) => (registers.words[i] = patterns[4 * i + k] & mask));
  return registers;
}

const words = [0, 1, 2, 3].map((k) => operandRegisters(k, 0xffffffff));
const predicates = [0, 1, 2, 3].map((k) => operandRegisters(k, 1));

/** Which operands are predicates: their lowest bit counts on the device. */
function isPredicate(name: string, operand: number): boolean {
  return name.endsWith('.pred') || (/^(setp|selp)\./.test(name) && operand === 2);
}

test.each(Object.entries(siliconHashes))('%s gives the bits of an H200', (title, captured) => {
  const [name, table] = title.split(' ');
  const operands = /^(min|max)\./.test(name) ? 2 : undefined;
  const instruction = wordInstruction(name, operands);
  const sources = Array.from({ length: instruction.operands }, (_, k) =>
    table !== undefined && k === 3
      ? immediate(Number(table))
      : registerRun((isPredicate(name, k) ? predicates : words)[k], 0),
  );
  const results = createRegisters(perLane);
  executeArithmeticRun(instruction, registerRun(results, 0), sources, perLane);
  expect(hashOf(results.words)).toBe(captured);
});

test('all instructions are captured but those that need sm_100', () => {
  const captured = new Set(Object.keys(siliconHashes).map((title) => title.split(' ')[0]));
  // Of functions of one fp32 number all 2^32 results were compared (src/conform).
  for (const { instruction } of fingerprintTargets) captured.add(instruction);
  const rest = arithmeticInstructions.filter(({ name }) => !captured.has(name));
  expect(rest.length).toBeGreaterThan(0);
  for (const { width } of rest) expect(width).toBe(2);
});
