import {
  bitOf,
  codes,
  rowBitOf,
  tells,
  type CacheWrite,
  type Field,
} from '../../../problem/index.js';
import type { Supposition } from './supposition.js';

/** The bits of each buffer that a writer writes. */
export type WrittenBits = ReadonlyMap<string, Uint8Array>;

function mark(mask: Uint8Array, bit: number, bits: number): void {
  const byte = Math.floor(bit / 8);
  if (bits === 4) mask[byte] |= 0xf << (bit % 8);
  else mask.fill(0xff, byte, byte + bits / 8);
}

/** Marks the elements of a field at a slot. */
function markSlot(mask: Uint8Array, field: Field, slot: number): void {
  const { heads, columns } = field.sizes;
  const { bits } = codes[field.code];
  for (let head = 0; head < heads; head++) {
    const rowBit = rowBitOf(field, slot, head);
    for (let column = 0; column < columns; column++)
      mark(mask, rowBit + field.columnBits[column], bits);
  }
}

/** The bits of numbers and of factors that a writer writes at some slots. */
export function writtenBits(
  { after }: CacheWrite,
  { parts }: Pick<Supposition, 'parts'>,
  slots: Iterable<number>,
): WrittenBits {
  const masks = new Map<string, Uint8Array>();
  const maskOf = (field: Field) => {
    const known = masks.get(field.buffer);
    if (known !== undefined) return known;
    const mask = new Uint8Array(after.get(field.buffer)?.length ?? 0);
    masks.set(field.buffer, mask);
    return mask;
  };
  const used = [...slots].filter((slot) => slot >= 0);
  for (const { numbers, factors, terms } of parts) {
    for (const slot of used) markSlot(maskOf(numbers), numbers, slot);
    if (factors === null || terms?.rule === 'given') continue;
    const places = tells(factors, 'slot') ? used : used.slice(0, 1);
    for (const slot of places) markSlot(maskOf(factors), factors, slot);
  }
  return masks;
}

/** A byte of a buffer. */
export interface BytePlace {
  readonly buffer: string;
  readonly byte: number;
}

/** Bytes that were not to be written and are not as before; null where nobody knows what was before. */
export interface OtherBytes {
  readonly checked: number;
  readonly changed: number;
  /** The first of them. */
  readonly first: readonly BytePlace[];
}

/** Bytes that are told of at most. */
const mostPlaces = 4096;

/** The bytes of all buffers beside those that are written. */
export function otherBytes({ before, after }: CacheWrite, written: WrittenBits): OtherBytes | null {
  if (before === null) return null;
  let [checked, changed] = [0, 0];
  const first: BytePlace[] = [];
  for (const [buffer, bytes] of after) {
    const old = before.get(buffer);
    if (old === undefined) continue;
    const mask = written.get(buffer);
    for (let byte = 0; byte < bytes.length; byte++) {
      const kept = 0xff & ~(mask?.[byte] ?? 0);
      if (kept === 0) continue;
      checked++;
      if (((bytes[byte] ^ old[byte]) & kept) === 0) continue;
      changed++;
      if (first.length < mostPlaces) first.push({ buffer, byte });
    }
  }
  return { checked, changed, first };
}

/** A slot whose elements lie at some bytes, and which part they are of. */
export interface TouchedSlot {
  readonly part: number;
  readonly slot: number;
  readonly head: number;
  readonly isFactor: boolean;
}

/** The slots and heads whose elements lie at some bytes, each once; bytes of none, such as padding, are left out. */
export function slotsAt(
  { parts }: Pick<Supposition, 'parts'>,
  bytes: readonly BytePlace[],
): { readonly slots: readonly TouchedSlot[]; readonly padding: number } {
  const wanted = new Set(bytes.map(({ buffer, byte }) => `${buffer}:${byte}`));
  const found = new Map<string, TouchedSlot>();
  const seen = new Set<string>();
  for (const [part, supposed] of parts.entries()) {
    const fields = [supposed.numbers, supposed.factors].filter((field) => field !== null);
    for (const [index, field] of fields.entries()) {
      const { slots, heads, columns } = field.sizes;
      const { bits } = codes[field.code];
      const size = Math.max(1, bits / 8);
      const ofHeads = tells(field, 'head') ? heads : 1;
      if (!bytes.some(({ buffer }) => buffer === field.buffer)) continue;
      for (let slot = 0; slot < slots; slot++)
        for (let head = 0; head < ofHeads; head++)
          for (let column = 0; column < columns; column++) {
            const byte = Math.floor(bitOf(field, slot, head, column) / 8);
            for (let i = 0; i < size; i++) {
              const key = `${field.buffer}:${byte + i}`;
              if (!wanted.has(key)) continue;
              seen.add(key);
              found.set(`${part}:${slot}:${head}`, { part, slot, head, isFactor: index === 1 });
            }
          }
    }
  }
  return { slots: [...found.values()], padding: wanted.size - seen.size };
}

/** Whether a row's bits at a slot are as before the write. */
export function isAsBefore(write: CacheWrite, field: Field, slot: number, head: number): boolean {
  const [after, before] = [write.after.get(field.buffer), write.before?.get(field.buffer)];
  if (after === undefined || before === undefined) return false;
  const { bits } = codes[field.code];
  const rowBit = rowBitOf(field, slot, head);
  for (let column = 0; column < field.sizes.columns; column++) {
    const bit = rowBit + field.columnBits[column];
    const byte = Math.floor(bit / 8);
    const kept = bits === 4 ? 0xf << (bit % 8) : 0xff;
    for (let i = 0; i < Math.max(1, bits / 8); i++)
      if (((after[byte + i] ^ before[byte + i]) & kept) !== 0) return false;
  }
  return true;
}
