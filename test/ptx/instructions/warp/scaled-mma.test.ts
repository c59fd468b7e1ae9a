import { describe, expect, it } from 'vitest';
import {
  decodeOperand,
  operandFormats,
  type OperandFormatName,
} from '../../../../src/hardware/index.js';
import type { ResolvedOperand } from '../../../../src/ptx/instructions/index.js';
import { scaled } from '../../../setup/effort.js';
import { exactSum, roundedTowardZero } from '../../../hardware/tensor-core/exact-block-scaled.js';
import { wordSource } from '../../../hardware/tensor-core/random-patterns.js';
import { constant, createTestWarp, vector, warpOperation } from './warp-registers.js';

const all = 0xffffffff;
type Kind = 'mxf8f6f4' | 'mxf4' | 'mxf4nvf4';
type Scale = 'ue8m0' | 'ue4m3';

interface Form {
  readonly kind: Kind | 'f8f6f4';
  readonly a: OperandFormatName;
  readonly b: OperandFormatName;
  readonly scale: Scale;
  /** Number of factors of a row. */
  readonly perRow: 1 | 2 | 4;
}

interface Selectors {
  readonly byteA: number;
  readonly threadA: number;
  readonly byteB: number;
  readonly threadB: number;
}

interface Matrices {
  /** [16][k] and [8][k] patterns. */
  readonly a: readonly number[];
  readonly b: readonly number[];
  /** [16][perRow] and [8][perRow]. */
  readonly aScales: readonly number[];
  readonly bScales: readonly number[];
  /** [16][8] fp32 patterns. */
  readonly c: readonly number[];
}

const kOf = (kind: Form['kind']) => (kind.startsWith('mxf4') ? 64 : 32);

/** PTX's tables of fragments: the row of A (column of B) and k of element i of lane 4·group + thread. */
const tables = {
  32: {
    a: (i: number, group: number, thread: number) => ({
      row: i < 4 || (i >= 8 && i < 12) ? group : group + 8,
      k: thread * 4 + (i & 3) + (i < 8 ? 0 : 16),
    }),
    b: (i: number, group: number, thread: number) => ({
      row: group,
      k: thread * 4 + (i & 3) + (i < 4 ? 0 : 16),
    }),
  },
  64: {
    a: (i: number, group: number, thread: number) => ({
      row: i < 8 || (i >= 16 && i < 24) ? group : group + 8,
      k: thread * 8 + (i & 7) + (i < 16 ? 0 : 32),
    }),
    b: (i: number, group: number, thread: number) => ({
      row: group,
      k: thread * 8 + (i & 7) + (i < 8 ? 0 : 32),
    }),
  },
} as const;

/** An element as its container has it: 4 bits in the middle of a byte, 6 bits below, with ones for padding; or two to a byte. */
function contained(format: OperandFormatName, isPacked: boolean, pattern: number): number {
  if (isPacked) return pattern;
  if (format === 'e2m1') return (pattern << 2) | 0xc3;
  return operandFormats[format].storageBits === 6 ? pattern | 0xc0 : pattern;
}

function mnemonic({ kind, a, b, scale, perRow }: Form): string {
  const scaling = kind === 'f8f6f4' ? '' : `.block_scale.scale_vec::${perRow}X`;
  const suffix = kind === 'f8f6f4' ? '' : `.${scale}`;
  return `mma.sync.aligned.m16n8k${kOf(kind)}.row.col.kind::${kind}${scaling}.f32.${a}.${b}.f32${suffix}`;
}

/** D [16][8] of an instruction whose operands are put into registers as PTX says, with rubbish where nothing is read. */
function execute(form: Form, matrices: Matrices, selectors: Selectors): Uint32Array {
  const warp = createTestWarp();
  const registers = (count: number) => Array.from({ length: count }, () => warp.register());
  const [d, a, b, c] = [registers(4), registers(4), registers(2), registers(4)];
  const [aFactors, bFactors] = registers(2);
  const k = kOf(form.kind) as 32 | 64;
  const [perWord, bits] = k === 64 ? [8, 4] : [4, 8];
  for (let lane = 0; lane < 32; lane++) {
    const [group, thread] = [lane >> 2, lane & 3];
    for (const [side, into] of [
      ['a', a],
      ['b', b],
    ] as const)
      for (let i = 0; i < into.length * perWord; i++) {
        const place = tables[k][side](i, group, thread);
        const pattern = matrices[side][place.row * k + place.k];
        const element = contained(form[side], k === 64, pattern);
        warp.words(into[Math.floor(i / perWord)])[lane] |= element << ((i % perWord) * bits);
      }
    for (let i = 0; i < 4; i++) {
      const [row, column] = [i < 2 ? group : group + 8, thread * 2 + (i & 1)];
      warp.words(c[i])[lane] = matrices.c[row * 8 + column];
    }
    const wordOf = (factors: readonly number[], row: number, byte: number): number =>
      factors.slice(row * form.perRow, (row + 1) * form.perRow).reduce((word, factor, at) => {
        const shift = 8 * (byte + at);
        return ((word & ~(0xff << shift)) | (factor << shift)) >>> 0;
      }, 0xffffffff);
    const { byteA, threadA, byteB, threadB } = selectors;
    const rowOfLane =
      thread === 2 * threadA ? group : thread === 2 * threadA + 1 ? group + 8 : null;
    warp.words(aFactors)[lane] =
      rowOfLane === null ? 0xffffffff : wordOf(matrices.aScales, rowOfLane, byteA);
    warp.words(bFactors)[lane] =
      thread === threadB ? wordOf(matrices.bScales, group, byteB) : 0xffffffff;
  }
  const { byteA, threadA, byteB, threadB } = selectors;
  const factors: ResolvedOperand[] =
    form.kind === 'f8f6f4'
      ? []
      : [
          vector([aFactors]),
          vector([constant(byteA), constant(threadA)]),
          bFactors,
          vector([constant(byteB), constant(threadB)]),
        ];
  const operation = warpOperation(
    mnemonic(form),
    [...[d, a, b, c].map(vector), ...factors],
    'sm_120',
  );
  expect(operation.execute(warp.registers, all)).toBe(null);
  const result = new Uint32Array(128);
  for (let lane = 0; lane < 32; lane++)
    for (let i = 0; i < 4; i++) {
      const [row, column] = [(lane >> 2) + (i < 2 ? 0 : 8), (lane & 3) * 2 + (i & 1)];
      result[row * 8 + column] = warp.words(d[i])[lane];
    }
  return result;
}

const forms: readonly Form[] = [
  ...(['e4m3', 'e5m2', 'e2m3', 'e3m2', 'e2m1'] as const).flatMap((a) =>
    (['e4m3', 'e2m3', 'e2m1'] as const).map(
      (b) => ({ kind: 'mxf8f6f4', a, b, scale: 'ue8m0', perRow: 1 }) as const,
    ),
  ),
  { kind: 'mxf4', a: 'e2m1', b: 'e2m1', scale: 'ue8m0', perRow: 2 },
  { kind: 'mxf4nvf4', a: 'e2m1', b: 'e2m1', scale: 'ue8m0', perRow: 2 },
  { kind: 'mxf4nvf4', a: 'e2m1', b: 'e2m1', scale: 'ue8m0', perRow: 4 },
  { kind: 'mxf4nvf4', a: 'e2m1', b: 'e2m1', scale: 'ue4m3', perRow: 4 },
];

/** Every selector that a form takes. */
function selectorsOf({ perRow }: Form): Selectors[] {
  const bytes = [0, 1, 2, 3].filter((at) => at % perRow === 0);
  return bytes.flatMap((byteA) =>
    [0, 1, 2, 3].map((threadB) => ({
      byteA,
      threadA: threadB & 1,
      byteB: bytes.at(-1 - bytes.indexOf(byteA))!,
      threadB,
    })),
  );
}

const valueOf = (format: OperandFormatName, pattern: number): number => {
  const { significand, exponent } = decodeOperand(operandFormats[format], pattern);
  return significand * 2 ** exponent;
};

/** Patterns of small numbers: the integers and halves up to 3 that a format has. */
function smallNumbers(format: OperandFormatName): number[] {
  return Array.from({ length: 2 ** operandFormats[format].storageBits }, (_, bits) => bits).filter(
    (bits) => Math.abs(valueOf(format, bits)) <= 3 && Number.isInteger(2 * valueOf(format, bits)),
  );
}

const scaleValue = (scale: Scale, bits: number): number =>
  scale === 'ue8m0' ? 2 ** (bits - 127) : valueOf('e4m3', bits & 0x7f);

function draw<T>(count: number, word: () => number, from: readonly T[]): T[] {
  return Array.from({ length: count }, () => from[word() % from.length]);
}

const floatBits = (value: number): number => new Uint32Array(Float32Array.of(value).buffer)[0];

function smallMatrices(form: Form, word: () => number): Matrices {
  const k = kOf(form.kind);
  // Powers of two from 1/4 to 4; of e4m3, with and without the sign that counts for nothing, 1, 1.5, 2 and 3.
  const scales = form.scale === 'ue8m0' ? [125, 126, 127, 128, 129] : [0x38, 0x3c, 0x40, 0xc4];
  return {
    a: draw(16 * k, word, smallNumbers(form.a)),
    b: draw(8 * k, word, smallNumbers(form.b)),
    aScales: draw(16 * form.perRow, word, scales),
    bScales: draw(8 * form.perRow, word, scales),
    c: Array.from({ length: 128 }, () => floatBits((word() % 64) - 32)),
  };
}

describe('mma.sync with scale factors', () => {
  it.each(forms.map((form) => [mnemonic(form), form] as const))(
    '%s is the exact product of small numbers, whatever the selectors',
    (_, form) => {
      const word = wordSource(form.perRow + form.a.length);
      const k = kOf(form.kind);
      const block = k / form.perRow;
      for (const selectors of selectorsOf(form)) {
        const matrices = smallMatrices(form, word);
        const d = new Float32Array(execute(form, matrices, selectors).buffer);
        for (let row = 0; row < 16; row++)
          for (let column = 0; column < 8; column++) {
            let sum = new Float32Array(Uint32Array.of(matrices.c[row * 8 + column]).buffer)[0];
            for (let i = 0; i < k; i++) {
              const at = Math.floor(i / block);
              sum +=
                valueOf(form.a, matrices.a[row * k + i]) *
                scaleValue(form.scale, matrices.aScales[row * form.perRow + at]) *
                valueOf(form.b, matrices.b[column * k + i]) *
                scaleValue(form.scale, matrices.bScales[column * form.perRow + at]);
            }
            expect(d[row * 8 + column]).toBe(sum);
          }
      }
    },
  );

  it.each(forms.slice(-4).map((form) => [mnemonic(form), form] as const))(
    '%s truncates its terms as MMA-Sim says',
    (_, form) => {
      const word = wordSource(7);
      const k = kOf(form.kind);
      for (let trial = 0; trial < scaled(4); trial++) {
        const scales =
          form.scale === 'ue8m0'
            ? Array.from({ length: 60 }, (_, i) => 97 + i)
            : Array.from({ length: 0x7f }, (_, i) => i);
        const matrices: Matrices = {
          a: draw(16 * k, word, [...Array(16).keys()]),
          b: draw(8 * k, word, [...Array(16).keys()]),
          aScales: draw(16 * form.perRow, word, scales),
          bScales: draw(8 * form.perRow, word, scales),
          c: Array.from({ length: 128 }, () => floatBits(((word() % 4097) - 2048) / 2 ** 9)),
        };
        const d = execute(form, matrices, { byteA: 0, threadA: 1, byteB: 0, threadB: 2 });
        for (let i = 0; i < 128; i++) {
          const [row, column] = [i >> 3, i & 7];
          const line = <T>(of: readonly T[], at: number, size: number) =>
            of.slice(at * size, (at + 1) * size);
          const terms = {
            aFormat: form.a,
            bFormat: form.b,
            c: matrices.c[i],
            a: line(matrices.a, row, k),
            b: line(matrices.b, column, k),
            aScales: line(matrices.aScales, row, form.perRow),
            bScales: line(matrices.bScales, column, form.perRow),
          };
          const kind = form.kind as Kind;
          const block = (k / form.perRow) as 16 | 32;
          const { truncated } = exactSum(
            { kind, k: k as 32 | 64, block, scale: form.scale },
            terms,
          );
          expect(d[i]).toBe(roundedTowardZero(truncated));
        }
      }
    },
  );

  it('keeps NaN and infinities in their rows and columns', () => {
    const form: Form = { kind: 'mxf8f6f4', a: 'e5m2', b: 'e4m3', scale: 'ue8m0', perRow: 1 };
    const ones: Matrices = {
      a: Array<number>(16 * 32).fill(0x3c),
      b: Array<number>(8 * 32).fill(0x38),
      aScales: Array<number>(16).fill(127),
      bScales: Array<number>(8).fill(127),
      c: Array<number>(128).fill(0),
    };
    const run = (changed: Partial<Matrices>) =>
      execute(form, { ...ones, ...changed }, { byteA: 2, threadA: 1, byteB: 3, threadB: 1 });
    const nan = 0x7fffffff;
    const with_ = (list: readonly number[], at: number, value: number) => list.with(at, value);
    const expected = (at: (row: number, column: number) => number) =>
      Uint32Array.from({ length: 128 }, (_, i) => at(i >> 3, i & 7));
    const sum = floatBits(32);
    // A factor of 0xff is NaN, the smallest is 2^-127.
    expect(run({ aScales: with_(ones.aScales, 9, 0xff) })).toEqual(
      expected((row) => (row === 9 ? nan : sum)),
    );
    expect(run({ bScales: with_(ones.bScales, 5, 0) })).toEqual(
      expected((_, column) => (column === 5 ? floatBits(2 ** -122) : sum)),
    );
    expect(run({ a: with_(ones.a, 3 * 32 + 7, 0xfc) })).toEqual(
      expected((row) => (row === 3 ? floatBits(-Infinity) : sum)),
    );
    // Infinity times zero.
    expect(run({ a: with_(ones.a, 3 * 32 + 7, 0x7c), b: with_(ones.b, 2 * 32 + 7, 0) })).toEqual(
      expected((row, column) =>
        row !== 3 ? (column === 2 ? floatBits(31) : sum) : column === 2 ? nan : floatBits(Infinity),
      ),
    );
    expect(run({ b: with_(ones.b, 2 * 32 + 7, 0x7f) })).toEqual(
      expected((_, column) => (column === 2 ? nan : sum)),
    );
  });

  it('refuses what the ISA does not have', () => {
    const lower = (name: string, architecture: 'sm_90' | 'sm_110' | 'sm_120' = 'sm_120') =>
      warpOperation(name, [], architecture);
    const mxf8 = mnemonic(forms[0]);
    expect(() => lower(mxf8)).toThrow(/D of 4, A of 4, B of 2 and C of 4 registers/);
    expect(() => lower(mxf8, 'sm_110')).toThrow(/which is not on sm_110 but on sm_120/);
    expect(() => lower(mxf8.replace('1X', '2X'))).toThrow(/blocks of kind::mxf8f6f4 by/);
    expect(() => lower(mnemonic(forms.at(-1)!).replace('4X', '2X'))).toThrow(/multiplies no e2m1/);
    expect(() => lower(mxf8.replace('k32', 'k64'))).toThrow(/shape/);
    expect(() => lower(mxf8.replace('.f32.e4m3.e4m3.f32', '.f16.e4m3.e4m3.f16'))).toThrow(
      /formats/,
    );
    expect(() =>
      lower('mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32', 'sm_90'),
    ).toThrow(/not on sm_90 but on sm_120/);
    expect(() => lower('mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e2m1.f32')).toThrow(/formats/);
  });

  it('finds selectors that are none', () => {
    const warp = createTestWarp();
    const registers = (count: number) =>
      vector(Array.from({ length: count }, () => warp.register()));
    const [scale, byte] = [warp.register(), warp.register(16)];
    const run = (name: string, [byteA, threadA]: readonly ResolvedOperand[]) =>
      warpOperation(
        name,
        [
          ...[4, 4, 2, 4].map(registers),
          ...[scale, vector([byteA, threadA]), scale, vector([constant(0), constant(3)])],
        ],
        'sm_120',
      ).execute(warp.registers, all);
    const [mxf8, mxf4] = [forms[0], forms.at(-4)!].map(mnemonic);
    expect(run(mxf8, [constant(3), constant(1)])).toBe(null);
    expect(run(mxf8, [constant(3), constant(2)])).toBe('thread-id-a is 2; 0 to 1 is due');
    expect(run(mxf4, [constant(1), constant(0)])).toBe('byte-id-a is 1; 0, 2 is due');
    expect(run(mxf8, [byte, constant(0)])).toBe(null);
    warp.words(byte)[5] = 1;
    expect(run(mxf8, [byte, constant(0)])).toBe(
      'byte-id-a is not the same in all lanes; 0, 1, 2, 3 is due',
    );
  });
});

describe('mma.sync of kind::f8f6f4', () => {
  it.each(
    (['e4m3', 'e5m2', 'e2m3', 'e3m2', 'e2m1'] as const).flatMap((a) =>
      (['e5m2', 'e3m2', 'e2m1'] as const).map((b) => [a, b] as const),
    ),
  )('of %s and %s takes elements out of their bytes', (a, b) => {
    const form: Form = { kind: 'f8f6f4', a, b, scale: 'ue8m0', perRow: 1 };
    const matrices = smallMatrices(form, wordSource(3));
    const d = new Float32Array(
      execute(form, matrices, { byteA: 0, threadA: 0, byteB: 0, threadB: 0 }).buffer,
    );
    for (let i = 0; i < 128; i++) {
      let sum = new Float32Array(Uint32Array.of(matrices.c[i]).buffer)[0];
      for (let k = 0; k < 32; k++)
        sum += valueOf(a, matrices.a[(i >> 3) * 32 + k]) * valueOf(b, matrices.b[(i & 7) * 32 + k]);
      expect(d[i]).toBe(sum);
    }
  });
});
