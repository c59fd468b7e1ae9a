import { describe, expect, it } from 'vitest';
import type { OperandFormatName } from '../../../src/hardware/index.js';
import { createMmaUnits, type MmaInstruction } from '../../../src/machine/isa/tensor-core/index.js';
import { createTrial, type TrialOptions } from './mma-trial.js';

const units = createMmaUnits('sm_100');
const unitOf = (instruction: MmaInstruction) => {
  const unit = units.find(instruction);
  if (typeof unit === 'string') throw new Error(unit);
  return unit;
};

describe('kind::i8', () => {
  const formats: readonly (readonly ['u8' | 's8', 'u8' | 's8'])[] = [
    ['u8', 'u8'],
    ['s8', 's8'],
    ['u8', 's8'],
  ];
  it.each(formats)('sums exactly, and wraps around or saturates: %s by %s', (a, b) => {
    for (const saturates of [false, true]) {
      const options: TrialOptions = { group: 1, m: 64, n: 16, a: 'e4m3' };
      const trial = createTrial(options);
      const { words } = trial.ctas[0].tensor.store;
      const place = (i: number): number => (32 * (i >> 8) + ((i >> 4) % 16)) * 512 + 100 + (i % 16);
      // Close to the ends of the range on both sides.
      const before = Array.from({ length: 64 * 16 }, (_, i) =>
        i % 3 === 0 ? 2 ** 31 - 1 - i : i % 3 === 1 ? -(2 ** 31) + i : i,
      );
      before.forEach((x, i) => (words[place(i)] = x));
      const instruction: MmaInstruction = {
        ...trial.instruction,
        a,
        b,
        accumulator: 's32',
        saturates,
      };
      const unit = unitOf(instruction);
      expect(unit.check(instruction, trial.ctas)).toBe(null);
      unit.execute(instruction, trial.ctas);
      const number = (format: string, byte: number): bigint =>
        BigInt(format === 's8' && byte > 127 ? byte - 256 : byte);
      before.forEach((x, i) => {
        const [row, at] = [i >> 4, i % 16];
        let sum = BigInt(x);
        for (let k = 0; k < 32; k++)
          sum += number(a, trial.a[row * 32 + k]) * number(b, trial.b[at * 32 + k]);
        const [least, greatest] = [-(2n ** 31n), 2n ** 31n - 1n];
        const due = saturates
          ? sum < least
            ? least
            : sum > greatest
              ? greatest
              : sum
          : BigInt.asIntN(32, sum);
        expect(BigInt(words[place(i)] | 0)).toBe(due);
      });
    }
  });

  it('is sm_100a alone, and negates nothing', () => {
    const { instruction } = createTrial({ group: 1, m: 64, n: 16, a: 'e4m3' });
    const integer: MmaInstruction = { ...instruction, a: 's8', b: 's8', accumulator: 's32' };
    expect(createMmaUnits('sm_103').find(integer)).toContain('kind::i8 on sm_103');
    expect(units.find({ ...instruction, b: 's8' as OperandFormatName })).toContain(
      'does not exist',
    );
    const { ctas } = createTrial({ group: 1, m: 64, n: 16, a: 'e4m3' });
    expect(unitOf(integer).check({ ...integer, negateA: true }, ctas)?.message).toContain(
      'negates',
    );
  });
});

describe('disable-output-lane', () => {
  it('leaves D as it is in lanes of the mask, in each CTA by its own', () => {
    const options: TrialOptions = { group: 2, m: 256, n: 16, a: 'bf16' };
    const [full, part] = [createTrial(options), createTrial(options)];
    const before = part.ctas.map(({ tensor }) => tensor.store.words.slice());
    const masks = [0x0000000f, 0, 0, 0x80000000, 0, 0xffffffff, 0, 0];
    const unit = unitOf(full.instruction);
    unit.execute(full.instruction, full.ctas);
    unit.execute({ ...part.instruction, lanesLeftOut: masks }, part.ctas);
    part.ctas.forEach(({ tensor }, cta) => {
      for (let lane = 0; lane < 128; lane++) {
        const isLeftOut = ((masks[4 * cta + (lane >> 5)] >>> (lane & 31)) & 1) === 1;
        const due = isLeftOut ? before[cta] : full.ctas[cta].tensor.store.words;
        const row = (words: Uint32Array) => words.slice(lane * 512 + 100, lane * 512 + 116);
        expect(row(tensor.store.words)).toEqual(row(due));
      }
    });
  });
});
