import { numberOfRawWord } from './raw-words.js';
import { decidedValue, lostValue, noValue, type Trace } from './trace.js';

/** Tags of bytes 0, 1, … of a value follow one another from a multiple of eight on. */
const tagsOfValue = 8;

const ones = [0, 0x01, 0x0101, 0, 0x01010101];
const sequence = [0, 0x00, 0x0100, 0, 0x03020100];
const masks = [0, 0xff, 0xffff, 0, 0xffffffff];

/**
 * The value that bytes are, from the planes of their tags: `bytes` bytes of each plane as one number. No value where no byte has
 * a tag; a lost one where they are not one whole value, but one that has decided something where they are parts of integers.
 */
// eslint-disable-next-line @typescript-eslint/max-params -- hot: called for each operand of each lane
export function valueOfPlanes(
  trace: Trace,
  p: number,
  q: number,
  r: number,
  s: number,
  bytes: 1 | 2 | 4,
): number {
  if ((p | q | r | s) === 0) return noValue;
  const mask = masks[bytes];
  const one = ones[bytes];
  const [p0, q0, r0, s0] = [p & 0xff, q & 0xff, r & 0xff, s & 0xff];
  const tag = (p0 | (q0 << 8) | (r0 << 16) | (s0 << 24)) >>> 0;
  const value = tag >>> 3;
  const isWhole =
    (tag & 7) === 0 &&
    value > decidedValue &&
    (p & mask) >>> 0 === p0 * one + sequence[bytes] &&
    (q & mask) >>> 0 === q0 * one &&
    (r & mask) >>> 0 === r0 * one &&
    (s & mask) >>> 0 === s0 * one &&
    trace.formatOf(value).bytes === bytes;
  return isWhole ? value : lostOrDecided(trace, [p, q, r, s], bytes);
}

/** Whether bytes that are no whole value are lost, or only such as have decided something, and parts of integers. */
function lostOrDecided(
  trace: Trace,
  planes: readonly [number, number, number, number],
  bytes: number,
): number {
  for (let shift = 0; shift < 8 * bytes; shift += 8) {
    const [p, q, r, s] = planes.map((plane) => (plane >>> shift) & 0xff);
    const value = ((p | (q << 8) | (r << 16) | (s << 24)) >>> 0) >>> 3;
    if (value === lostValue || (value > decidedValue && !trace.formatOf(value).isInteger))
      return lostValue;
  }
  return decidedValue;
}

/** Plane `index` of the tags of a value's bytes, as one number; zero for no value. */
export function planeOfValue(value: number, index: 0 | 1 | 2 | 3, bytes: 1 | 2 | 4): number {
  if (value === noValue) return 0;
  const byte = ((value * tagsOfValue) >>> (8 * index)) & 0xff;
  return byte * ones[bytes] + (index === 0 ? sequence[bytes] : 0);
}

/**
 * The value of 64 bits from the tags of their bytes: one of 64 bits, an integer of 32 that is extended, or a number of which integer
 * operations have changed the high word, as its bits prove. None, lost and decided ones as of `valueOfPlanes`.
 *
 * @param low the low word, and `high` the high one
 */
export function valueOfWideTags(
  trace: Trace,
  tagOf: (byte: number) => number,
  low: number,
  high: number,
): number {
  const first = tagOf(0);
  let [isWhole, any, isInteger] = [(first & 7) === 0, 0, true];
  for (let byte = 0; byte < 8; byte++) {
    const tag = tagOf(byte);
    any |= tag;
    if (tag !== first + byte) isWhole = false;
    const value = tag >>> 3;
    if (value === lostValue || (value > decidedValue && !trace.formatOf(value).isInteger))
      isInteger = false;
  }
  if (any === 0) return noValue;
  const value = first >>> 3;
  if (isWhole && value > decidedValue && trace.formatOf(value).bytes === 8) return value;
  const isOf = (one: number, from: number) =>
    one > decidedValue && [0, 1, 2, 3].every((byte) => tagOf(from + byte) === one * 8 + byte);
  if (isInteger) {
    const isExtended = isOf(value, 0) && [4, 5, 6, 7].every((byte) => tagOf(byte) === noValue);
    const isSame = isExtended && high >>> 0 === (trace.numberOf(value) < 0 ? 0xffffffff : 0);
    return isSame && trace.formatOf(value).bytes === 4 ? value : decidedValue;
  }
  const top = tagOf(4) >>> 3;
  const raw = isOf(top, 4) ? trace.rawWords.get(top) : undefined;
  if (raw === undefined || trace.formatOf(raw.of).bytes !== 8 || !isOf(raw.of, 0)) return lostValue;
  return numberOfRawWord(trace, raw, low, high) ?? lostValue;
}
