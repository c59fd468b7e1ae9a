import { describe, expect, it } from 'vitest';
import { findTensorCoreArithmetic } from '../../../src/hardware/index.js';
import { tensorAddress } from '../../../src/machine/memory/index.js';
import { createMmaUnit, type MmaInstruction } from '../../../src/machine/isa/tensor-core/index.js';
import { arithmeticOf, createTrial, type TrialOptions, unitOf } from './mma-trial.js';

const bf16 = { a: 'bf16', b: 'bf16' } as const;

describe('checks of tcgen05.mma', () => {
  const { instruction, ctas } = createTrial({ group: 1, m: 128, n: 32, ...bf16 });
  const unit = unitOf(arithmeticOf('bf16'));
  const shape = (m: number, n: number, k = 16): Partial<MmaInstruction> => ({ shape: { m, n, k } });
  const tensorA = (address: number): Partial<MmaInstruction> => ({
    aOperand: { space: 'tensor', address },
  });

  it('let a legal instruction pass', () => expect(unit.check(instruction, ctas)).toBe(null));

  it.each<[string, Partial<MmaInstruction>, string, string]>([
    [
      'an M that one CTA does not have',
      shape(256, 32),
      'instruction-shape',
      'M = 256, which does not',
    ],
    ['an N between the steps', shape(128, 24), 'instruction-shape', 'a multiple of 16 up to 256'],
    ['an N beyond 256', shape(64, 264), 'instruction-shape', 'a multiple of 8 up to 256'],
    ['a K of another format', shape(128, 32, 32), 'instruction-shape', 'with K = 32; 16 is due'],
    ['formats of another kind', { b: 'e4m3' }, 'instruction-shape', 'of bf16 and e4m3'],
    ['a pair with one CTA', { group: 2 }, 'instruction-shape', 'of 2 CTAs executed with 1'],
    [
      'D at a lane',
      { d: tensorAddress(32, 0) },
      'misaligned',
      'D of tcgen05.mma with M = 128 at lane 32',
    ],
    ['D beyond the last column', { d: 481 }, 'tensor-allocation', 'columns 481 to 512'],
    [
      'A beyond the last column',
      tensorA(505),
      'tensor-allocation',
      'A of tcgen05.mma takes columns 505',
    ],
    [
      'A at a lane',
      tensorA(tensorAddress(64, 0)),
      'misaligned',
      'A of tcgen05.mma with M = 128 at lane 64',
    ],
    [
      'A at other lanes than D',
      { ...shape(64, 32), ...tensorA(tensorAddress(16, 0)) },
      'misaligned',
      'A at lane 16 and D at lane 0',
    ],
    [
      'B beyond shared memory',
      { bOperand: { ...instruction.bOperand, address: 232_432 } },
      'shared-overflow',
      'which has 232448',
    ],
    [
      'B at an odd byte',
      { bOperand: { ...instruction.bOperand, address: 1000 } },
      'misaligned',
      'a multiple of 16',
    ],
  ])('find %s', (_, change, kind, message) => {
    const changed = { ...instruction, ...change };
    expect(unit.check(changed, ctas)).toMatchObject({
      kind,
      message: expect.stringContaining(message) as string,
    });
    expect(() => unit.execute(changed, ctas)).toThrow(message);
  });

  it('find sums of another format than the arithmetic has', () => {
    const query = {
      instruction: 'tcgen05.mma',
      architecture: 'sm_100',
      accumulator: 'fp16',
    } as const;
    const half = createMmaUnit(findTensorCoreArithmetic({ ...query, a: 'fp16' }));
    const ofHalves = { ...instruction, a: 'fp16', b: 'fp16' } as const;
    expect(half.check(ofHalves, ctas)).toMatchObject({
      kind: 'instruction-shape',
      message: expect.stringContaining(
        'with the arithmetic of fp16, both alike, into fp16',
      ) as string,
    });
  });

  it('find transposed bytes of B in steps that they do not have', () => {
    const options: TrialOptions = { group: 2, m: 256, n: 48, a: 'e4m3' };
    const bytes = createTrial(options);
    const byteUnit = unitOf(arithmeticOf('e4m3'));
    expect(byteUnit.check(bytes.instruction, bytes.ctas)).toBe(null);
    const bOperand = { ...bytes.instruction.bOperand, major: 'mn' } as const;
    expect(byteUnit.check({ ...bytes.instruction, bOperand }, bytes.ctas)?.message).toBe(
      'tcgen05.mma of 2 CTAs with M = 256 and N = 48; a multiple of 32 up to 256 is due',
    );
  });

  it('find A in tensor memory where its layout is not modelled, and formats below 8 bits', () => {
    const pair = createTrial({ group: 2, m: 128, n: 32, ...bf16 });
    const changed = { ...pair.instruction, ...tensorA(0) };
    expect(unit.check(changed, pair.ctas)?.message).toContain('which is not modelled');
    const narrow = { ...instruction, ...shape(128, 32, 32), a: 'e2m1', b: 'e2m1' } as const;
    const narrowUnit = unitOf(arithmeticOf('e4m3'));
    expect(narrowUnit.check(narrow, ctas)).toBe(null);
    expect(narrowUnit.check({ ...narrow, ...tensorA(0) }, ctas)?.message).toContain(
      'of e2m1 in tensor memory, whose layout',
    );
    const bOperand = { ...instruction.bOperand, major: 'mn' } as const;
    expect(narrowUnit.check({ ...narrow, bOperand }, ctas)?.message).toContain(
      'of e2m1 whose K is not major',
    );
  });
});
