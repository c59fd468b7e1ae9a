import { RequestError } from '../request-error.js';
import {
  firstSpecialMagnitude,
  type FormatName,
  maxFiniteMagnitude,
  type NumberFormat,
} from './format.js';
import {
  magnitudeRounding,
  type MagnitudeRounding,
  overflowed,
  type RoundingOptions,
} from './round.js';

/**
 * The largest precision that a 32-bit word decides exactly: an fp64 high word has 20 fraction bits,
 * ample for 10, a rounding bit and the sticky bit.
 */
export const shortPrecision = 11;

/** The formats of at most `shortPrecision` significant bits. */
export type ShortFormatName = Exclude<FormatName, 'fp64' | 'fp32'>;

/**
 * A 32-bit word that holds a floating-point number: sign, exponent field, then `fractionBits` of
 * fraction. Where the number has more fraction bits than that, the lowest bit of the word is sticky:
 * set when any bit below is.
 */
interface WordLayout {
  readonly fractionBits: number;
  readonly exponentBias: number;
}

/** The bits of an fp32 number. */
export const float32Word: WordLayout = { fractionBits: 23, exponentBias: 127 };

/** The high word of an fp64 number, its lowest bit made sticky by whether the low word is nonzero. */
export const float64Word: WordLayout = { fractionBits: 20, exponentBias: 1023 };

/** Everything that the loop over words needs to know, as 32-bit integers. */
interface WordRounding {
  readonly fractionBits: number;
  /** The magnitude of an infinite word. */
  readonly infinityWord: number;
  /** Exponent bias of the source minus that of the format. */
  readonly rebias: number;
  /** Word magnitudes below this are subnormal in the format though not in the source. */
  readonly realignBelow: number;
  /** Fraction bits of the source beyond those of the format. */
  readonly drop: number;
  readonly nearest: boolean;
  /** The magnitude of the format's largest finite number. */
  readonly largest: number;
  readonly padding: number;
  /** The format's canonical NaN. */
  readonly nan: number;
  /** For positive and for negative numbers: an index by sign bit spares the loop a branch. */
  readonly signs: readonly [SignRounding, SignRounding];
}

/** Constants that differ between positive and negative numbers. Results are bit patterns that include the sign. */
interface SignRounding {
  readonly bit: number;
  /** All ones when magnitudes are rounded away from zero, else 0. */
  readonly awayFromZero: number;
  /** Word magnitudes below this are flushed to zero. */
  readonly flushBelow: number;
  readonly overflowResult: number;
  readonly infinityResult: number;
}

/**
 * The constants for rounding words of the layout to the format. Throws a RequestError for a format
 * that is not short.
 *
 * The loop sees this record only, one shape for every format: reading the format's own fields there
 * made the compiled loop twice as slow.
 */
export function planWordRounding(
  layout: WordLayout,
  format: NumberFormat<ShortFormatName>,
  options: RoundingOptions,
): WordRounding {
  checkShort(format);
  const { fractionBits, exponentBias } = layout;
  const rebias = exponentBias - format.exponentBias;
  return {
    fractionBits,
    infinityWord: (exponentBias * 2 + 1) << fractionBits,
    rebias,
    // With equal biases the source is as subnormal as the result: its fields line up as they are.
    realignBelow: rebias === 0 ? 0 : (rebias + 1) << fractionBits,
    drop: fractionBits - (format.precision - 1),
    nearest: (options.rounding ?? 'nearest-even') === 'nearest-even',
    largest: maxFiniteMagnitude(format) | 0,
    padding: format.paddingBits,
    nan: format.canonicalNan,
    signs: [
      signRounding(layout, format, options, false),
      signRounding(layout, format, options, true),
    ],
  };
}

function signRounding(
  layout: WordLayout,
  format: NumberFormat<ShortFormatName>,
  options: RoundingOptions,
  negative: boolean,
): SignRounding {
  const { rounding = 'nearest-even', overflow = 'overflow', flushSubnormals = false } = options;
  const direction = magnitudeRounding[rounding][negative ? 'negative' : 'positive'];
  const bit = negative ? 1 << (format.storageBits - 1) : 0;
  const patternBeyondRange = (infinite: boolean): number => {
    const value = overflowed(format, infinite, direction, overflow);
    if (Number.isNaN(value)) return format.canonicalNan;
    const magnitude =
      value === Infinity ? firstSpecialMagnitude(format) : maxFiniteMagnitude(format);
    return (magnitude << format.paddingBits) | bit;
  };
  return {
    bit,
    awayFromZero: direction === 'away-from-zero' ? -1 : 0,
    flushBelow: flushSubnormals ? smallestUnflushedWord(layout, format, direction) : 0,
    overflowResult: patternBeyondRange(false),
    infinityResult: patternBeyondRange(true),
  };
}

/**
 * The smallest source magnitude that rounds to the smallest normal number or beyond when the
 * exponent has no lower bound. Below 2^minExponent the format's spacing is then 2^(minExponent - p):
 * half of that below is the tie, which goes to the even 2^minExponent.
 */
function smallestUnflushedWord(
  layout: WordLayout,
  format: NumberFormat,
  direction: MagnitudeRounding,
): number {
  const rebias = layout.exponentBias - format.exponentBias;
  const smallestNormalWord = (rebias + 1) << layout.fractionBits;
  // Below its own smallest normal number the source's spacing does not halve again.
  const halvings = rebias === 0 ? 1 : 0;
  const spacing = 1 << (layout.fractionBits - format.precision + 1 - halvings);
  const reach: Readonly<Record<MagnitudeRounding, number>> = {
    'nearest-even': spacing >>> 1,
    'toward-zero': 0,
    'away-from-zero': spacing - 1,
  };
  return smallestNormalWord - reach[direction];
}

function checkShort(format: NumberFormat): void {
  if (format.precision > shortPrecision) {
    throw new RequestError(
      `conversion by 32-bit words is for formats of precision up to ${shortPrecision}, not ${format.name}; use encodeFromFloat32 or encodeFromFloat64`,
    );
  }
}

/**
 * Rounds the numbers in the first `count` words as planned and writes their bit patterns from
 * `outStart` on in `out`, in integer arithmetic alone. Equal to `encode` of each number.
 */
export function roundWords(
  plan: WordRounding,
  words: Uint32Array,
  count: number,
  out: Uint8Array | Uint16Array | Uint32Array,
  outStart: number,
): void {
  const { fractionBits, infinityWord, rebias, realignBelow, drop, nearest } = plan;
  const { largest, padding, nan, signs } = plan;
  const hiddenBit = 1 << fractionBits;
  const fractionMask = hiddenBit - 1;
  const rebiasWord = rebias << fractionBits;

  for (let i = 0; i < count; i++) {
    const word = words[i];
    const magnitude = word & 0x7fffffff;
    const sign = signs[word >>> 31];
    let result: number;
    if (magnitude >= infinityWord) {
      result = magnitude === infinityWord ? sign.infinityResult : nan;
    } else if (magnitude < sign.flushBelow) {
      result = sign.bit;
    } else {
      let aligned = magnitude - rebiasWord;
      let shift = drop;
      if (magnitude < realignBelow) {
        shift += rebias + 1 - (magnitude >>> fractionBits);
        aligned = (magnitude & fractionMask) | hiddenBit;
        if (shift > fractionBits + 1) {
          // Less than half of the smallest subnormal: zero and a nonzero remainder, or zero itself.
          shift = 2;
          aligned = magnitude === 0 ? 0 : 1;
        }
      }
      const ones = (1 << shift) - 1;
      const increment = nearest
        ? (ones >>> 1) + ((aligned >>> shift) & 1)
        : ones & sign.awayFromZero;
      const rounded = (aligned + increment) >>> shift;
      result = rounded > largest ? sign.overflowResult : (rounded << padding) | sign.bit;
    }
    out[outStart + i] = result;
  }
}
