import type {
  ElementTags,
  TracedOperand,
  TracedProduct,
  TracedScales,
} from '../../machine/index.js';
import {
  lostValue,
  noValue,
  planeOfValue,
  decidedValue,
  type Losses,
  type Trace,
  valueFormat,
  type ValueFormat,
  valueOfPlanes,
} from '../trace/index.js';

/** The values of a matrix by their numbers; null where it has no tag at all. */
interface Values {
  readonly numbers: Uint32Array;
  readonly hasTags: boolean;
  /** Elements whose values are of another format. */
  readonly unreadable: number;
}

type Tagged = Pick<TracedOperand, 'patterns' | 'tags' | 'format'>;

/** The low and the high word of an element. */
function bitsAt(patterns: TracedOperand['patterns'], i: number): readonly [number, number] {
  if (!(patterns instanceof Float64Array)) return [patterns[i], 0];
  const words = new Uint32Array(patterns.buffer, patterns.byteOffset, 2 * patterns.length);
  return [words[2 * i], words[2 * i + 1]];
}

/** The values of elements; null where their format has none, or where their tags cannot be told apart. */
function valuesOf(trace: Trace, { patterns, tags, format }: Tagged): Values | null {
  const own = valueFormat(format);
  if (own === null || tags === null) return null;
  const numbers = new Uint32Array(patterns.length);
  const read = own.bytes === 8 ? valueOfWide : own.name === 'e2m1' ? valueOfPair : valueOfElement;
  let [hasTags, unreadable] = [false, 0];
  for (let i = 0; i < numbers.length; i++) {
    const value = read(trace, tags, i, own);
    if (value !== noValue) hasTags = true;
    const constant = (): number => trace.constant(own, ...bitsAt(patterns, i));
    if (value <= decidedValue) numbers[i] = value === lostValue ? lostValue : constant();
    else {
      const of = trace.formatOf(value);
      const isInteger = own.isInteger && of.isInteger;
      const isSame =
        of === own || (isInteger && own.decode(...bitsAt(patterns, i)) === trace.numberOf(value));
      // An integer that is read with the other sign is decided.
      numbers[i] = isSame || isShorter(of, own) ? value : isInteger ? constant() : lostValue;
      if (numbers[i] === lostValue) unreadable++;
    }
  }
  return { numbers, hasTags, unreadable };
}

/** Whether a number of the first format may be read as one of the second: bf16 above a zero half as fp32. */
function isShorter(of: ValueFormat, own: ValueFormat): boolean {
  return of.name === 'bf16' && own.name === 'f32';
}

/** The value of an element of 8, 16 or 32 bits; a bf16 may be the upper half of one of 32. */
function valueOfElement(
  trace: Trace,
  [p, q, r, s]: ElementTags,
  i: number,
  { bytes }: ValueFormat,
): number {
  const value = valueOfPlanes(trace, p[i], q[i], r[i], s[i], bytes as 1 | 2 | 4);
  const isUpper =
    value === lostValue && bytes === 4 && ((p[i] | q[i] | r[i] | s[i]) & 0xffff) === 0;
  return isUpper
    ? valueOfPlanes(trace, p[i] >>> 16, q[i] >>> 16, r[i] >>> 16, s[i] >>> 16, 2)
    : value;
}

/** The value of an element of 4 bits, the first or the second of a byte: the two values behind that of the byte. */
function valueOfPair(trace: Trace, [p, q, r, s]: ElementTags, i: number): number {
  const value = valueOfPlanes(trace, p[i], q[i], r[i], s[i], 1);
  if (value <= decidedValue) return value;
  const isPair =
    trace.operationOf(value).origin === 'input' && trace.formatOf(value).name === 'e2m1x2';
  return isPair ? value + 1 + (i & 1) : lostValue;
}

/** The value of an element of 64 bits, from two words of each plane. */
function valueOfWide(trace: Trace, [p, q, r, s]: ElementTags, i: number): number {
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

  constructor(trace: Trace, losses: Losses) {
    this.#trace = trace;
    this.#losses = losses;
  }

  #operation({ mnemonic, site, accumulator, a, b }: TracedProduct): number {
    return this.#trace.knownOperation({
      origin: 'product',
      name: `${mnemonic} ${a.format} ${b.format} ${accumulator}`,
      function: null,
      limit: null,
      format: valueFormat(accumulator)!,
      site,
    });
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
    const unreadable = parts.reduce((sum, part) => sum + (part?.unreadable ?? 0), 0);
    if (unreadable > 0) this.#losses.lose(site, unreadable);
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
