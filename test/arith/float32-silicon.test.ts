import { expect, test } from 'vitest';
import {
  addFloat32,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  type Float32Options,
} from '../../src/arith/index.js';
import { bits32, float32 } from './exact.js';
import { float32Pattern, hashStart, hashWord } from './float32-patterns.js';
import { probes, silicon, type Instruction } from './float32-silicon.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const operations = {
  add: (a: number, b: number, _c: number, o: Float32Options) => addFloat32(a, b, o),
  mul: (a: number, b: number, _c: number, o: Float32Options) => multiplyFloat32(a, b, o),
  fma: fusedMultiplyAddFloat32,
};

const modes = { rn: 'nearest-even', rz: 'toward-zero', rm: 'down', rp: 'up' } as const;

function patterns(): Float32Array {
  const operands = new Float32Array(3 * silicon.patterns);
  const words = new Uint32Array(operands.buffer);
  for (let i = 0; i < silicon.patterns; i++) {
    float32Pattern(silicon.seed, i, words.subarray(3 * i, 3 * i + 3));
  }
  return operands;
}

const operands = patterns();

test('the patterns are those the device ran', () => {
  const words = new Uint32Array(operands.buffer);
  expect(words.reduce((hash, word) => hashWord(hash, word), hashStart)).toBe(silicon.operands);
});

inTurn.each(Object.entries(silicon.results) as [Instruction, number][])(
  '%s gives the bits of an H200',
  (instruction, captured) => {
    const [name, mode] = instruction.split('.') as [keyof typeof operations, keyof typeof modes];
    const operation = operations[name];
    const options = { rounding: modes[mode], flushToZero: instruction.includes('.ftz') };
    const result = new Float32Array(1);
    const bits = new Uint32Array(result.buffer);
    let hash = hashStart;
    for (let i = 0; i < operands.length; i += 3) {
      result[0] = operation(operands[i], operands[i + 1], operands[i + 2], options);
      hash = hashWord(hash, result[0] === result[0] ? bits[0] : 0x7fffffff);
    }
    expect(hash).toBe(captured);
  },
);

test.each(probes)('$about', (probe) => {
  const [a, b, c] = probe.operands.map(float32);
  const variants = [false, true].flatMap((flushToZero) =>
    Object.values(modes).map((rounding) => ({ rounding, flushToZero })),
  );
  const hex = (value: number): string => bits32(value).toString(16).padStart(8, '0');
  expect(variants.map((options) => hex(addFloat32(a, b, options)))).toEqual(probe.add);
  expect(variants.map((options) => hex(multiplyFloat32(a, b, options)))).toEqual(probe.multiply);
  expect(variants.map((options) => hex(fusedMultiplyAddFloat32(a, b, c, options)))).toEqual(
    probe.fma,
  );
});
