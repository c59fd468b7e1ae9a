import { expect, it } from 'vitest';
import { randomValues } from '../../properties/problems/values.js';
import {
  decode,
  decodeFinite,
  decodeMeasured,
  decodeToFloat64,
  formats,
  patternsOf,
  storageOf,
} from '../../src/formats/index.js';
import { scaled, testSeed } from '../setup/effort.js';

const names = ['bf16', 'fp16'] as const;

/** Data whose patterns are those that are given. */
function dataOf(name: (typeof names)[number], patterns: readonly number[]) {
  return storageOf(formats[name], Uint16Array.from(patterns));
}

it.each(names)('every pattern of %s is decoded to its value at every place of a vector', (name) => {
  const patterns = Array.from({ length: 65_536 + 16 }, (_, i) => i % 65_536);
  const data = dataOf(name, patterns);
  for (let first = 0; first < 9; first++) {
    const values = decodeToFloat64(data, formats[name], undefined, first, first + 65_536);
    values.forEach((x, i) => {
      if (!Object.is(x, decode(formats[name], patterns[first + i])))
        expect.fail(`0x${patterns[first + i].toString(16)} is decoded to ${x}`);
    });
  }
});

it.each(names)('no number behind the last of %s is written', (name) => {
  for (const count of [63, 64, 65, 71, 8191, 8192, 8193]) {
    const out = new Float64Array(count + 9).fill(-7);
    decodeToFloat64(dataOf(name, new Array<number>(count).fill(0x3c00)), formats[name], out);
    expect(out[count - 1]).toBe(decode(formats[name], 0x3c00));
    expect([...out.subarray(count)]).toEqual(new Array(9).fill(-7));
  }
});

it('rows have the measures of their definition', () => {
  const random = randomValues(testSeed);
  for (let run = 0; run < scaled(60); run++) {
    const name = names[run % 2];
    const [rows, dim] = [random.integer(1, 64), 8 * random.integer(1, 20)];
    const first = random.integer(0, 11);
    const limit = { bf16: 0x7f7f, fp16: 0x7bff }[name];
    const top = random.uniform() < 0.5 ? limit : random.integer(1, 0x600);
    // Some rows are zeros, some hold a zero; signs are any.
    const patterns = Array.from({ length: first + rows * dim + 3 }, (_, at) => {
      const row = Math.floor((at - first) / dim);
      const isZero = row % 5 === 0 || (row % 5 === 1 && random.uniform() < 0.1);
      return (
        (isZero ? 0 : random.integer(row % 5 === 2 ? 0 : 1, top)) | (random.integer(0, 1) << 15)
      );
    });
    const tensor = { format: name, shape: [patterns.length], data: dataOf(name, patterns) };
    const out = new Float64Array(rows * dim + 2).fill(-7);
    const found = decodeMeasured(tensor, first, first + rows * dim, dim, out);
    expect([...out.subarray(rows * dim)]).toEqual([-7, -7]);
    const values = out.subarray(0, rows * dim);
    expect(values).toEqual(
      decodeToFloat64(tensor.data, formats[name]).subarray(first, first + rows * dim),
    );
    const columns = new Float64Array(dim);
    for (let row = 0; row < rows; row++) {
      const sizes = values.subarray(row * dim, (row + 1) * dim).map(Math.abs);
      let squares = 0;
      for (const x of sizes) squares += x * x;
      sizes.forEach((x, c) => (columns[c] = Math.max(columns[c], x)));
      const nonzero = [...sizes].filter((x) => x > 0);
      expect(found!.squares[row]).toBe(squares);
      expect(found!.largest[row]).toBe(Math.max(...sizes));
      expect(found!.least[row]).toBe(Math.min(...sizes));
      expect(found!.smallest[row]).toBe(nonzero.length === 0 ? 0 : Math.min(...nonzero));
    }
    expect(found!.columns).toEqual(columns);
  }
});

it('rows with an infinity or a NaN have no measures, and are decoded with zeros for them', () => {
  for (const name of names)
    for (const special of [formats[name].canonicalNan, { bf16: 0xff80, fp16: 0xfc00 }[name]])
      for (const place of [0, 7, 8, 511]) {
        const data = dataOf(name, new Array<number>(512).fill(0x3c00));
        patternsOf(data, formats[name])[place] = special;
        const tensor = { format: name, shape: [512], data };
        const out = new Float64Array(512);
        expect(decodeMeasured(tensor, 0, 512, 64, out)).toBeNull();
        const one = decode(formats[name], 0x3c00);
        const expected = new Float64Array(512).fill(one);
        expected[place] = 0;
        expect(decodeFinite(tensor, 0, 512, out)).toEqual(expected);
      }
});
