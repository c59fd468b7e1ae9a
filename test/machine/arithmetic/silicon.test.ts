import { fingerprintTargets } from '../../../src/conform/targets.js';
import { expect, test } from 'vitest';
import { arithmeticInstructions } from '../../../src/machine/isa/arithmetic.js';
import { wordInstruction } from './fragments.js';
import { hashOf, operandPatterns, patternCount } from './patterns.js';
import { operandsHash, siliconHashes } from './silicon.js';

const patterns = operandPatterns();

test('the patterns are those the device ran', () => {
  expect(hashOf(patterns)).toBe(operandsHash);
});

/** Which operands are predicates: their lowest bit counts on the device. */
function isPredicate(name: string, operand: number): boolean {
  return name.endsWith('.pred') || (/^(setp|selp)\./.test(name) && operand === 2);
}

test.each(Object.entries(siliconHashes))('%s gives the bits of an H200', (title, captured) => {
  const [name, table] = title.split(' ');
  const operands = /^(min|max)\./.test(name) ? 2 : undefined;
  const instruction = wordInstruction(name, operands);
  const masks = [0, 1, 2, 3].map((k) => (isPredicate(name, k) ? 1 : 0xffffffff));
  const results = new Uint32Array(patternCount).map((_, i) => {
    const words = [0, 1, 2, 3].map((k) => (patterns[4 * i + k] & masks[k]) >>> 0);
    if (table !== undefined) words[3] = Number(table);
    return instruction.evaluate(...words.slice(0, instruction.operands));
  });
  expect(hashOf(results)).toBe(captured);
});

test('all instructions are captured but those that need sm_100', () => {
  const captured = new Set(Object.keys(siliconHashes).map((title) => title.split(' ')[0]));
  // Of functions of one fp32 number all 2^32 results were compared (src/conform).
  for (const { instruction } of fingerprintTargets) captured.add(instruction);
  const rest = arithmeticInstructions.filter(({ name }) => !captured.has(name));
  expect(rest.length).toBeGreaterThan(0);
  for (const { width } of rest) expect(width).toBe(2);
});
