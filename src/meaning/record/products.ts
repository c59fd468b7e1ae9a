import type { ElementTags, TracedOperand, TracedProduct } from '../../machine/index.js';
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
  readonly hasLost: boolean;
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
  let [hasTags, hasLost, unreadable] = [false, false, 0];
  for (let i = 0; i < numbers.length; i++) {
    const value = read(trace, tags, i, own);
    if (value !== noValue) hasTags = true;
    const isOwn = value > decidedValue && trace.formatOf(value) === own;
    numbers[i] = isOwn ? value : readAs(trace, own, value, bitsAt(patterns, i));
    if (numbers[i] !== lostValue) continue;
    hasLost = true;
    if (value !== lostValue) unreadable++;
  }
  return { numbers, hasTags, hasLost, unreadable };
}

/** A value as one of a format, of which it is not: what has no value, or has been decided, is a constant. */
function readAs(
  trace: Trace,
  format: ValueFormat,
  value: number,
  bits: readonly [number, number],
): number {
  if (value === lostValue) return lostValue;
  if (value <= decidedValue) return trace.constant(format, ...bits);
  const own = trace.formatOf(value);
  if (isShorter(own, format)) return value;
  if (!format.isInteger || !own.isInteger) return lostValue;
  // An integer that is read with the other sign is decided.
  return format.decode(...bits) === trace.numberOf(value) ? value : trace.constant(format, ...bits);
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

type Planes = readonly [Uint32Array, Uint32Array, Uint32Array, Uint32Array];

/** Planes of the tags of D: each element's value. */
function planesOf(values: Uint32Array, bytes: 2 | 4 | 8): Planes {
  const words = bytes === 8 ? 2 : 1;
  const [ones, sequence] = bytes === 2 ? [0x0101, 0x0100] : [0x01010101, 0x03020100];
  const plane = (index: 0 | 1 | 2 | 3): Uint32Array => {
    const tags = new Uint32Array(words * values.length);
    for (let i = 0; i < values.length; i++) {
      const first = index === 0 && values[i] !== noValue ? sequence : 0;
      const part = Math.imul(((values[i] << 3) >>> (8 * index)) & 0xff, ones) + first;
      tags[words * i] = part;
      if (bytes === 8) tags[2 * i + 1] = first === 0 ? part : part + 0x04040404;
    }
    return tags;
  };
  return [plane(0), plane(1), plane(2), plane(3)];
}

/** Which rows of a matrix have a lost value. */
function lostRows(values: Uint32Array, rows: number): Uint8Array {
  const lost = new Uint8Array(rows);
  const columns = values.length / rows;
  for (let i = 0; i < values.length; i++)
    if (values[i] === lostValue) lost[Math.floor(i / columns)] = 1;
  return lost;
}

/** The values of everything that a product is made of; null in place of what there is not. */
interface Parts {
  readonly a: Values;
  readonly b: Values;
  readonly c: Values | null;
  readonly scales: { readonly a: Values; readonly b: Values; readonly block: number } | null;
}

/** The values of a product's operands; null where those of one of them are not known. */
function partsOf(trace: Trace, { a, b, c, accumulator }: TracedProduct): Parts | null {
  const [left, right] = [valuesOf(trace, a), valuesOf(trace, b)];
  const start = c && valuesOf(trace, { ...c, format: accumulator });
  if (left === null || right === null || (c !== null && start === null)) return null;
  const parts = { a: left, b: right, c: start };
  if (a.scales === null || b.scales === null) return { ...parts, scales: null };
  const [ofA, ofB] = [valuesOf(trace, a.scales), valuesOf(trace, b.scales)];
  if (ofA === null || ofB === null) return null;
  return { ...parts, scales: { a: ofA, b: ofB, block: a.scales.block } };
}

/** Marks the values of D that have a lost value among those of which they are made. */
function loseValues(
  values: Uint32Array,
  { m, n }: TracedProduct,
  { a, b, c, scales }: Parts,
): void {
  const ofRows = [a, scales?.a].map((part) => lostRows(part?.numbers ?? new Uint32Array(m), m));
  const ofColumns = [b, scales?.b].map((part) => lostRows(part?.numbers ?? new Uint32Array(n), n));
  for (let i = 0; i < values.length; i++) {
    const [row, column] = [Math.floor(i / n), i % n];
    const isLost =
      ofRows.some((lost) => lost[row] === 1) ||
      ofColumns.some((lost) => lost[column] === 1) ||
      c?.numbers[i] === lostValue;
    if (isLost) values[i] = lostValue;
  }
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
    const { m, n, k, a, b, d, accumulator, site } = product;
    const bytes = valueFormat(accumulator)!.bytes as 2 | 4 | 8;
    const parts = partsOf(this.#trace, product);
    if (parts === null) {
      this.#losses.lose(site, d.length);
      return planesOf(new Uint32Array(d.length).fill(lostValue), bytes);
    }
    const { scales } = parts;
    const all = [parts.a, parts.b, parts.c, scales?.a, scales?.b];
    if (!all.some((part) => part?.hasTags === true)) return null;
    const unreadable = all.reduce((sum, part) => sum + (part?.unreadable ?? 0), 0);
    if (unreadable > 0) this.#losses.lose(site, unreadable);
    const whole = this.#trace.addProduct(
      this.#operation(product),
      {
        m,
        n,
        k,
        a: parts.a.numbers,
        b: parts.b.numbers,
        c: parts.c?.numbers ?? null,
        isNegated: a.isNegated !== b.isNegated,
        scales: scales && { ...scales, a: scales.a.numbers, b: scales.b.numbers },
      },
      d instanceof Float64Array
        ? new BigUint64Array(d.buffer, d.byteOffset, d.length)
        : new Uint32Array(d),
    );
    const values = new Uint32Array(m * n);
    for (let i = 0; i < values.length; i++) values[i] = whole.first + i;
    if (all.some((part) => part?.hasLost === true)) loseValues(values, product, parts);
    return planesOf(values, bytes);
  }
}
