import { describe, expect, it } from 'vitest';
import { findTensorCoreArithmetic } from '../../../src/hardware/index.js';
import { type SwizzleMode, swizzles } from '../../../src/machine/memory/index.js';
import {
  createMmaUnit,
  mmaFootprint,
  type MmaInstruction,
} from '../../../src/machine/isa/tensor-core/index.js';
import { spreads } from '../../hardware/tensor-core/random-patterns.js';
import { placeMatrix } from '../memory/canonical-layout.js';
import { firstDifference } from '../memory/first-difference.js';
import {
  arithmeticOf,
  column,
  createTrial,
  execute,
  forEachElementOfD,
  isByte,
  productOf,
  type TrialOptions,
} from './mma-trial.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const bf16 = { a: 'bf16', b: 'bf16' } as const;

describe('tcgen05.mma', () => {
  inTurn.each<TrialOptions>([
    { group: 1, m: 128, n: 32, ...bf16 },
    { group: 1, m: 128, n: 16, ...bf16, accumulate: false },
    { group: 1, m: 64, n: 8, a: 'fp16' },
    { group: 1, m: 64, n: 40, a: 'fp16', firstLane: 16 },
    { group: 1, m: 64, n: 16, a: 'e4m3', aSpace: 'tensor', firstLane: 16 },
    { group: 1, m: 128, n: 16, a: 'fp16', b: 'bf16', aSpace: 'tensor' },
    { group: 1, m: 128, n: 32, a: 'e4m3', b: 'e5m2', bMajor: 'mn' },
    { group: 2, m: 256, n: 16, ...bf16 },
    { group: 2, m: 256, n: 32, a: 'e5m2', bMajor: 'mn', aSpace: 'tensor' },
    { group: 2, m: 128, n: 32, ...bf16, bMajor: 'mn' },
    { group: 2, m: 128, n: 16, a: 'e4m3', accumulate: false },
    { group: 1, m: 128, n: 32, a: 'tf32' },
    { group: 1, m: 64, n: 24, a: 'tf32', aSpace: 'tensor', firstLane: 16 },
    { group: 2, m: 256, n: 16, a: 'tf32', swizzle: '64B' },
  ])('equals tensorCoreProduct: $group × M $m, N $n, $a', (options) => {
    for (const [seed, spread] of spreads.entries()) {
      const full = { ...options, seed: seed + 3, spread };
      const trial = createTrial(full);
      const { d, changed } = execute(trial, full);
      expect(firstDifference(d, productOf(trial))).toBe(null);
      expect(changed).toBe(0);
    }
  });

  // Of the majors of A and B TEST_SEED draws two for each swizzle.
  it.each(
    (Object.keys(swizzles) as SwizzleMode[]).flatMap((swizzle, i) => {
      const majors = (['k', 'mn'] as const).flatMap((aMajor) =>
        (['k', 'mn'] as const).map((bMajor) => ({ swizzle, aMajor, bMajor })),
      );
      const rotated = majors.map((_, place) => majors[(place + i) % majors.length]);
      return sampled(rotated, 2);
    }),
  )('has the same D for all layouts of A and B: $swizzle, $aMajor and $bMajor major', (layout) => {
    for (const a of ['bf16', 'e4m3'] as const) {
      const options: TrialOptions = { group: 1, m: 128, n: 64, a, spread: { band: 12 } };
      const reference = execute(createTrial(options), options);
      const { d } = execute(createTrial({ ...options, ...layout }), options);
      expect(firstDifference(d, reference.d)).toBe(null);
    }
  });

  it.each<TrialOptions>([
    { group: 1, m: 128, n: 256, ...bf16 },
    { group: 1, m: 64, n: 64, a: 'e5m2' },
    { group: 2, m: 256, n: 64, ...bf16 },
  ])('has the same D for A in tensor memory: $group × M $m', (options) => {
    const fromShared = execute(createTrial(options), options);
    const fromTensor = execute(createTrial({ ...options, aSpace: 'tensor' }), options);
    expect(firstDifference(fromTensor.d, fromShared.d)).toBe(null);
  });

  it.each([
    { m: 256, n: 64 },
    { m: 128, n: 64 },
  ])('of a pair of CTAs is that of each alone with all of B: M $m', ({ m, n }) => {
    const options: TrialOptions = { group: 2, m, n, ...bf16, spread: { band: 12 } };
    const trial = createTrial(options);
    const { d } = execute(trial, options);
    const single: TrialOptions = { ...options, group: 1, m: m / 2 };
    const half = createTrial(single);
    const { shape } = trial.instruction;
    [0, 1].forEach((i) => {
      const part = (length: number): [number, number] => [(i * length) / 2, ((i + 1) * length) / 2];
      const [cta] = half.ctas;
      const { aOperand, bOperand } = half.instruction;
      if (aOperand.space !== 'shared') throw new Error('A is in shared memory');
      placeMatrix(cta.shared, aOperand.descriptor, shape.k, trial.a.subarray(...part(m * shape.k)));
      placeMatrix(cta.shared, bOperand, shape.k, trial.b);
      const c = trial.c.subarray(...part(m * n));
      forEachElementOfD(single, (index, place) => (cta.tensor.store.words[place] = c[index]));
      expect(firstDifference(execute(half, single).d, d.subarray(...part(m * n)))).toBe(null);
    });
  });

  it('keeps instructions of other formats apart', () => {
    const unit = createMmaUnit(arithmeticOf('e4m3', 'e5m2'));
    for (const b of ['e5m2', 'e4m3', 'e5m2'] as const) {
      const options: TrialOptions = { group: 1, m: 64, n: 16, a: 'e4m3', b };
      const trial = createTrial(options);
      unit.execute(trial.instruction, trial.ctas);
      const d = new Uint32Array(64 * 16);
      const { words } = trial.ctas[0].tensor.store;
      forEachElementOfD(options, (index, place) => (d[index] = words[place]));
      expect(firstDifference(d, productOf(trial))).toBe(null);
    }
  });

  it('takes the arithmetic of another tensor core', () => {
    for (const a of ['bf16', 'e4m3'] as const) {
      const query = { instruction: 'wgmma', architecture: 'sm_90', a } as const;
      const hopper = findTensorCoreArithmetic(query);
      const options: TrialOptions = { group: 1, m: 64, n: 16, a, spread: { band: 12 } };
      const trial = createTrial(options);
      createMmaUnit(hopper).execute(trial.instruction, trial.ctas);
      const { words } = trial.ctas[0].tensor.store;
      const d = new Uint32Array(64 * 16);
      forEachElementOfD(options, (index, place) => (d[index] = words[place]));
      expect(firstDifference(d, productOf(trial, hopper))).toBe(null);
    }
  });

  it('accumulates: twice A·B is A·B + A·B', () => {
    const options: TrialOptions = { group: 1, m: 64, n: 16, ...bf16, spread: { band: 4 } };
    const first = createTrial({ ...options, accumulate: false });
    const { d: once } = execute(first, options);
    const { d: twice } = execute(
      { ...first, instruction: { ...first.instruction, accumulate: true } },
      options,
    );
    const product = { ...first, instruction: { ...first.instruction, accumulate: true }, c: once };
    expect(firstDifference(twice, productOf(product))).toBe(null);
  });

  it('negates an operand by its signs: (−A)·(−B) = A·B, and (−A)·B is the product of −A', () => {
    for (const a of ['bf16', 'e4m3'] as const) {
      const options: TrialOptions = { group: 1, m: 64, n: 16, a };
      const run = (change: Pick<MmaInstruction, 'negateA' | 'negateB'>): Uint32Array => {
        const trial = createTrial(options);
        return execute({ ...trial, instruction: { ...trial.instruction, ...change } }, options).d;
      };
      const plain = run({});
      expect(firstDifference(run({ negateA: true, negateB: true }), plain)).toBe(null);
      expect(firstDifference(run({ negateA: true }), run({ negateB: true }))).toBe(null);
      const trial = createTrial(options);
      const signBit = isByte(a) ? 0x80 : 0x8000;
      const negative = trial.a.map((pattern) => pattern ^ signBit);
      const expected = productOf({ ...trial, a: negative });
      expect(firstDifference(run({ negateA: true }), expected)).toBe(null);
      expect(firstDifference(expected, plain)).not.toBe(null);
    }
  });

  it.each<TrialOptions>([
    { group: 1, m: 64, n: 24, ...bf16, firstLane: 16, aSpace: 'tensor' },
    { group: 2, m: 128, n: 32, ...bf16 },
    { group: 2, m: 256, n: 32, a: 'e4m3', aSpace: 'tensor' },
  ])('touches what its footprint says: $group × M $m', (options) => {
    const { instruction } = createTrial(options);
    const { d, a, b } = mmaFootprint(instruction);
    const words = (rectangles: typeof d): number[] =>
      rectangles
        .flatMap(({ firstLane, lanes, firstColumn, columns }) =>
          Array.from(
            { length: lanes * columns },
            (_, i) => (firstLane + Math.floor(i / columns)) * 512 + firstColumn + (i % columns),
          ),
        )
        .sort((one, other) => one - other);
    const ofD: number[] = [];
    forEachElementOfD(options, (_, place) => ofD.push(place));
    expect(words(d)).toEqual(ofD.sort((one, other) => one - other));
    const bytes = isByte(options.a) ? 1 : 2;
    const { k } = instruction.shape;
    expect(16 * b.length).toBe((options.n / options.group) * k * bytes);
    const rows = options.m / options.group;
    if (a.space === 'shared') expect(16 * a.chunks.length).toBe(rows * k * bytes);
    else {
      expect(words(a.rectangles).length).toBe(rows * 8);
      expect(words(a.rectangles).every((word) => word % 512 >= column.a)).toBe(true);
    }
  });
});
