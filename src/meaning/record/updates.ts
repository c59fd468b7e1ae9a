import type { ByteStore, TracedUpdate } from '../../machine/index.js';
import { hasEqualBytes, tagsOf } from '../../machine/index.js';
import {
  decidedValue,
  lostValue,
  noValue,
  type Losses,
  type Trace,
  valueFormat,
  type ValueFormat,
  valueOfPlanes,
  valueOfWideTags,
} from '../trace/index.js';

/** The word, half or byte of a store's plane at a byte, as one number. */
function partAt({ bytes }: ByteStore, at: number, count: number): number {
  let part = 0;
  for (let i = count - 1; i >= 0; i--) part = part * 256 + bytes[at + i];
  return part;
}

/** The value of `count` bytes of a store. */
export function valueInStore(
  trace: Trace,
  store: ByteStore,
  at: number,
  count: 1 | 2 | 4 | 8,
): number {
  if (store.tags === null) return noValue;
  const [p, q, r, s] = store.tags;
  if (count < 8) {
    const of = (plane: ByteStore) => partAt(plane, at, count);
    const value = valueOfPlanes(trace, of(p), of(q), of(r), of(s), count as 1 | 2 | 4);
    return value > decidedValue && trace.operationOf(value).origin === 'none' ? lostValue : value;
  }
  const tagOf = (byte: number): number =>
    [s, r, q, p].reduce((tag, plane) => tag * 256 + plane.bytes[at + byte], 0);
  return valueOfWideTags(trace, tagOf, ...bitsInStore(store, at, 8));
}

/** Gives bytes of a store the tags of a value. */
export function putInStore(store: ByteStore, at: number, count: number, value: number): void {
  tagsOf(store).forEach(({ bytes }, plane) => {
    for (let i = 0; i < count; i++) {
      const tag = value === noValue ? 0 : value * 8 + i;
      bytes[at + i] = Math.floor(tag / 2 ** (8 * plane));
    }
  });
}

/** The low and the high word of `count` bytes of a store. */
export function bitsInStore(
  store: ByteStore,
  at: number,
  count: number,
): readonly [low: number, high: number] {
  return [partAt(store, at, Math.min(count, 4)), count === 8 ? partAt(store, at + 4, 4) : 0];
}

/**
 * The format of a result: that of the operation; of an integer sum that of the sign with which its bits are the exact sum, null
 * where there is none.
 *
 * @param exact NaN where it is no sum
 */
function resultFormat(
  format: ValueFormat,
  exact: number,
  [low, high]: readonly [number, number],
): ValueFormat | null {
  if (!format.isInteger || Number.isNaN(exact)) return format;
  const other = valueFormat(`${format.name.startsWith('u') ? 's' : 'u'}${8 * format.bytes}`)!;
  return [format, other].find((one) => one.decode(low, high) === exact) ?? null;
}

/** Takes atomic operations and reductions in memory into a trace. */
export class UpdateRecorder {
  readonly #trace: Trace;
  readonly #losses: Losses;

  constructor(trace: Trace, losses: Losses) {
    this.#trace = trace;
    this.#losses = losses;
  }

  #operation({ site, operation }: TracedUpdate, format: ValueFormat): number {
    return this.#trace.knownOperation({
      origin: operation === 'add' ? 'function' : 'choice',
      name: `${operation}.${format.name}`,
      function: operation === 'add' ? 'add' : null,
      limit: null,
      format,
      site,
    });
  }

  /** `ValueTracer.update`. */
  update(update: TracedUpdate): void {
    const { type, operation, bytes, old, operand, next } = update;
    const element = type.replace(/x2$/, '');
    const format = valueFormat(element.replace(/^b(?=\d)/, 'u'));
    const count = format?.bytes ?? null;
    if (count === null || format === null || operation === 'exch' || operation === 'cas') {
      this.#exchange(update);
      return;
    }
    for (let at = 0; at < bytes; at += count) {
      const before = valueInStore(this.#trace, old, at, count);
      const added = valueInStore(this.#trace, operand.store, operand.byte + at, count);
      const put = (value: number): void => putInStore(next.store, next.byte + at, count, value);
      put(this.#combined(update, format, at, [before, added]));
    }
  }

  #lose(site: string): number {
    this.#losses.lose(site);
    return lostValue;
  }

  #combined(
    update: TracedUpdate,
    format: ValueFormat,
    at: number,
    [before, added]: readonly [number, number],
  ): number {
    const { operation, old, operand, next } = update;
    const count = format.bytes;
    if (before === noValue && added === noValue) return noValue;
    if (before === lostValue || added === lostValue) return lostValue;
    const trace = this.#trace;
    const [low, high] = bitsInStore(next.store, next.byte + at, count);
    const isKnown = operation === 'add' || operation === 'min' || operation === 'max';
    const values = [before, added].map((value, i) => {
      if (value > decidedValue) return value;
      const [store, from] = i === 0 ? [old, at] : [operand.store, operand.byte + at];
      return trace.constant(format, ...bitsInStore(store, from, count));
    });
    const [a, b] = values;
    const isReadable = (value: number) =>
      trace.formatOf(value) === format || (format.isInteger && trace.formatOf(value).isInteger);
    if (!values.every(isReadable)) return this.#lose(update.site);
    if (format.isInteger && (before === decidedValue || added === decidedValue))
      return decidedValue;
    const wins = (value: number) => trace.bits[value] === low && trace.high[value] === high;
    const winner = operation === 'add' ? 0 : values.find(wins);
    const exact = operation === 'add' ? trace.numberOf(a) + trace.numberOf(b) : NaN;
    const result = resultFormat(format, exact, [low, high]);
    if (!isKnown || winner === undefined || result === null) {
      if (!format.isInteger) return this.#lose(update.site);
      this.#losses.decide(update.site);
      return decidedValue;
    }
    const node = this.#operation(update, result);
    if (count < 8) return trace.add(node, a, b, winner, low);
    return trace.addWide(node, [a, b, winner], (BigInt(high) << 32n) | BigInt(low));
  }

  /** Follows an exchange, which moves bytes; nothing else has 128 bits. */
  #exchange({ operation, operand, old, next, compared, bytes }: TracedUpdate): void {
    const isExchanged =
      operation === 'exch' ||
      (operation === 'cas' &&
        compared !== null &&
        hasEqualBytes(old, 0, compared.store, compared.byte, bytes));
    const [from, at] = isExchanged ? [operand.store, operand.byte] : [old, 0];
    tagsOf(next.store).forEach((plane, i) => {
      for (let byte = 0; byte < bytes; byte++)
        plane.bytes[next.byte + byte] = from.tags === null ? 0 : from.tags[i].bytes[at + byte];
    });
  }
}
