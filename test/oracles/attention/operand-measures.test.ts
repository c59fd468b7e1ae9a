import { expect, it } from 'vitest';
import { operandRow, readOperand, tileRows } from '../../../oracles/attention/operand.js';
import { randomValues } from '../../../properties/problems/values.js';
import { decodeTensor, formats, type FormatName } from '../../../src/formats/index.js';
import type { Tensor } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';

/** Throws unless an operand is that of rows of a tensor: each measure by its definition, each tile as often as one likes. */
function expectOperand(source: Tensor, first: number, rows: number, dim: number): void {
  const { precision } = formats[source.format];
  const all = decodeTensor(source).subarray(first, first + rows * dim);
  const finite = all.map((x) => (Number.isFinite(x) ? x : 0));
  const operand = readOperand(source, first, rows, dim);
  expect([operand.rows, operand.dim]).toEqual([rows, dim]);
  /** The last bit that the format has for numbers of an exponent; fp64 has none below 2^-1074. */
  const bitOf = (x: number) => {
    const exponent = Math.floor(Math.log2(Math.abs(x)));
    // The logarithm of a number just below a power of two may be rounded up.
    const own = 2 ** exponent > Math.abs(x) ? exponent - 1 : exponent;
    return x === 0 ? Infinity : Math.max(own + 1 - precision, -1074);
  };
  const known = new Map<number, number>();
  const bits = finite.map((x) => {
    let bit = known.get(x);
    if (bit === undefined) known.set(x, (bit = bitOf(x)));
    return bit;
  });
  const column = new Float64Array(dim);
  const ofTiles = Array.from({ length: Math.ceil(rows / tileRows) }, () => ({
    norm: 0,
    largest: 0,
    lowestBit: Infinity,
  }));
  let anySpecial = false;
  for (let row = 0; row < rows; row++) {
    const values = finite.subarray(row * dim, (row + 1) * dim);
    const isSpecial = !all.subarray(row * dim, (row + 1) * dim).every((x) => Number.isFinite(x));
    anySpecial ||= isSpecial;
    let [squares, largest, bit] = [0, 0, Infinity];
    for (let c = 0; c < dim; c++) {
      const size = Math.abs(values[c]);
      squares += size ** 2;
      largest = Math.max(largest, size);
      bit = Math.min(bit, bits[row * dim + c]);
      column[c] = Math.max(column[c], size);
    }
    expect(operand.special[row]).toBe(isSpecial ? 1 : 0);
    expect(operand.largest[row]).toBe(largest);
    expect(operand.lowestBit[row]).toBe(bit);
    // An upper bound on the norm, by no more than 2^-39 of it and what squares lose by underflow.
    expect(operand.norm[row]).toBeGreaterThanOrEqual(
      Math.max(largest, Math.sqrt(squares) * (1 + 2 ** -41)),
    );
    expect(operand.norm[row]).toBeLessThanOrEqual(
      Math.sqrt(squares) * (1 + 2 ** -39) + dim * 2 ** -529,
    );
    const ofTile = ofTiles[Math.floor(row / tileRows)];
    ofTile.norm = Math.max(ofTile.norm, operand.norm[row]);
    ofTile.largest = Math.max(ofTile.largest, largest);
    ofTile.lowestBit = Math.min(ofTile.lowestBit, bit);
  }
  expect(operand.anySpecial).toBe(anySpecial);
  expect(operand.columnLargest).toEqual(column);
  ofTiles.forEach((tile, index) => expect(operand.ofTile(index)).toEqual(tile));
  const last = ofTiles.length - 1;
  for (const index of [0, 0, last >> 1, last, 0]) {
    const [begin, end] = [index * tileRows * dim, Math.min((index + 1) * tileRows, rows) * dim];
    const values = operand.tile(index);
    const ofTile = operand.tileBits(index);
    expect(values.length).toBe(end - begin);
    for (let at = 0; at < values.length; at++) {
      const exact = finite[begin + at];
      if (values[at] !== exact) expect(values[at], `element ${at} of tile ${index}`).toBe(exact);
      const bit = exact === 0 ? 32767 : bits[begin + at];
      if (ofTile[at] !== bit) expect(ofTile[at], `bit ${at} of tile ${index}`).toBe(bit);
    }
    const row = index * tileRows + Math.min(3, rows - 1 - index * tileRows);
    expect([...operandRow(operand, row)]).toEqual([...finite.subarray(row * dim, (row + 1) * dim)]);
    for (const c of [0, dim - 1]) expect(operand.raw(row, c)).toBe(all[row * dim + c]);
  }
}

it('an operand has the measures of its rows, tiles and columns, in any format, from any element on', () => {
  const names: readonly FormatName[] = ['e4m3', 'e5m2', 'bf16', 'fp16', 'fp32', 'fp64'];
  for (let run = 0; run < scaled(4); run++)
    for (const format of names) {
      const random = randomValues(testSeed + run);
      const [rows, dim] = [random.integer(1, 140), random.integer(1, 5)];
      const first = random.integer(0, 9);
      const span = { e4m3: 8, e5m2: 14, fp16: 22, bf16: 130, fp32: 140, fp64: 600 }[
        format as 'fp64'
      ];
      // Some rows are zeros; some have numbers from subnormal to large, some infinities and NaNs.
      const kinds = Array.from({ length: rows + 10 }, () => random.integer(0, 3));
      const values = () => random.normal() * 2 ** random.integer(-span, span >> 1);
      const source = tensor(format, [1, 1, rows * dim + 20], (at) => {
        const kind = kinds[Math.floor(at / dim) % kinds.length];
        if (kind === 0) return 0;
        if (kind === 1) return random.normal();
        if (kind === 3 && random.uniform() < 0.2)
          return [NaN, Infinity, -Infinity][random.integer(0, 2)];
        return random.uniform() < 0.2 ? 0 : values();
      });
      expectOperand(source, first, rows, dim);
    }
});

it('an operand that is too long to be held is the same, tile by tile', () => {
  const random = randomValues(testSeed);
  const [rows, dim] = [130, 16_200];
  // Every byte is a number of E4M3 or one of its NaNs, which are in some rows alone.
  const bytes = Array.from({ length: 65_521 }, () => random.integer(0, 255));
  const data = Uint8Array.from({ length: rows * dim }, (_, at) => {
    const byte = bytes[at % bytes.length];
    return Math.floor(at / dim) % 3 !== 0 && (byte & 0x7f) === 0x7f ? 0 : byte;
  });
  expectOperand({ format: 'e4m3', shape: [1, 1, rows, dim], data }, 0, rows, dim);
});
