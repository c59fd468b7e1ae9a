import { describe, expect, it, test } from 'vitest';
import { conversions, specialFunctions } from '../../../src/hardware/index.js';
import { arithmeticInstructions, findArithmetic } from '../../../src/machine/isa/arithmetic.js';
import { RequestError } from '../../../src/request-error.js';

const modes = ['rn', 'rz', 'rm', 'rp'];

test('every mnemonic and arity is there once', () => {
  const keys = arithmeticInstructions.map(({ name, operands }) => `${name} ${operands}`);
  expect(new Set(keys).size).toBe(keys.length);
});

test('every instruction that src/hardware models is there', () => {
  const names = new Set(arithmeticInstructions.map(({ name }) => name));
  for (const name of [...Object.keys(conversions), ...Object.keys(specialFunctions)])
    expect(names, name).toContain(name);
});

test('fp32 arithmetic has every rounding mode, flushing and packing', () => {
  for (const opcode of ['add', 'sub', 'mul', 'fma'])
    for (const mode of modes)
      for (const ftz of ['', '.ftz'])
        for (const type of ['f32', 'f32x2']) {
          const { unit, width, laneOperations } = findArithmetic(`${opcode}.${mode}${ftz}.${type}`);
          const perLane = type === 'f32' ? 1 : 2;
          expect({ unit, width, laneOperations }).toEqual({
            unit: 'fma',
            width: perLane,
            laneOperations: perLane,
          });
        }
});

test('the units are those of the SM', () => {
  const units = {
    'max.f32': 'alu',
    'fma.rn.f32x2': 'fma',
    'mad.lo.s32': 'fma',
    'ex2.approx.ftz.f32': 'mufu',
    'cvt.rn.bf16x2.f32': 'conversion',
    'setp.lt.f32': 'alu',
    'shl.b32': 'alu',
  };
  for (const [name, unit] of Object.entries(units)) expect(findArithmetic(name).unit).toBe(unit);
});

describe('findArithmetic', () => {
  it('finds every instruction of the table', () => {
    for (const instruction of arithmeticInstructions)
      expect(findArithmetic(instruction.name, instruction.operands)).toBe(instruction);
  });

  it('tells the maximum of three from that of two', () => {
    expect(findArithmetic('max.f32').operands).toBe(2);
    expect(findArithmetic('max.f32', 3).operands).toBe(3);
  });

  const mistakes: readonly (readonly [string, number | undefined, string])[] = [
    ['fma.f32', undefined, 'fma.rn.f32'],
    ['add.rn.f23', undefined, 'near it are add.rn.f32,'],
    ['cvt.rn.bf16x2', undefined, 'cvt.rn.bf16x2.f32'],
    ['setp.lt.f16', undefined, 'setp.lt.'],
    ['tcgen05.mma', undefined, 'the opcodes are add, sub, mul, fma, min, max'],
    ['', undefined, 'the opcodes are'],
    ['max.f32', 4, "'max.f32' does not take 4 sources; pass 2 or 3"],
    ['shl.b32', 3, 'pass 2'],
  ];
  it.each(mistakes)('says what is near %j with %j sources', (name, operands, message) => {
    const find = (): unknown => findArithmetic(name, operands);
    expect(find).toThrow(RequestError);
    expect(find).toThrow(message);
  });
});
