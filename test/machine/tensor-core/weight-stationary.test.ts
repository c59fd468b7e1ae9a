import { describe, expect, it } from 'vitest';
import { createMmaUnits, type MmaInstruction } from '../../../src/machine/isa/tensor-core/index.js';
import { column, createTrial, execute, type TrialOptions } from './mma-trial.js';

const units = createMmaUnits('sm_100');
const unitOf = (instruction: MmaInstruction) => {
  const unit = units.find(instruction);
  if (typeof unit === 'string') throw new Error(unit);
  return unit;
};

const n = 64;

/** Lane and column of an element of D, from the figures of layouts G, E and D of the PTX ISA. */
const placeOf: Readonly<Record<32 | 64 | 128, (row: number, at: number) => [number, number]>> = {
  32: (row, at) => [row + 32 * Math.floor(at / (n / 4)), at % (n / 4)],
  64: (row, at) => [row + 64 * Math.floor(at / (n / 2)), at % (n / 2)],
  128: (row, at) => [row, at],
};

describe('tcgen05.mma.ws', () => {
  it.each([
    [32, 'bf16'],
    [32, 'e4m3'],
    [64, 'bf16'],
    [64, 'e4m3'],
    [128, 'bf16'],
  ] as const)('has the D of an MMA without it, in lanes of its own: M = %i, %s', (m, a) => {
    const options: TrialOptions = { group: 1, m: 128, n, a, accumulate: false };
    const { d: due } = execute(createTrial(options), options);
    const trial = createTrial(options);
    const [{ tensor }] = trial.ctas;
    const instruction: MmaInstruction = {
      ...trial.instruction,
      shape: { ...trial.instruction.shape, m },
      isWeightStationary: true,
    };
    const before = tensor.store.words.slice();
    const unit = unitOf(instruction);
    expect(unit.check(instruction, trial.ctas)).toBe(null);
    unit.execute(instruction, trial.ctas);
    const isOfD = new Set<number>();
    for (let row = 0; row < m; row++)
      for (let at = 0; at < n; at++) {
        const [lane, offset] = placeOf[m](row, at);
        const place = lane * 512 + column.d + offset;
        isOfD.add(place);
        expect(tensor.store.words[place]).toBe(due[row * n + at]);
      }
    expect(tensor.store.words.every((word, i) => isOfD.has(i) || word === before[i])).toBe(true);
    // What is written is what its footprint says.
    const touched = new Set<number>();
    for (const area of unit.footprint(instruction).d)
      for (let lane = 0; lane < area.lanes; lane++)
        for (let i = 0; i < area.columns; i++)
          touched.add((area.firstLane + lane) * 512 + area.firstColumn + i);
    expect(touched).toEqual(isOfD);
  });

  it('has three N and no pair of CTAs', () => {
    const trial = createTrial({ group: 1, m: 64, n: 32, a: 'bf16' });
    const instruction: MmaInstruction = { ...trial.instruction, isWeightStationary: true };
    const unit = unitOf(instruction);
    expect(unit.check(instruction, trial.ctas)?.message).toContain('N = 32; 64, 128 or 256 is due');
    const pair = createTrial({ group: 2, m: 128, n: 64, a: 'bf16' });
    const ofPair = { ...pair.instruction, isWeightStationary: true };
    expect(unit.check(ofPair, pair.ctas)?.message).toContain(
      '.ws of 2 CTAs with M = 128, which does not exist',
    );
  });
});
