import { describe, expect, it } from 'vitest';
import { wordSource } from '../../../hardware/tensor-core/random-patterns.js';
import { constant, createTestWarp, vector, warpOperation } from './warp-registers.js';

const all = 0xffffffff;

/** A number of a type as its pattern: small whole numbers, which every type has. */
const patternOf: Readonly<Record<string, (value: number) => number>> = {
  s8: (value) => value & 0xff,
  bf16: (value) => new Uint32Array(Float32Array.of(value).buffer)[0] >>> 16,
  tf32: (value) => new Uint32Array(Float32Array.of(value).buffer)[0],
};

/** A sparse matrix: its numbers, those that are stored, and the four bits of each chunk. */
function drawSparse(rows: number, k: number, chunk: 2 | 4, word: () => number) {
  const dense = new Int32Array(rows * k);
  const stored: number[] = [];
  const bits: number[][] = [];
  for (let row = 0; row < rows; row++) {
    bits.push([]);
    for (let first = 0; first < k; first += chunk) {
      const pairs = [0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110];
      const indices = chunk === 2 ? [0b0100, 0b1110][word() % 2] : pairs[word() % 6];
      bits[row].push(indices);
      const places = chunk === 2 ? [(indices & 3) >> 1] : [indices & 3, indices >> 2];
      for (const place of places) {
        const value = (word() % 17) - 8;
        stored.push(value);
        dense[row * k + first + place] = value;
      }
    }
  }
  return { dense, stored, bits };
}

/** Chunks as the words of 16 or 32 bits that CUTLASS keeps metadata in, [row][word]. */
function packed(bits: readonly (readonly number[])[], wordBits: 16 | 32): number[][] {
  const perWord = wordBits / 4;
  return bits.map((row) =>
    Array.from({ length: row.length / perWord }, (_, i) =>
      row
        .slice(i * perWord, (i + 1) * perWord)
        .reduce((all, one, at) => all + one * 2 ** (4 * at), 0),
    ),
  );
}

/**
 * The words of 32 lanes that ldmatrix loads of metadata in CUTLASS' order: rows that are 8 apart are neighbours, blocks of 2 × 2
 * are turned, and two columns lie together.
 */
function reordered(e: readonly (readonly number[])[], wordBits: 16 | 32): Uint32Array {
  const [group, interweave] = wordBits === 16 ? [32, 4] : [16, 2];
  const memory = new Map<number, number>();
  e.forEach((row, m) =>
    row.forEach((value, k) => {
      let [toRow, toColumn] = [(m % 8) * interweave + Math.floor((m % group) / 8), k];
      if (toRow % 2 === 0 && toColumn % 2 === 1) [toRow, toColumn] = [toRow + 1, toColumn - 1];
      else if (toRow % 2 === 1 && toColumn % 2 === 0) [toRow, toColumn] = [toRow - 1, toColumn + 1];
      memory.set(2 * toRow + toColumn, value);
    }),
  );
  return Uint32Array.from({ length: 32 }, (_, lane) => {
    if (wordBits === 32) return memory.get(lane) ?? 0;
    return (memory.get(2 * lane) ?? 0) + (memory.get(2 * lane + 1) ?? 0) * 2 ** 16;
  });
}

interface Product {
  readonly name: string;
  readonly type: string;
  readonly bits: 8 | 16 | 32;
  readonly k: number;
  readonly selector: number;
  /** [16][k / 2] and [k][8]. */
  readonly stored: readonly number[];
  readonly b: Int32Array;
  readonly metadata: Uint32Array;
}

/** D as numbers, [16][8], with C = 1; or what is wrong. */
function execute({ name, type, bits, k, selector, stored, b, metadata }: Product) {
  const warp = createTestWarp();
  const registers = (count: number) => Array.from({ length: count }, () => warp.register());
  const perWord = 32 / bits;
  const [d, c] = [registers(4), registers(4)];
  const [ofA, ofB] = [registers((16 * k) / 2 / 32 / perWord), registers((8 * k) / 32 / perWord)];
  const e = warp.register();
  warp.words(e).set(metadata);
  const isInteger = type === 's8';
  const one = isInteger ? 1 : new Uint32Array(Float32Array.of(1).buffer)[0];
  for (let lane = 0; lane < 32; lane++) {
    const [group, thread] = [lane >> 2, lane & 3];
    // The tables of the ISA: a register has the stored elements of 2 · perWord columns from `firstcol` on.
    ofA.forEach((register, r) => {
      const row = group + 8 * (r % 2);
      const firstColumn = (thread + 4 * Math.floor(r / 2)) * 2 * perWord;
      for (let i = 0; i < perWord; i++) {
        const value = stored[(row * k) / 2 + firstColumn / 2 + i];
        warp.words(register)[lane] |= patternOf[type](value) << (i * bits);
      }
    });
    ofB.forEach((register, r) => {
      for (let i = 0; i < perWord; i++) {
        const value = b[((4 * r + thread) * perWord + i) * 8 + group];
        warp.words(register)[lane] |= patternOf[type](value) << (i * bits);
      }
    });
    for (const register of c) warp.words(register)[lane] = one;
  }
  const operands = [d, ofA, ofB, c].map(vector);
  const operation = warpOperation(name, [...operands, e, constant(selector)]);
  const wrong = operation.execute(warp.registers, all);
  if (wrong !== null) return wrong;
  return Array.from({ length: 128 }, (_, i) => {
    const [row, column] = [i >> 3, i & 7];
    const lane = (row % 8) * 4 + (column >> 1);
    const word = warp.words(d[2 * (row >> 3) + (column & 1)])[lane];
    return isInteger ? word | 0 : new Float32Array(Uint32Array.of(word).buffer)[0];
  });
}

function exactProduct(dense: Int32Array, b: Int32Array, k: number): number[] {
  return Array.from({ length: 128 }, (_, i) => {
    let sum = 1;
    for (let l = 0; l < k; l++) sum += dense[(i >> 3) * k + l] * b[l * 8 + (i & 7)];
    return sum;
  });
}

const small = (count: number, word: () => number) =>
  Int32Array.from({ length: count }, () => (word() % 17) - 8);

describe('mma.sp', () => {
  it.each([
    ['bf16', 16, 4, 32, 'm16n8k32.row.col.f32.bf16.bf16.f32'],
    ['tf32', 32, 2, 16, 'm16n8k16.row.col.f32.tf32.tf32.f32'],
  ] as const)(
    'multiplies by the columns that the metadata of CUTLASS name, two tiles by two selectors: %s',
    (type, bits, chunk, k, shape) => {
      const word = wordSource(k);
      // Rows 0 to 31: the words of the upper tile are those of selector 1.
      const { dense, stored, bits: chunks } = drawSparse(32, k, chunk, word);
      const metadata = reordered(packed(chunks, 16), 16);
      for (const selector of [0, 1])
        for (const sparse of ['sp', 'sp::ordered_metadata']) {
          const b = small(k * 8, word);
          const name = `mma.${sparse}.sync.aligned.${shape}`;
          const own = stored.slice((selector * 16 * k) / 2, ((selector + 1) * 16 * k) / 2);
          const d = execute({ name, type, bits, k, selector, stored: own, b, metadata });
          const rows = dense.slice(selector * 16 * k, (selector + 1) * 16 * k);
          expect(d).toEqual(exactProduct(rows, b, k));
        }
    },
  );

  it('of bytes too, of which a word has 32 columns of one row', () => {
    const word = wordSource(8);
    const { dense, stored, bits: chunks } = drawSparse(16, 64, 4, word);
    const metadata = reordered(packed(chunks, 32), 32);
    const b = small(64 * 8, word);
    const whole = { type: 's8', bits: 8, b, metadata } as const;
    const name = (k: number) => `mma.sp.sync.aligned.m16n8k${k}.row.col.s32.s8.s8.s32`;
    const d = execute({ ...whole, name: name(64), k: 64, selector: 0, stored });
    expect(d).toEqual(exactProduct(dense, b, 64));
    // The same in two steps, each with the lanes of its selector.
    for (const selector of [0, 1]) {
      const first = 32 * selector;
      const own = stored.filter((_, i) => Math.floor((i % 32) / 16) === selector);
      const half = b.slice(first * 8, (first + 32) * 8);
      const rows = dense.filter((_, i) => Math.floor((i % 64) / 32) === selector);
      const part = { ...whole, b: half, name: name(32), k: 32, selector, stored: own };
      expect(execute(part)).toEqual(exactProduct(rows, half, 32));
    }
  });

  it('has one lane of four hold the metadata of the smallest shapes', () => {
    const word = wordSource(5);
    for (const selector of [0, 1, 2, 3]) {
      const { dense, stored, bits } = drawSparse(16, 16, 4, word);
      const e = packed(bits, 16);
      const metadata = Uint32Array.from({ length: 32 }, (_, lane) =>
        (lane & 3) === selector ? e[lane >> 2][0] + e[(lane >> 2) + 8][0] * 2 ** 16 : 0,
      );
      const b = small(128, word);
      const name = 'mma.sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32';
      const d = execute({ name, type: 'bf16', bits: 16, k: 16, selector, stored, b, metadata });
      expect(d).toEqual(exactProduct(dense, b, 16));
    }
  });

  it('reports metadata that are none, and in ordered forms those that descend', () => {
    const of = (sparse: string, indices: number) =>
      execute({
        name: `mma.${sparse}.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32`,
        type: 'bf16',
        bits: 16,
        k: 32,
        selector: 0,
        stored: Array<number>(256).fill(1),
        b: new Int32Array(256),
        metadata: new Uint32Array(32).fill(indices * 0x11111111),
      });
    expect(of('sp', 0b0101)).toContain('lane 0 has the metadata 0b0101 for row 0, columns 0 to 3');
    expect(of('sp::ordered_metadata', 0b0001)).toContain('0b0001');
    expect(of('sp', 0b0001)).toEqual(Array(128).fill(1));
  });

  it('refuses selectors and sums that there are not', () => {
    const none = { type: 'bf16', bits: 16, k: 32, stored: Array<number>(256).fill(0) } as const;
    const form = { ...none, b: new Int32Array(256), metadata: new Uint32Array(32) };
    const shape = 'm16n8k32.row.col.f32.bf16.bf16.f32';
    expect(() => execute({ ...form, name: `mma.sp.sync.aligned.${shape}`, selector: 2 })).toThrow(
      'a selector but 0 to 1',
    );
  });
});
