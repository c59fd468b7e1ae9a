import type { TracedOperand, TracedProduct, TracedScales } from '../../machine/index.js';
import {
  lostValue,
  noValue,
  planeOfValue,
  decidedValue,
  type Losses,
  type Trace,
  valueFormat,
  valueOfPlanes,
} from '../trace/index.js';

/** The values of a matrix by their numbers; null where it has no tag at all. */
interface Values {
  readonly numbers: Uint32Array;
  readonly hasTags: boolean;
}

type Tagged = Pick<TracedOperand, 'patterns' | 'tags' | 'format'>;

/** The low and the high word of an element. */
function bitsAt(patterns: TracedOperand['patterns'], i: number): readonly [number, number] {
  if (!(patterns instanceof Float64Array)) return [patterns[i], 0];
  const words = new Uint32Array(patterns.buffer, patterns.byteOffset, 2 * patterns.length);
  return [words[2 * i], words[2 * i + 1]];
}

/** The values of elements of 8, 16 or 32 bits. Elements of bf16 may be read where tf32 is due, and no other format as another. */
function valuesOf(trace: Trace, { patterns, tags, format }: Tagged): Values | null {
  const own = valueFormat(format);
  if (own === null || tags === null) return null;
  const numbers = new Uint32Array(patterns.length);
  const [p, q, r, s] = tags;
  let hasTags = false;
  const { bytes } = own;
  for (let i = 0; i < numbers.length; i++) {
    if (bytes === 8) {
      const low = valueOfWide(trace, [p, q, r, s], i);
      if (low !== noValue) hasTags = true;
      numbers[i] = low === noValue ? trace.constant(own, ...bitsAt(patterns, i)) : low;
      continue;
    }
    const value = valueOfPlanes(trace, p[i], q[i], r[i], s[i], bytes);
    if (value === noValue) {
      numbers[i] = trace.constant(own, patterns[i] as number);
      continue;
    }
    hasTags = true;
    numbers[i] = value > decidedValue && trace.formatOf(value) === own ? value : lostValue;
  }
  return { numbers, hasTags };
}

/** The value of an element of 64 bits, from two words of each plane. */
function valueOfWide(
  trace: Trace,
  planes: readonly [ArrayLike<number>, ArrayLike<number>, ArrayLike<number>, ArrayLike<number>],
  i: number,
): number {
  const [p, q, r, s] = planes;
  const low = 2 * i;
  if ((p[low] | q[low] | r[low] | s[low] | p[low + 1] | q[low + 1] | r[low + 1] | s[low + 1]) === 0)
    return noValue;
  const tag =
    (p[low] & 0xff) | ((q[low] & 0xff) << 8) | ((r[low] & 0xff) << 16) | ((s[low] & 0xff) << 24);
  const value = tag >>> 3;
  const isWhole =
    value > decidedValue &&
    p[low] === planeOfValue(value, 0, 4) &&
    (p[low + 1] - 0x04040404) >>> 0 === p[low] &&
    [q, r, s].every((plane, j) => {
      const expected = planeOfValue(value, (j + 1) as 1 | 2 | 3, 4);
      return plane[low] === expected && plane[low + 1] === expected;
    }) &&
    trace.formatOf(value).bytes === 8;
  return isWhole ? value : lostValue;
}

function scaleValues(trace: Trace, scales: TracedScales | null): Values | null {
  return scales && valuesOf(trace, scales);
}

type Planes = readonly [Uint32Array, Uint32Array, Uint32Array, Uint32Array];

/** Planes of the tags of D: each element's value. */
function planesOf(values: Uint32Array, bytes: 2 | 4 | 8): Planes {
  const words = bytes === 8 ? 2 : 1;
  const plane = (index: 0 | 1 | 2 | 3): Uint32Array => {
    const tags = new Uint32Array(words * values.length);
    for (let i = 0; i < values.length; i++) {
      const part = planeOfValue(values[i], index, bytes === 2 ? 2 : 4);
      tags[words * i] = part;
      if (bytes === 8) tags[2 * i + 1] = index === 0 ? part + 0x04040404 : part;
    }
    return tags;
  };
  return [plane(0), plane(1), plane(2), plane(3)];
}

/** Which rows of a matrix have a lost value. */
function lostRows(values: Uint32Array, rows: number, k: number): Uint8Array {
  const lost = new Uint8Array(rows);
  for (let row = 0; row < rows; row++)
    for (let i = row * k; i < (row + 1) * k; i++) if (values[i] === lostValue) lost[row] = 1;
  return lost;
}

/** Takes products into a trace. */
export class ProductRecorder {
  readonly #trace: Trace;
  readonly #losses: Losses;
  readonly #operations = new Map<string, number>();

  constructor(trace: Trace, losses: Losses) {
    this.#trace = trace;
    this.#losses = losses;
  }

  #operation({ mnemonic, site, accumulator, a, b }: TracedProduct): number {
    const key = `${site} ${mnemonic}`;
    let known = this.#operations.get(key);
    if (known === undefined) {
      known = this.#trace.addOperation({
        origin: 'product',
        name: `${mnemonic} ${a.format} ${b.format} ${accumulator}`,
        function: null,
        limit: null,
        format: valueFormat(accumulator)!,
        site,
      });
      this.#operations.set(key, known);
    }
    return known;
  }

  /** `ValueTracer.product`. */
  product(product: TracedProduct): Planes | null {
    const trace = this.#trace;
    const { m, n, k, a, b, c, d, accumulator, site } = product;
    const format = valueFormat(accumulator)!;
    const bytes = format.bytes as 2 | 4 | 8;
    const [left, right] = [valuesOf(trace, a), valuesOf(trace, b)];
    const start = c && valuesOf(trace, { ...c, format: accumulator });
    const factors = { a: scaleValues(trace, a.scales), b: scaleValues(trace, b.scales) };
    const isUnknown =
      left === null ||
      right === null ||
      (c !== null && start === null) ||
      (a.scales !== null && (factors.a === null || factors.b === null));
    if (isUnknown) {
      this.#losses.lose(site, d.length);
      return planesOf(new Uint32Array(d.length).fill(lostValue), bytes);
    }
    const parts = [left, right, start, factors.a, factors.b];
    if (!parts.some((part) => part?.hasTags === true)) return null;
    const patterns =
      d instanceof Float64Array
        ? new BigUint64Array(d.buffer, d.byteOffset, d.length)
        : Uint32Array.from(d);
    const whole = trace.addProduct(
      this.#operation(product),
      {
        m,
        n,
        k,
        a: left.numbers,
        b: right.numbers,
        c: start?.numbers ?? null,
        isNegated: a.isNegated !== b.isNegated,
        scales:
          factors.a === null || factors.b === null || a.scales === null
            ? null
            : { a: factors.a.numbers, b: factors.b.numbers, block: a.scales.block },
      },
      patterns,
    );
    const [lostA, lostB] = [lostRows(left.numbers, m, k), lostRows(right.numbers, n, k)];
    const perRow = a.scales === null ? 0 : k / a.scales.block;
    const lostScales = {
      a: factors.a && lostRows(factors.a.numbers, m, perRow),
      b: factors.b && lostRows(factors.b.numbers, n, perRow),
    };
    const values = Uint32Array.from({ length: m * n }, (_, i) => {
      const [row, column] = [Math.floor(i / n), i % n];
      const isLost =
        lostA[row] | lostB[column] | (lostScales.a?.[row] ?? 0) | (lostScales.b?.[column] ?? 0);
      return isLost !== 0 || start?.numbers[i] === lostValue ? lostValue : whole.first + i;
    });
    return planesOf(values, bytes);
  }
}
