import { formats } from '../../../src/formats/index.js';
import { operandFormats } from '../../../src/hardware/index.js';
import type {
  AccumulatorFormat,
  OperandFormat,
  OperandFormatName,
} from '../../../src/hardware/index.js';

/** An instruction whose results on edge operands were captured. */
export interface EdgeInstruction {
  readonly name: string;
  readonly a: OperandFormatName;
  readonly b: OperandFormatName;
  readonly accumulator: AccumulatorFormat;
  readonly rows: number;
  readonly inner: number;
}

/** Bit patterns of one execution: A [rows][inner], B [8][inner], C [rows][8]. */
export interface EdgeOperands {
  readonly a: Uint32Array;
  readonly b: Uint32Array;
  readonly c: Uint32Array;
}

/** Exponent fields from first to last, drawn evenly; `zero` is ±0. */
type Fields = readonly [first: number, last: number] | 'zero';

/** What a regime draws; operands of even k and of odd k may differ. */
interface Regime {
  readonly a: readonly [even: Fields, odd: Fields];
  readonly b: readonly [even: Fields, odd: Fields];
  /** Unbiased exponents of C, or ±0. */
  readonly c: Fields;
  /** Whether products of odd k are the negatives of those before. */
  readonly cancelling?: boolean;
}

/** What a regime needs to know of a format: the first and last normal fields, and that of 1. */
interface Range {
  readonly bias: number;
  readonly top: number;
  /** Whether the exponents reach as far as those of fp32. */
  readonly wide: boolean;
}

const both = (fields: Fields): readonly [Fields, Fields] => [fields, fields];

/** The regimes after the first, which draws all bits at random. */
const regimes: readonly ((a: Range, b: Range) => Regime)[] = [
  // Ordinary numbers.
  (a, b) => ({
    a: both([a.bias - 3, a.bias + 2]),
    b: both([b.bias - 3, b.bias + 2]),
    c: [-4, 3],
  }),
  // Zero times huge beside tiny products: does a zero product take part in the largest exponent?
  (_, b) => ({
    a: ['zero', [1, 3]],
    b: [
      [b.top - 2, b.top],
      [1, 3],
    ],
    c: 'zero',
  }),
  (a, b) => ({
    a: [
      [a.top - 2, a.top],
      [1, 3],
    ],
    b: ['zero', [1, 3]],
    c: [2 - a.bias - b.bias, 8 - a.bias - b.bias],
  }),
  // Subnormal times huge: are significands normalised?
  (a, b) => ({
    a: [
      [0, 0],
      [a.bias - 2, a.bias + 1],
    ],
    b: [
      [b.top - 2, b.top],
      [b.bias - 2, b.bias + 1],
    ],
    c: [b.top - b.bias - a.bias - 20, b.top - b.bias - a.bias + 2],
  }),
  // Subnormal times subnormal.
  (a, b) => ({ a: both([0, 1]), b: both([0, 1]), c: [-a.bias - b.bias - 10, 4 - a.bias - b.bias] }),
  // Sums below the smallest normal number.
  (a, b) => ({
    a: both(a.wide ? [50, 60] : [0, 2]),
    b: both(b.wide ? [45, 60] : [0, 2]),
    c: [-127, -127],
  }),
  // Every exponent.
  (a, b) => ({ a: both([0, a.top]), b: both([0, b.top]), c: [-127, 127] }),
  // Sums around the smallest subnormal number and below.
  (a, b) => ({
    a: both(a.wide ? [40, 50] : [1, 2]),
    b: both(b.wide ? [45, 56] : [1, 2]),
    c: 'zero',
  }),
  // Sums that cancel to zero.
  (a, b) => ({
    a: both([a.bias - 3, a.bias + 3]),
    b: both([b.bias - 3, b.bias + 3]),
    c: 'zero',
    cancelling: true,
  }),
  // Overflow.
  (a, b) => ({
    a: both(a.wide ? [a.bias + 60, a.bias + 63] : [a.top - 2, a.top]),
    b: both(b.wide ? [b.bias + 62, b.bias + 64] : [b.top - 2, b.top]),
    c: [125, 127],
  }),
  // Nothing but C.
  (_, b) => ({ a: both('zero'), b: both([1, b.top]), c: [-127, 127] }),
];

export const edgeRegimes = 1 + regimes.length;
export const edgeColumns = 8;

/** The finaliser of MurmurHash3. */
function fmix32(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Pseudo-random 32-bit words, the same ones for the same seed. */
function wordSource(seed: number): () => number {
  let count = 0;
  return () => fmix32(fmix32(++count) ^ fmix32(seed));
}

function rangeOf(format: OperandFormat): Range {
  const { exponentBias, exponentBits } = format;
  return { bias: exponentBias, top: 2 ** exponentBits - 2, wide: exponentBits === 8 };
}

/** Sign from bit 0, fraction from the bits above, exponent field from the upper half. */
function drawOperand(format: OperandFormat, fields: Fields, word: number): number {
  const fractionBits = format.precision - 1;
  const sign = (word & 1) * 2 ** (format.storageBits - 1);
  if (fields === 'zero') return sign;
  const fraction = (word >>> 1) % 2 ** fractionBits;
  const field = fields[0] + ((word >>> 16) % (fields[1] - fields[0] + 1));
  return sign + (field * 2 ** fractionBits + fraction) * 2 ** format.paddingBits;
}

/** Exponents beyond the format's become those of its ends, infinities and NaNs left out. */
function drawAccumulator(
  name: AccumulatorFormat,
  exponents: Fields,
  word: number,
  fractionWord: number,
): number {
  const { storageBits, precision, exponentBias, exponentBits } = formats[name];
  const sign = (word & 1) * 2 ** (storageBits - 1);
  if (exponents === 'zero') return sign;
  const exponent = exponents[0] + ((word >>> 16) % (exponents[1] - exponents[0] + 1));
  const field = Math.min(Math.max(exponent + exponentBias, 0), 2 ** exponentBits - 2);
  return sign + field * 2 ** (precision - 1) + (fractionWord % 2 ** (precision - 1));
}

/** The operands of one execution of an instruction in a regime. */
function drawExecution(
  instruction: EdgeInstruction,
  regime: Regime | null,
  word: () => number,
): EdgeOperands {
  const { rows, inner, accumulator } = instruction;
  const draw = (
    format: OperandFormat,
    count: number,
    fields: readonly Fields[],
    negate: boolean,
  ) => {
    const patterns = new Uint32Array(count * inner);
    for (let i = 0; i < patterns.length; i++) {
      const random = word();
      if (regime === null) patterns[i] = Math.floor(random / 2 ** (32 - format.storageBits));
      else if (regime.cancelling && i % 2 === 1)
        patterns[i] = (patterns[i - 1] ^ (negate ? 2 ** (format.storageBits - 1) : 0)) >>> 0;
      else patterns[i] = drawOperand(format, fields[i % 2], random);
    }
    return patterns;
  };
  const a = draw(operandFormats[instruction.a], rows, regime?.a ?? [], true);
  const b = draw(operandFormats[instruction.b], edgeColumns, regime?.b ?? [], false);
  const c = Uint32Array.from({ length: rows * edgeColumns }, () => {
    const [random, fraction] = [word(), word()];
    return regime === null
      ? Math.floor(random / 2 ** (32 - formats[accumulator].storageBits))
      : drawAccumulator(accumulator, regime.c, random, fraction);
  });
  return { a, b, c };
}

/**
 * Operands that tell how many bits below the largest term are kept: row i adds 2^p, −2^p and
 * 1.5·2^(p − s), with s = 12 + i mod 16.
 */
function alignmentLadder({ a, b, accumulator, rows, inner }: EdgeInstruction): EdgeOperands {
  const [left, right] = [operandFormats[a], operandFormats[b]];
  // High enough for what is kept to be normal, low enough for fp16.
  const exponents = [left, right].map((format) =>
    Math.min(rangeOf(format).top - format.exponentBias, 7),
  );
  const p = exponents[0] + exponents[1];
  /** Products that Hopper's mma.sync of fp8 sums in one go. */
  const third = inner >= 8 ? 4 : 2;
  return {
    a: Uint32Array.from({ length: rows * inner }, (_, i) => {
      const [row, k] = [Math.floor(i / inner), i % inner];
      if (k === 0) return powerOfTwoPattern(left, exponents[0], 0);
      if (k === 1) return powerOfTwoPattern(left, exponents[0], 0) + 2 ** (left.storageBits - 1);
      if (k !== third) return 0;
      const smallest = p - 12 - (row % 16) - smallExponent(right);
      return powerOfTwoPattern(left, smallest, 1);
    }),
    b: Uint32Array.from({ length: edgeColumns * inner }, (_, i) =>
      powerOfTwoPattern(right, i % inner === third ? smallExponent(right) : exponents[1], 0),
    ),
    c: Uint32Array.from({ length: rows * edgeColumns }, (_, i) =>
      i % 4 < 2 ? 0 : 2 ** (formats[accumulator].storageBits - 1),
    ),
  };
}

/** An exponent low enough for the small products of e4m3. */
function smallExponent({ exponentBias }: OperandFormat): number {
  return Math.max(1 - exponentBias, -6);
}

/** The pattern of 2^exponent, or of 1.5 times that where `half` is 1; subnormal below the range. */
function powerOfTwoPattern(format: OperandFormat, exponent: number, half: 0 | 1): number {
  const hiddenBit = 2 ** (format.precision - 1);
  const field = exponent + format.exponentBias;
  const magnitude =
    field > 0
      ? field * hiddenBit + (half * hiddenBit) / 2
      : Math.floor((1 + half / 2) * hiddenBit * 2 ** (field - 1));
  return magnitude * 2 ** format.paddingBits;
}

/** Bits of a product of a number of the format with a power of two. */
const ladderBits = 8;

/**
 * Operands that tell where small terms are cut: row i adds two products of 2^-u, with u = 151 + i mod
 * 16, to products that make the sum 2^-149, the smallest fp32 number, in all. If 2^-u is cut, the
 * result is 0. Formats with the exponents of fp32 only.
 */
function floorLadder({ a, b, rows, inner }: EdgeInstruction): EdgeOperands {
  const columnExponent = -75;
  const columnOf = (i: number) => Math.floor(i / inner);
  return {
    a: Uint32Array.from({ length: rows * inner }, (_, i) => {
      const term = ladderTerms(151 + (columnOf(i) % 16))[i % inner] ?? 0;
      return patternOf(operandFormats[a], term / 2 ** columnExponent);
    }),
    b: Uint32Array.from({ length: edgeColumns * inner }, (_, i) =>
      patternOf(operandFormats[b], (columnOf(i) % 2 === 0 ? 1 : -1) * 2 ** columnExponent),
    ),
    c: Uint32Array.from({ length: rows * edgeColumns }, (_, i) => (i % 4 < 2 ? 0 : 0x80000000)),
  };
}

/** Two of 2^-u and, with at most 8 bits each, the terms of 2^-149 − 2^(1 − u). */
function ladderTerms(u: number): number[] {
  const unit = 2 ** (1 - u);
  const terms = [2 ** -u, 2 ** -u];
  for (let bits = u - 150; bits > 0; bits -= ladderBits) {
    const low = Math.max(bits - ladderBits, 0);
    terms.push((2 ** bits - 2 ** low) * unit);
  }
  return terms;
}

/** The pattern of a normal number that a format of fp32's exponents holds exactly. */
function patternOf(format: OperandFormat, value: number): number {
  const word = new Uint32Array(Float32Array.of(value).buffer)[0];
  return format.storageBits === 16 ? word >>> 16 : word;
}

function hasFloorLadder({ a, b, accumulator }: EdgeInstruction): boolean {
  return accumulator === 'fp32' && [a, b].every((name) => operandFormats[name].exponentBits === 8);
}

/**
 * The operands of all executions of the instruction with this index in the list, in order: of each
 * regime as many as make 512 results, one regime after the other; then one as `alignmentLadder`
 * describes and, where the format reaches that far, one as `floorLadder` does.
 */
export function edgeOperands(instruction: EdgeInstruction, index: number): EdgeOperands[] {
  const word = wordSource(index);
  const ranges = [operandFormats[instruction.a], operandFormats[instruction.b]].map(rangeOf);
  const perRegime = 64 / instruction.rows;
  const drawn = [null, ...regimes.map((regime) => regime(ranges[0], ranges[1]))].flatMap((regime) =>
    Array.from({ length: perRegime }, () => drawExecution(instruction, regime, word)),
  );
  const ladders = hasFloorLadder(instruction)
    ? [alignmentLadder(instruction), floorLadder(instruction)]
    : [alignmentLadder(instruction)];
  return [...drawn, ...ladders];
}
