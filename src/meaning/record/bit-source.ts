import type { LaneOperation } from '../../ptx/program/index.js';
import {
  decidedValue,
  floatFields,
  lostValue,
  noValue,
  placeInSlot,
  valueBytes,
  type RawWord,
} from '../trace/index.js';
import type { Recording } from './recording.js';

/** An operand of an operation on bits in one lane: which of its bits are more than a decision. */
export interface BitSource {
  /** Bits of significands, or all bits of what is not known; none of integers, and of what has no tag. */
  readonly mask: bigint;
  /** The number that the bits are, with its sign's bit; null where they are several, or a part of one. */
  readonly number:
    (Pick<RawWord, 'of' | 'isKept' | 'isSignFixed'> & { readonly sign: bigint }) | null;
}

/** An operand without bits that matter. */
const exact: BitSource = { mask: 0n, number: null };

function ones(bits: number): bigint {
  return (1n << BigInt(bits)) - 1n;
}

/** The bits of the number that a value is, which lies in `bits` bits and has its sign in the highest. */
function sourceOfNumber({ trace, xorSums }: Recording, value: number, bits: number): BitSource {
  const summands = xorSums.get(value);
  if (summands !== undefined)
    return summands.every((one) => trace.formatOf(one).isInteger)
      ? exact
      : { mask: ones(bits), number: null };
  const raw = trace.rawWords.get(value);
  const of = raw?.of ?? value;
  const format = trace.formatOf(of);
  if (format.isInteger) return exact;
  const own = floatFields(format);
  if (own === null) return { mask: format.name === 'ue8m0' ? 0n : ones(bits), number: null };
  const below = format.bytes === 8 && bits === 64 ? 32 : 0;
  const { isKept = true, isSignFixed = false } = raw ?? {};
  const sign = 1n << BigInt(bits - 1);
  return { mask: ones(own.significand + below), number: { of, isKept, isSignFixed, sign } };
}

/** The bits of two numbers of 16 bits in a word, or of one of them; null where a half is something else. */
function sourceOfHalves({ trace, file }: Recording, address: number): BitSource | null {
  let mask = 0n;
  for (const shift of [0, 16]) {
    const value = file.valueAt(address + shift / 8, 2);
    if (value === lostValue) return null;
    if (value <= decidedValue) continue;
    const own = floatFields(trace.formatOf(value));
    if (own !== null) mask |= ones(own.significand) << BigInt(shift);
  }
  return { mask, number: null };
}

/** What the bits of an operand are in a lane; null where one of its bytes is lost. */
export function bitSourceAt(
  recording: Recording,
  source: LaneOperation['sources'][number],
  registers: number,
  lane: number,
): BitSource | null {
  if (!('offset' in source) || source.width === 'pred') return exact;
  const { file, trace } = recording;
  const { first, stride } = placeInSlot(source, 0);
  const address = registers + first + stride * lane;
  const bytes = Math.min(valueBytes(source), 8) as 2 | 4 | 8;
  if (file.isLost(address, bytes)) return null;
  const value = file.valueAt(address, bytes);
  if (value === noValue || value === decidedValue) return exact;
  const isWhole =
    value !== lostValue &&
    (trace.formatOf(value).isInteger || trace.formatOf(value).bytes === bytes);
  if (isWhole) return sourceOfNumber(recording, value, 8 * bytes);
  const whole = bytes === 4 ? file.wideWithHighWordAt(address) : noValue;
  if (whole !== noValue && trace.formatOf(whole).name === 'f64')
    return sourceOfNumber(recording, whole, 32);
  return (
    (bytes === 4 ? sourceOfHalves(recording, address) : null) ?? {
      mask: ones(8 * bytes),
      number: null,
    }
  );
}
