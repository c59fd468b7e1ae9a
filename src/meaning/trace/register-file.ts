import type { LaneOperation, Slot } from '../../ptx/program/index.js';
import type { TracedMemory } from '../../ptx/run/index.js';
import { decidedValue, lostValue, noValue, type Trace } from './trace.js';
import { planeOfValue, valueOfPlanes, valueOfWideTags } from './tags.js';
import { valueFormat } from './value-format.js';

const warpLanes = 32;
/** Bytes from the low half of a register of 128 bits to the high one. */
const halfBytes = 8 * warpLanes;

/** Where a byte of a lane's value lies in the memory: that of lane 0, and the distance from lane to lane. */
export interface LanePlace {
  readonly first: number;
  readonly stride: number;
}

/** The place of a byte of a register, from the beginning of the warp's registers. */
export function placeInSlot({ offset, width }: Slot, byte: number): LanePlace {
  if (width !== 128) return { first: offset + byte, stride: width === 64 ? 8 : 4 };
  return { first: offset + (byte >> 3) * halfBytes + (byte & 7), stride: 8 };
}

/** Bytes of a lane's value in a register; none of a predicate. */
export function valueBytes({ width }: Pick<Slot, 'width'>): number {
  return width === 'pred' ? 0 : width / 8;
}

/** Sources and destinations of an operation that are registers with bytes. */
export function byteSlots(operands: LaneOperation['sources'] | LaneOperation['destinations']) {
  return operands.flatMap((slot, operand) =>
    slot !== null && 'offset' in slot && slot.width !== 'pred' ? [{ operand, slot }] : [],
  );
}

/** Reads and writes the values of registers by their tags. */
export class RegisterFile {
  readonly #trace: Trace;
  readonly words: Uint32Array;
  readonly bytes: Uint8Array;
  readonly halves: Uint16Array;
  /** Bytes from a register to its place in the first plane, and from each plane to the next. */
  readonly planeBytes: number;
  /** Words from a register to its place in a plane, by plane. */
  readonly #plane: readonly [number, number, number, number];
  readonly #plane0: number;
  readonly #plane1: number;
  readonly #plane2: number;
  readonly #plane3: number;
  readonly #bf16 = valueFormat('bf16')!;
  readonly #f32 = valueFormat('f32')!;

  constructor(trace: Trace, { words, planeBytes }: TracedMemory) {
    const step = planeBytes / 4;
    this.#trace = trace;
    this.words = words;
    this.planeBytes = planeBytes;
    this.bytes = new Uint8Array(words.buffer);
    this.halves = new Uint16Array(words.buffer);
    [this.#plane0, this.#plane1, this.#plane2, this.#plane3] = [step, 2 * step, 3 * step, 4 * step];
    this.#plane = [step, 2 * step, 3 * step, 4 * step];
  }

  /** The value of `bytes` bytes from an address on; `valueOfTags` says what is none. */
  valueAt(address: number, bytes: 1 | 2 | 4 | 8): number {
    if (bytes === 8) {
      const tagOf = (byte: number): number => this.tagAt(address + byte);
      return valueOfWideTags(this.#trace, tagOf, this.low(address, 8), this.high(address, 8));
    }
    const { words } = this;
    const [w0, w1, w2, w3] = this.#plane;
    const i = address >>> 2;
    const [p, q, r, s] = [words[i + w0], words[i + w1], words[i + w2], words[i + w3]];
    if ((p | q | r | s) === 0) return noValue;
    if (bytes === 4) {
      const value = valueOfPlanes(this.#trace, p, q, r, s, 4);
      return value === lostValue ? this.#widened(i, [p, q, r, s]) : value;
    }
    const shift = 8 * (address & 3);
    const mask = bytes === 2 ? 0xffff : 0xff;
    const part = (plane: number): number => (plane >>> shift) & mask;
    const value = valueOfPlanes(this.#trace, part(p), part(q), part(r), part(s), bytes);
    return value === lostValue && bytes === 2
      ? this.#upperHalf([part(p), part(q), part(r), part(s)], (words[i] >>> shift) & mask)
      : value;
  }

  /** The value of a half that is the upper one of an fp32 number: the number, cut to bf16. */
  #upperHalf([p, q, r, s]: readonly [number, number, number, number], bits: number): number {
    const value =
      (((p & 0xff) | ((q & 0xff) << 8) | ((r & 0xff) << 16) | ((s & 0xff) << 24)) >>> 0) >>> 3;
    const isUpper =
      value > decidedValue &&
      p === planeOfValue(value, 0, 2) + 0x0202 &&
      q === planeOfValue(value, 1, 2) &&
      r === planeOfValue(value, 2, 2) &&
      s === planeOfValue(value, 3, 2) &&
      this.#trace.formatOf(value) === this.#f32;
    if (!isUpper) return lostValue;
    const cut = this.#trace.knownOperation({
      origin: 'same',
      name: 'cut bf16',
      function: 'identity',
      limit: null,
      format: this.#bf16,
      site: '',
    });
    return this.#trace.add(cut, value, 0, 0, bits);
  }

  /**
   * The value of a word that is a shorter one: a bf16 above a zero half is the same number in fp32, so is the upper half of an fp32
   * number, and an integer may have been extended by bytes that come from nowhere.
   */
  #widened(i: number, [p, q, r, s]: readonly [number, number, number, number]): number {
    const tags = (p | q | r | s) >>> 0;
    const trace = this.#trace;
    if ((tags & 0xffff) === 0 && (this.words[i] & 0xffff) === 0) {
      const planes = [p >>> 16, q >>> 16, r >>> 16, s >>> 16] as const;
      const value = valueOfPlanes(trace, ...planes, 2);
      if (value === lostValue) return this.#upperHalf(planes, this.words[i] >>> 16);
      return value <= decidedValue || trace.formatOf(value) === this.#bf16 ? value : lostValue;
    }
    const bytes = tags <= 0xff ? 1 : tags <= 0xffff ? 2 : null;
    if (bytes === null) return lostValue;
    const value = valueOfPlanes(trace, p, q, r, s, bytes);
    if (value <= decidedValue) return value;
    if (!trace.formatOf(value).isInteger) return lostValue;
    return trace.numberOf(value) >>> 0 === this.words[i] ? value : decidedValue;
  }

  /** The value of 64 bits whose high word a word is; none where it is not. */
  wideWithHighWordAt(address: number): number {
    const first = this.tagAt(address);
    const value = first >>> 3;
    for (let byte = 0; byte < 4; byte++)
      if (this.tagAt(address + byte) !== value * 8 + 4 + byte) return noValue;
    return value > decidedValue ? value : noValue;
  }

  /** The tag of a byte. */
  tagAt(address: number): number {
    const { bytes } = this;
    const [w0, w1, w2, w3] = this.#plane;
    return (
      (bytes[address + 4 * w0] |
        (bytes[address + 4 * w1] << 8) |
        (bytes[address + 4 * w2] << 16) |
        (bytes[address + 4 * w3] << 24)) >>>
      0
    );
  }

  /** Whether one of some bytes is of a lost value. */
  isLost(address: number, bytes: number): boolean {
    for (let byte = 0; byte < bytes; byte++)
      if (this.tagAt(address + byte) >>> 3 === lostValue) return true;
    return false;
  }

  putTag(address: number, tag: number): void {
    const { bytes } = this;
    const [w0, w1, w2, w3] = this.#plane;
    bytes[address + 4 * w0] = tag;
    bytes[address + 4 * w1] = tag >>> 8;
    bytes[address + 4 * w2] = tag >>> 16;
    bytes[address + 4 * w3] = tag >>> 24;
  }

  /** The value that a whole word is, `noValue` of one without tags; −1 where there is more to see (`valueAt`). */
  wordAt(address: number): number {
    const { words } = this;
    const i = address >>> 2;
    const p = words[i + this.#plane0] | 0;
    const q = words[i + this.#plane1] | 0;
    const r = words[i + this.#plane2] | 0;
    const s = words[i + this.#plane3] | 0;
    if ((p | q | r | s) === 0) return noValue;
    const [p0, q0, r0, s0] = [p & 0xff, q & 0xff, r & 0xff, s & 0xff];
    const isWhole =
      (p0 & 7) === 0 &&
      p === ((Math.imul(p0, 0x01010101) + 0x03020100) | 0) &&
      q === Math.imul(q0, 0x01010101) &&
      r === Math.imul(r0, 0x01010101) &&
      s === Math.imul(s0, 0x01010101);
    return isWhole ? (p0 | (q0 << 8) | (r0 << 16) | (s0 << 24)) >>> 3 : -1;
  }

  /** `wordAt` of a half. */
  halfAt(address: number): number {
    const { halves } = this;
    const i = address >>> 1;
    const p = halves[i + 2 * this.#plane0];
    const q = halves[i + 2 * this.#plane1];
    const r = halves[i + 2 * this.#plane2];
    const s = halves[i + 2 * this.#plane3];
    if ((p | q | r | s) === 0) return noValue;
    const [p0, q0, r0, s0] = [p & 0xff, q & 0xff, r & 0xff, s & 0xff];
    const isWhole =
      (p0 & 7) === 0 &&
      p === p0 * 0x0101 + 0x0100 &&
      q === q0 * 0x0101 &&
      r === r0 * 0x0101 &&
      s === s0 * 0x0101;
    return isWhole ? (p0 | (q0 << 8) | (r0 << 16) | (s0 << 24)) >>> 3 : -1;
  }

  /** Gives bytes the tags of a value; of no value, none. Lost and decided ones have the same tags in all bytes' places. */
  putValue(address: number, bytes: number, value: number): void {
    const tag = value << 3;
    const first = value === noValue ? 0 : 0x03020100;
    if (bytes === 4) {
      const { words } = this;
      const i = address >>> 2;
      words[i + this.#plane0] = Math.imul(tag & 0xff, 0x01010101) + first;
      words[i + this.#plane1] = Math.imul((tag >>> 8) & 0xff, 0x01010101);
      words[i + this.#plane2] = Math.imul((tag >>> 16) & 0xff, 0x01010101);
      words[i + this.#plane3] = Math.imul(tag >>> 24, 0x01010101);
    } else if (bytes === 2) {
      const { halves } = this;
      const i = address >>> 1;
      halves[i + 2 * this.#plane0] = (tag & 0xff) * 0x0101 + (first & 0xffff);
      halves[i + 2 * this.#plane1] = ((tag >>> 8) & 0xff) * 0x0101;
      halves[i + 2 * this.#plane2] = ((tag >>> 16) & 0xff) * 0x0101;
      halves[i + 2 * this.#plane3] = (tag >>> 24) * 0x0101;
    } else
      for (let byte = 0; byte < bytes; byte++)
        this.putTag(address + byte, value === noValue ? 0 : value * 8 + byte);
  }

  /** The low word and the high word of a value of `bytes` bytes. */
  low(address: number, bytes: number): number {
    const word = this.words[address >>> 2];
    if (bytes >= 4) return word;
    return (word >>> (8 * (address & 3))) & (bytes === 2 ? 0xffff : 0xff);
  }

  high(address: number, bytes: number): number {
    return bytes === 8 ? this.words[(address >>> 2) + 1] : 0;
  }

  /** Whether a register has a tag in some lane of all. */
  isTagged(registers: number, { offset, width }: Slot): boolean {
    const first = (registers + offset) >>> 2;
    const count = width === 64 ? 2 * warpLanes : width === 128 ? 4 * warpLanes : warpLanes;
    const { words } = this;
    for (const plane of this.#plane) {
      const start = first + plane;
      let any = 0;
      for (let i = start; i < start + count; i++) any |= words[i];
      if (any !== 0) return true;
    }
    return false;
  }
}
