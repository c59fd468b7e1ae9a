import { describe, expect, it } from 'vitest';
import { createMmaUnits, type MmaInstruction } from '../../../src/machine/isa/tensor-core/index.js';
import {
  elementPackings,
  type MatrixDescriptor,
  unpackElements,
} from '../../../src/machine/memory/index.js';
import { wordSource } from '../../hardware/tensor-core/random-patterns.js';
import { createTrial, type TrialOptions } from './mma-trial.js';

const units = createMmaUnits('sm_100');
const unitOf = (instruction: MmaInstruction) => {
  const unit = units.find(instruction);
  if (typeof unit === 'string') throw new Error(unit);
  return unit;
};

describe('operands of 6 and 4 bits', () => {
  it.each(['e2m3', 'e3m2', 'e2m1'] as const)(
    'in chunks of 16 elements and padding multiply as the same numbers in bytes: %s',
    (format) => {
      const packing = format === 'e2m1' ? elementPackings.b4x16_p64 : elementPackings.b6x16_p32;
      const options: TrialOptions = { group: 1, m: 64, n: 16, a: 'e4m3', accumulate: false };
      const trial = createTrial({ ...options, swizzle: 'none' });
      const { shared } = trial.ctas[0];
      const unit = unitOf(trial.instruction);
      const word = wordSource(9);
      const codes = (count: number) =>
        Uint8Array.from({ length: count }, () => word() % 2 ** packing.bits);
      const [a, b] = [codes(64 * 32), codes(16 * 32)];
      const { aOperand, bOperand } = trial.instruction;
      if (aOperand.space !== 'shared') throw new Error('A is in shared memory');
      /** Chunks [row][k / 16] from where the trial's descriptors find them. */
      const place = (
        descriptor: MatrixDescriptor,
        chunk: (i: number) => Uint8Array,
        rows: number,
      ) => {
        for (let row = 0; row < rows; row++)
          for (let half = 0; half < 2; half++) {
            const at =
              descriptor.address +
              (row & 7) * 16 +
              (row >> 3) * descriptor.strideByteOffset +
              half * descriptor.leadingByteOffset;
            shared.store.bytes.set(chunk(2 * row + half), at);
          }
      };
      const packed = (patterns: Uint8Array) => (i: number) => {
        const bytes = new Uint8Array(16).fill(0xff);
        bytes.fill(0, 0, (16 * packing.bits) / 8);
        for (let e = 0; e < 16; e++)
          for (let bit = 0; bit < packing.bits; bit++)
            if (((patterns[16 * i + e] >> bit) & 1) === 1)
              bytes[(e * packing.bits + bit) >> 3] |= 1 << ((e * packing.bits + bit) & 7);
        return bytes;
      };
      place(aOperand.descriptor, packed(a), 64);
      place(bOperand, packed(b), 16);
      const narrow: MmaInstruction = { ...trial.instruction, a: format, b: format };
      expect(unit.check(narrow, trial.ctas)).toBe(null);
      unitOf(narrow).execute(narrow, trial.ctas);
      const read = () =>
        Array.from({ length: 64 * 16 }, (_, i) => {
          const [row, at] = [Math.floor(i / 16), i % 16];
          return trial.ctas[0].tensor.store.words[(32 * (row >> 4) + (row % 16)) * 512 + 100 + at];
        });
      const got = read();
      /** The same number in e4m3, which has all numbers of these formats. */
      const asByte = (code: number): number => {
        const [e, f] = ({ e2m3: [2, 3], e3m2: [3, 2], e2m1: [2, 1] } as const)[format];
        const [field, fraction] = [(code >> f) & (2 ** e - 1), code & (2 ** f - 1)];
        const bias = 2 ** (e - 1) - 1;
        const value =
          field === 0
            ? fraction * 2 ** (1 - bias - f)
            : (1 + fraction / 2 ** f) * 2 ** (field - bias);
        for (let byte = 0; byte < 0x7f; byte++) {
          const [be, bf] = [byte >> 3, byte & 7];
          const number = be === 0 ? bf * 2 ** -9 : (1 + bf / 8) * 2 ** (be - 7);
          if (number === value) return byte + (code >> (e + f)) * 0x80;
        }
        throw new Error(`${value} is no e4m3`);
      };
      const bytes = (patterns: Uint8Array) => (i: number) =>
        patterns.slice(16 * i, 16 * i + 16).map(asByte);
      place(aOperand.descriptor, bytes(a), 64);
      place(bOperand, bytes(b), 16);
      unitOf(trial.instruction).execute(trial.instruction, trial.ctas);
      expect(got).toEqual(read());
      expect(new Set(got).size).toBeGreaterThan(100);
    },
  );

  it('come out of bytes in the order of their bits', () => {
    const target = new Uint8Array(4);
    unpackElements(elementPackings.b4x2, Uint8Array.of(0x21, 0x43), target);
    expect([...target]).toEqual([1, 2, 3, 4]);
    const sixes = new Uint8Array(16);
    unpackElements(
      elementPackings.b6x16_p32,
      Uint8Array.of(0b01_000001, 0b0011_0000, ...Array(14).fill(0)),
      sixes,
    );
    expect([...sixes.slice(0, 3)]).toEqual([1, 1, 3]);
  });
});
