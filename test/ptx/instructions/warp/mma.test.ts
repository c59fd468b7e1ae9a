import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fusedMultiplyAddFloat64 } from '../../../../src/arith/index.js';
import { findTensorCoreArithmetic, tensorCoreProduct } from '../../../../src/hardware/index.js';
import type { ResolvedOperand } from '../../../../src/ptx/instructions/index.js';
import { bits64, float64 } from '../../../arith/exact.js';
import { capturedInstructions, readCapture } from '../../../hardware/tensor-core/captures.js';
import { constant, createTestWarp, vector, warpOperation } from './warp-registers.js';

const all = 0xffffffff;

/** Where PTX's tables of fragments say that element i of a lane is: the rows, columns and k of A, B and C. */
const tables = {
  /** m16n8k16 of 16-bit elements. */
  k16: {
    a: (i: number, group: number, thread: number) => ({
      row: i < 2 || (i >= 4 && i < 6) ? group : group + 8,
      k: thread * 2 + (i & 1) + (i < 4 ? 0 : 8),
    }),
    b: (i: number, group: number, thread: number) => ({
      k: thread * 2 + (i & 1) + (i < 2 ? 0 : 8),
      column: group,
    }),
  },
  /** m16n8k8 of tf32. */
  tf32: {
    a: (i: number, group: number, thread: number) => ({
      row: i === 0 || i === 2 ? group : group + 8,
      k: i < 2 ? thread : thread + 4,
    }),
    b: (i: number, group: number, thread: number) => ({
      k: i === 0 ? thread : thread + 4,
      column: group,
    }),
  },
  /** m16n8k32 of 8-bit integers. */
  bytes: {
    a: (i: number, group: number, thread: number) => ({
      row: i < 4 || (i >= 8 && i < 12) ? group : group + 8,
      k: thread * 4 + (i & 3) + (i < 8 ? 0 : 16),
    }),
    b: (i: number, group: number, thread: number) => ({
      k: thread * 4 + (i & 3) + (i < 4 ? 0 : 16),
      column: group,
    }),
  },
  c: (i: number, group: number, thread: number) => ({
    row: i < 2 ? group : group + 8,
    column: thread * 2 + (i & 1),
  }),
} as const;

interface Matrices {
  readonly k: number;
  readonly bits: 8 | 16 | 32;
  readonly table: (typeof tables)['k16' | 'tf32' | 'bytes'];
  readonly a: ArrayLike<number>;
  /** [n][k]. */
  readonly b: ArrayLike<number>;
  readonly c: ArrayLike<number>;
}

/** D of an instruction whose matrices are put into registers as PTX's tables say. */
function execute(name: string, { k, bits, table, a, b, c }: Matrices): Uint32Array {
  const warp = createTestWarp();
  const perWord = 32 / bits;
  const registers = (count: number) => Array.from({ length: count }, () => warp.register());
  const [d, aRegisters, bRegisters, cRegisters] = [
    registers(4),
    registers((16 * k) / 32 / perWord),
    registers((8 * k) / 32 / perWord),
    registers(4),
  ];
  const write = (
    register: { slot: (typeof d)[0]['slot'] },
    lane: number,
    i: number,
    value: number,
  ) => {
    warp.words(register)[lane] |= value << ((i % perWord) * bits);
  };
  for (let lane = 0; lane < 32; lane++) {
    const [group, thread] = [lane >> 2, lane & 3];
    for (let i = 0; i < aRegisters.length * perWord; i++) {
      const place = table.a(i, group, thread);
      write(aRegisters[Math.floor(i / perWord)], lane, i, a[place.row * k + place.k]);
    }
    for (let i = 0; i < bRegisters.length * perWord; i++) {
      const place = table.b(i, group, thread);
      write(bRegisters[Math.floor(i / perWord)], lane, i, b[place.column * k + place.k]);
    }
    for (let i = 0; i < 4; i++) {
      const place = tables.c(i, group, thread);
      warp.words(cRegisters[i])[lane] = c[place.row * 8 + place.column];
    }
  }
  const operands = [d, aRegisters, bRegisters, cRegisters].map(vector);
  expect(warpOperation(name, operands).execute(warp.registers, all)).toBe(null);
  const result = new Uint32Array(16 * 8);
  for (let lane = 0; lane < 32; lane++)
    for (let i = 0; i < 4; i++) {
      const place = tables.c(i, lane >> 2, lane & 3);
      result[place.row * 8 + place.column] = warp.words(d[i])[lane];
    }
  return result;
}

describe.each(capturedInstructions.filter(({ rows }) => rows === 16))(
  '$name of registers',
  (instruction) => {
    it('gives an H200’s results', () => {
      const format = instruction.a === 'bf16' ? 'bf16' : 'f16';
      const name = `mma.sync.aligned.m16n8k16.row.col.f32.${format}.${format}.f32`;
      for (const { a, b, c, d } of readCapture(instruction).slice(0, 24))
        expect(execute(name, { k: 16, bits: 16, table: tables.k16, a, b, c })).toEqual(
          Uint32Array.from(d),
        );
    });
  },
);

describe('mma.sync', () => {
  it('of tf32 is the product of its matrices', () => {
    const [a, b, c] = [128, 64, 128].map((length, seed) =>
      Uint32Array.from({ length }, (_, i) => Math.imul(i + 7 * seed + 1, 0x9e3779b9) & 0xbfffffff),
    );
    const name = 'mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32';
    const arithmetic = findTensorCoreArithmetic({
      instruction: 'mma.sync',
      architecture: 'sm_90',
      a: 'tf32',
    });
    const product = { m: 16, n: 8, k: 8, a, bTransposed: b, c } as const;
    expect(execute(name, { k: 8, bits: 32, table: tables.tf32, a, b, c })).toEqual(
      tensorCoreProduct(arithmetic, { ...product, aFormat: 'tf32', bFormat: 'tf32' }),
    );
  });

  it('of bytes is the exact sum, wrapped around or cut', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 512, maxLength: 512 }),
        fc.uint8Array({ minLength: 256, maxLength: 256 }),
        fc.array(fc.oneof(fc.constantFrom(2 ** 31 - 1, -(2 ** 31)), fc.integer()), {
          minLength: 128,
          maxLength: 128,
        }),
        fc.boolean(),
        (a, b, c, saturates) => {
          const d = execute(
            `mma.sync.aligned.m16n8k32.row.col${saturates ? '.satfinite' : ''}.s32.s8.u8.s32`,
            { k: 32, bits: 8, table: tables.bytes, a, b, c },
          );
          for (let row = 0; row < 16; row++)
            for (let column = 0; column < 8; column++) {
              let sum = BigInt(c[row * 8 + column]);
              for (let i = 0; i < 32; i++)
                sum += BigInt.asIntN(8, BigInt(a[row * 32 + i])) * BigInt(b[column * 32 + i]);
              const most = 2n ** 31n - 1n;
              const cut = sum > most ? most : sum < -most - 1n ? -most - 1n : sum;
              const expected = BigInt.asUintN(32, saturates ? cut : sum);
              if (BigInt(d[row * 8 + column]) !== expected) return false;
            }
          return true;
        },
      ),
      { numRuns: 4 },
    );
  });

  it('of one bit counts', () => {
    const warp = createTestWarp();
    const [a, b, c, d] = [1, 1, 2, 2].map((count) =>
      Array.from({ length: count }, () => warp.register()),
    );
    for (let lane = 0; lane < 32; lane++) {
      warp.words(a[0])[lane] = 0xf0f0f0f0;
      warp.words(b[0])[lane] = 0xffff0000;
      warp.words(c[0])[lane] = warp.words(c[1])[lane] = 5;
    }
    const operands = [d, a, b, c].map(vector);
    const form = 'mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32';
    warpOperation(`${form}.and.popc`, operands).execute(warp.registers, all);
    expect(warp.words(d[0])[3]).toBe(4 * 8 + 5);
    warpOperation(`${form}.xor.popc`, operands).execute(warp.registers, all);
    expect(warp.words(d[1])[30]).toBe(4 * 16 + 5);
  });

  it('of fp64 is a chain of fused multiply-adds', () => {
    const warp = createTestWarp();
    const [a, b, c, d] = [1, 1, 2, 2].map((count) =>
      Array.from({ length: count }, () => warp.register(64)),
    );
    const number = (lane: number, which: number) => Math.sin(lane * 7.3 + which) * 2 ** (lane % 5);
    const write = (words: Uint32Array, lane: number, value: number) => {
      words[2 * lane] = Number(bits64(value) & 0xffffffffn);
      words[2 * lane + 1] = Number(bits64(value) >> 32n);
    };
    for (let lane = 0; lane < 32; lane++) {
      write(warp.words(a[0]), lane, number(lane, 0));
      write(warp.words(b[0]), lane, number(lane, 1));
      for (const i of [0, 1]) write(warp.words(c[i]), lane, number(lane, 2 + i));
    }
    const name = 'mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64';
    warpOperation(name, [d, a, b, c].map(vector)).execute(warp.registers, all);
    for (let lane = 0; lane < 32; lane++)
      for (const i of [0, 1]) {
        const [row, column] = [lane >> 2, 2 * (lane & 3) + i];
        let sum = number(lane, 2 + i);
        for (let k = 0; k < 4; k++)
          sum = fusedMultiplyAddFloat64(
            number(4 * row + k, 0),
            number(4 * column + k, 1),
            sum,
            'nearest-even',
          );
        const words = warp.words(d[i]);
        const bits = (BigInt(words[2 * lane + 1]) << 32n) | BigInt(words[2 * lane]);
        expect(float64(bits)).toBe(sum);
      }
  });

  it('takes immediates for sources, and keeps no element of D that is a sink', () => {
    const name = 'mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32';
    const ones = 0x3f803f80;
    const decimal = (value: number) =>
      ({ kind: 'constant', format: 'f64', bits: bits64(value) }) as const;
    const sink = { kind: 'sink' } as const;
    fc.assert(
      fc.property(
        fc.array(fc.nat(0x3fff3fff), { minLength: 128, maxLength: 128 }),
        fc.float({ noNaN: true }),
        (bits, start) => {
          const warp = createTestWarp();
          const [a, b, c, d, kept] = [4, 2, 4, 4, 2].map((count) =>
            Array.from({ length: count }, () => warp.register()),
          );
          const startBits = new Uint32Array(Float32Array.of(start).buffer)[0];
          bits.forEach((word, i) => (warp.words(a[i >> 5])[i & 31] = word));
          b.forEach((register) => warp.words(register).fill(ones));
          [c[1], c[3]].forEach((register) => warp.words(register).fill(startBits));
          const run = (operands: readonly ResolvedOperand[][]) =>
            warpOperation(name, operands.map(vector)).execute(warp.registers, all);
          run([d, a, b, c]);
          const immediates = [c[0], decimal(start), c[2], decimal(start)];
          run([[kept[0], sink, kept[1], sink], a, [constant(ones), constant(ones)], immediates]);
          expect(warp.words(kept[0])).toEqual(warp.words(d[0]));
          expect(warp.words(kept[1])).toEqual(warp.words(d[2]));
          // The columns of D are alike but for what they began with.
          run([d, a, b, [c[1], c[1], c[3], c[3]]]);
          run([[sink, kept[0], sink, kept[1]], a, b, [c[0], decimal(start), c[2], decimal(start)]]);
          expect(warp.words(kept[0])).toEqual(warp.words(d[1]));
          expect(warp.words(kept[1])).toEqual(warp.words(d[3]));
        },
      ),
      { numRuns: 10 },
    );
  });

  it('says what it has not', () => {
    const refuse = (name: string) => () => warpOperation(name, []);
    const warp = createTestWarp();
    const four = vector(Array.from({ length: 4 }, () => warp.register()));
    const two = vector([warp.register(), warp.register()]);
    const integers = vector([0, 0, 0, 0].map(constant));
    expect(() =>
      warpOperation('mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32', [
        four,
        four,
        two,
        integers,
      ]),
    ).toThrow(/C of 4 registers/);
    expect(refuse('mma.sync.aligned.m16n8k16.row.col.f32.f64.f64.f32')).toThrow(
      /the shape and the formats/,
    );
    expect(refuse('mma.sync.aligned.m16n8k32.row.col.s32.s8.s4.s32')).toThrow(/formats/);
    expect(refuse('mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32')).toThrow(/D of 4, A of 4/);
  });
});
