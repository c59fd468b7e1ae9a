import { expect, it } from 'vitest';
import { findTensorCoreArithmetic, tensorCoreProduct } from '../../../src/hardware/index.js';
import { createMmaUnits, type MmaInstruction } from '../../../src/machine/isa/tensor-core/index.js';
import { tensorAddress } from '../../../src/machine/memory/index.js';
import { column, createTrial, type TrialOptions } from './mma-trial.js';

const units = createMmaUnits('sm_100');
const unitOf = (instruction: MmaInstruction) => {
  const unit = units.find(instruction);
  if (typeof unit === 'string') throw new Error(unit);
  return unit;
};

it.each(['fp16', 'e4m3'] as const)('D in fp16 takes the lower halves of words: %s', (format) => {
  const [m, n] = [128, 16];
  const options: TrialOptions = { group: 1, m, n, a: format, spread: { band: 4 } };
  const { instruction, ctas, a, b } = createTrial(options);
  const { words } = ctas[0].tensor.store;
  const place = (i: number) => Math.floor(i / n) * 512 + column.d + (i % n);
  const c = Uint32Array.from({ length: m * n }, (_, i) => 0x3c00 + (i % 1024));
  // The upper halves count for nothing.
  c.forEach((bits, i) => (words[place(i)] = bits + 0xabcd0000));
  const half: MmaInstruction = { ...instruction, accumulator: 'fp16' };
  expect(unitOf(half).check(half, ctas)).toBe(null);
  unitOf(half).execute(half, ctas);
  const arithmetic = findTensorCoreArithmetic({
    instruction: 'tcgen05.mma',
    architecture: 'sm_100',
    a: format,
    accumulator: 'fp16',
  });
  const due = tensorCoreProduct(arithmetic, {
    ...instruction.shape,
    a,
    aFormat: format,
    bTransposed: b,
    bFormat: format,
    c,
  });
  expect(Array.from(c, (_, i) => words[place(i)])).toEqual([...due]);
});

it('has the same D for A of two elements a byte in tensor memory and in shared memory', () => {
  const options: TrialOptions = { group: 1, m: 128, n: 16, a: 'e4m3', swizzle: 'none' };
  const run = (isInTensorMemory: boolean) => {
    const { instruction, ctas } = createTrial({ ...options, accumulate: false });
    const [{ shared, tensor }] = ctas;
    if (instruction.aOperand.space !== 'shared') throw new Error('A is in shared memory');
    const { descriptor } = instruction.aOperand;
    // The 32 bytes of each row, of 64 elements, to the words of its lane.
    for (let row = 0; row < 128; row++)
      for (let word = 0; word < 8; word++) {
        const chunk = Math.floor(word / 4) * descriptor.leadingByteOffset + 4 * (word % 4);
        const from =
          descriptor.address + (row & 7) * 16 + (row >> 3) * descriptor.strideByteOffset + chunk;
        tensor.store.words[row * 512 + column.a + word] = shared.store.words[from / 4];
      }
    for (let lane = 0; lane < 128; lane++)
      for (let i = 0; i < 5; i++) tensor.store.words[lane * 512 + 300 + i] = 0x7f7f7f7f;
    const scaled: MmaInstruction = {
      ...instruction,
      a: 'e2m1',
      b: 'e2m1',
      shape: { m: 128, n: 16, k: 64 },
      scales: {
        kind: 'mxf4',
        format: 'ue8m0',
        block: 32,
        a: { address: tensorAddress(0, 300), id: 0 },
        b: { address: tensorAddress(0, 304), id: 2 },
      },
      ...(isInTensorMemory && {
        aOperand: { space: 'tensor', address: tensorAddress(0, column.a) },
      }),
    };
    expect(unitOf(scaled).check(scaled, ctas)).toBe(null);
    expect(unitOf(scaled).execute(scaled, ctas)).toBe(null);
    return Array.from({ length: 128 * 16 }, (_, i) => {
      return tensor.store.words[Math.floor(i / 16) * 512 + column.d + (i % 16)];
    });
  };
  const fromShared = run(false);
  expect(new Set(fromShared).size).toBeGreaterThan(100);
  expect(run(true)).toEqual(fromShared);
});
