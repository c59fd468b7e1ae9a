import { describe, expect, it } from 'vitest';
import {
  createMmaUnits,
  decodeScaledDescriptor,
  type BlockScales,
  type MmaCta,
  type MmaInstruction,
  type ScaledDescriptor,
} from '../../../src/machine/isa/tensor-core/index.js';
import {
  copyToTensorMemory,
  createSharedMemory,
  createTensorMemory,
  type MatrixDescriptor,
  tensorAddress,
} from '../../../src/machine/memory/index.js';
import { createTrial, execute, type TrialOptions } from './mma-trial.js';

const units = createMmaUnits('sm_100');
const unitOf = (instruction: MmaInstruction) => {
  const unit = units.find(instruction);
  if (typeof unit === 'string') throw new Error(unit);
  return unit;
};

const column = { d: 0, a: 400, b: 420 };
const [m, n] = [128, 64];

/** Puts the factor of each row into all four partitions of lanes. */
function placeScales(
  { tensor }: MmaCta,
  first: number,
  rows: number,
  wordOf: (row: number) => number,
): void {
  for (let row = 0; row < rows; row++)
    for (let partition = 0; partition < 4; partition++)
      tensor.store.words[(32 * partition + (row % 32)) * 512 + first + Math.floor(row / 32)] =
        wordOf(row);
}

/** A dense trial of 8-bit operands as one of kind::mxf8f6f4. */
function scaledTrial(ids: { readonly a: number; readonly b: number }) {
  const options: TrialOptions = { group: 1, m, n, a: 'e4m3', accumulate: false, spread: 'all' };
  const trial = createTrial(options);
  const scales: BlockScales = {
    kind: 'mxf8f6f4',
    format: 'ue8m0',
    block: 32,
    a: { address: tensorAddress(0, column.a), id: ids.a },
    b: { address: tensorAddress(0, column.b), id: ids.b },
  };
  return { options, trial, cta: trial.ctas[0], instruction: { ...trial.instruction, scales } };
}

const dOf = ({ tensor }: MmaCta, instruction: MmaInstruction): Float32Array => {
  const first = instruction.d & 0xffff;
  return Float32Array.from({ length: m * n }, (_, i) => {
    const word = tensor.store.words[Math.floor(i / n) * 512 + first + (i % n)];
    return new Float32Array(Uint32Array.of(word).buffer)[0];
  });
};

describe('tcgen05.mma with scale factors', () => {
  it.each([0, 1, 2, 3])(
    'multiplies row i by its own factor, the byte %i of its word, and column j by its own',
    (id) => {
      const other = 3 - id;
      const { options, trial, cta, instruction } = scaledTrial({ a: id, b: other });
      const dense = execute(createTrial(options), options).d;
      const [ofRow, ofColumn] = [(i: number) => 127 + (i % 5), (j: number) => 127 - (j % 7)];
      // The other bytes hold factors that would be seen.
      placeScales(
        cta,
        column.a,
        m,
        (i) => (0x90909090 & ~(0xff << (8 * id))) | (ofRow(i) << (8 * id)),
      );
      placeScales(
        cta,
        column.b,
        n,
        (j) => (0x60606060 & ~(0xff << (8 * other))) | (ofColumn(j) << (8 * other)),
      );
      expect(unitOf(instruction).check(instruction, trial.ctas)).toBe(null);
      expect(unitOf(instruction).execute(instruction, trial.ctas)).toBe(null);
      const got = dOf(cta, instruction);
      const sums = new Float32Array(dense.buffer);
      // Factors that are powers of two shift every product alike, and so the sum.
      sums.forEach((sum, i) => {
        const [row, at] = [Math.floor(i / n), i % n];
        expect(got[i]).toBe(sum * 2 ** (ofRow(row) + ofColumn(at) - 254));
      });
    },
  );

  it('reads the four partitions of lanes, and reports factors that differ among them', () => {
    const { trial, cta, instruction } = scaledTrial({ a: 0, b: 0 });
    placeScales(cta, column.a, m, () => 127);
    placeScales(cta, column.b, n, () => 127);
    const { scales } = unitOf(instruction).footprint(instruction);
    const touched = scales.map(({ firstLane, lanes, firstColumn, columns }) =>
      [firstLane, lanes, firstColumn, columns].join(),
    );
    expect(touched).toEqual(
      [0, 32, 64, 96]
        .map((lane) => `${lane},32,${column.a},4`)
        .concat([0, 32, 64, 96].map((lane) => `${lane},32,${column.b},2`)),
    );
    cta.tensor.store.words[(64 + 5) * 512 + column.a + 3] = 128;
    expect(unitOf(instruction).execute(instruction, trial.ctas)?.message).toContain(
      `the scale factors of A differ between lanes 5 and 69 of column ${column.a + 3}: 127 and 128`,
    );
  });

  it('takes the factors that tcgen05.cp.32x128b.warpx4 copies: 512 bytes, [32][4 columns][4]', () => {
    const tensor = createTensorMemory();
    const shared = createSharedMemory();
    // The factor of row r, k block i at [r mod 32][r / 32][i], as CUTLASS and Triton lay them out.
    for (let i = 0; i < 512; i++) shared.store.bytes[1024 + i] = i & 0xff;
    const source: MatrixDescriptor = {
      address: 1024,
      leadingByteOffset: 16,
      strideByteOffset: 128,
      swizzle: 'none',
      major: 'k',
    };
    copyToTensorMemory('32x128b.warpx4', shared, source, tensor.store, tensorAddress(0, 40));
    for (let row = 0; row < 128; row++)
      for (let partition = 0; partition < 4; partition++) {
        const word =
          tensor.store.words[(32 * partition + (row % 32)) * 512 + 40 + Math.floor(row / 32)];
        const first = 16 * (row % 32) + 4 * Math.floor(row / 32);
        const bytes = [0, 1, 2, 3].map((i) => (word >>> (8 * i)) & 0xff);
        expect(bytes).toEqual([0, 1, 2, 3].map((i) => (first + i) & 0xff));
      }
  });

  it('refuses places and shapes that there are not', () => {
    const { trial, instruction } = scaledTrial({ a: 0, b: 0 });
    const check = (change: Partial<MmaInstruction>) => {
      const changed = { ...instruction, ...change };
      return unitOf(changed).check(changed, trial.ctas)?.message;
    };
    const scales = (change: Partial<BlockScales>) => ({
      scales: { ...instruction.scales, ...change },
    });
    expect(check(scales({ a: { address: tensorAddress(32, 400), id: 0 } }))).toContain('lane 32');
    expect(check(scales({ b: { address: tensorAddress(0, 511), id: 0 } }))).toContain(
      'columns 511',
    );
    expect(check({ shape: { m, n, k: 64 } })).toContain('K = 64; 32 is due');
    const four = { kind: 'mxf4', a: { address: 0, id: 1 }, b: { address: 0, id: 0 } } as const;
    const packed = { ...scales(four), shape: { m, n, k: 64 }, a: 'e2m1', b: 'e2m1' } as const;
    expect(check(packed)).toContain('id 1 for 2 factors of a row; a multiple of 2 is due');
    expect(units.find({ ...instruction, ...scales({ format: 'ue4m3' }) })).toContain(
      'kind::mxf8f6f4 multiplies no e4m3 by e4m3 with ue4m3',
    );
    expect(createMmaUnits('sm_90').find(instruction)).toContain('sm_90 has no block-scaled');
  });
});

describe('block-scaled instruction descriptors', () => {
  const plain: ScaledDescriptor = {
    kind: 'mxf8f6f4',
    a: 'e4m3',
    b: 'e4m3',
    scale: 'ue8m0',
    aScaleId: 0,
    bScaleId: 0,
    negateA: false,
    negateB: false,
    aMajor: 'k',
    bMajor: 'k',
    m: 128,
    n: 128,
  };

  it('have the words of CUTLASS: each field in its bits', () => {
    const word = (16 << 17) | (1 << 23) | (8 << 24);
    expect(decodeScaledDescriptor(word, 'mxf8f6f4')).toEqual(plain);
    const fields: readonly (readonly [number, Partial<ScaledDescriptor>])[] = [
      [3 << 4, { bScaleId: 3 }],
      [0x60000000, { aScaleId: 3 }],
      [(5 << 7) | (4 << 10), { a: 'e2m1', b: 'e3m2' }],
      [(1 << 7) | (1 << 10), { kind: 'mxf4', a: 'e2m1', b: 'e2m1' }],
      [1 << 23, { scale: 'ue4m3' }],
      [(1 << 13) | (1 << 16), { negateA: true, bMajor: 'mn' }],
    ];
    for (const [bits, change] of fields) {
      const changed = { ...plain, ...change };
      expect(decodeScaledDescriptor(word ^ bits, changed.kind)).toEqual(changed);
    }
    expect(() => decodeScaledDescriptor(0x0880_0000, 'mxf4')).toThrow('code 0 for A');
    expect(() => decodeScaledDescriptor(0x8880_0080 | 0, 'mxf4')).toThrow('K = 96');
    expect(() => decodeScaledDescriptor(4, 'mxf4')).toThrow('sparse');
  });
});
