import { float32Of } from '../../arith/index.js';
import { operandFormats, type OperandFormatName } from '../../hardware/index.js';
import { type Row, row } from '../row.js';
import { positive } from '../values/rounding.js';
import { halves, type PairFormat, pairFacts, shortFormats } from './pair-formats.js';

/** The form in which a format takes random bits: their number, and the numbers in a destination. */
interface RandomForm {
  readonly pair: PairFormat;
  readonly format: OperandFormatName;
  readonly randomBits: 13 | 16;
  readonly numbers: 2 | 4;
}

function form(
  name: string,
  format: OperandFormatName,
  randomBits: 13 | 16,
  numbers: 2 | 4,
): RandomForm[] {
  const pair = [...halves, ...shortFormats].find((one) => one.name === name);
  return pair === undefined ? [] : [{ pair, format, randomBits, numbers }];
}

const forms: readonly RandomForm[] = [
  ...form('f16x2', 'fp16', 13, 2),
  ...form('bf16x2', 'bf16', 16, 2),
  ...form('e4m3x2', 'e4m3', 16, 4),
  ...form('e5m2x2', 'e5m2', 16, 4),
  ...form('e2m3x2', 'e2m3', 16, 4),
  ...form('e3m2x2', 'e3m2', 16, 4),
];

/** The largest finite number of a format. */
function largestOf({
  precision,
  exponentBits,
  exponentBias,
  specials,
}: (typeof operandFormats)['e4m3']) {
  const top = 2 ** exponentBits - 1 - exponentBias - (specials === 'ieee' ? 1 : 0);
  return (2 - (specials === 'fn' ? 2 : 1) * 2 ** (1 - precision)) * 2 ** top;
}

/**
 * A number of fp32 rounded to a format by random bits: its magnitude is taken in units of 2^-n of the last place, for n random
 * bits; the bits are added to its whole part, and the whole last places are kept.
 */
function rounded(
  { format: name, randomBits }: RandomForm,
  value: number,
  random: number,
  saturates: boolean,
): number {
  const format = operandFormats[name];
  const largest = largestOf(format);
  const sign = value < 0 || Object.is(value, -0) ? -1 : 1;
  const magnitude = Math.abs(value);
  if (value !== value) return NaN;
  if (magnitude === Infinity) return sign * (saturates ? largest : Infinity);
  const exponent = Math.max(Math.floor(Math.log2(magnitude)), 1 - format.exponentBias);
  // log2 may round up next to a power of two.
  const leading =
    exponent > 1 - format.exponentBias && 2 ** exponent > magnitude ? exponent - 1 : exponent;
  const place = 2 ** (leading - format.precision + 1);
  const units = Math.floor((magnitude / place) * 2 ** randomBits) + random;
  const result = Math.floor(units / 2 ** randomBits) * place;
  return sign * (result > largest ? (saturates ? largest : Infinity) : result);
}

/**
 * `cvt.rs`, whose rounding is decided by random bits that the kernel gives: the upper half of the word for the first operand of two, or the
 * first two of four, and the lower half for the others. The ISA does not say which bits belong to which number of e2m1x4, so it is left
 * out.
 */
export const stochasticConversionRows: readonly Row[] = forms.map((one) => {
  const { pair, numbers, randomBits } = one;
  const mask = 2 ** randomBits - 1;
  const satfinite = numbers === 2 ? '{.satfinite}' : '.satfinite';
  const operands = numbers === 2 ? 'a, b' : 'a, b, e, f';
  return row({
    ...pairFacts,
    syntax:
      `cvt.rs{.relu}${satfinite}.${pair.name.replace('x2', `x${numbers}`)}.f32 d, ${operands}, rbits` as string,
    evaluate:
      (chosen: Readonly<Record<string, string>>) =>
      (...words: number[]) => {
        const random = words[numbers];
        let result = 0;
        for (let i = 0; i < numbers; i++) {
          const half = i < numbers / 2 ? random >>> 16 : random & 0xffff;
          const value = float32Of(words[i]);
          const kept = rounded(one, value, half & mask, chosen.satfinite === 'satfinite');
          const pattern = pair.encode(chosen.relu === 'relu' ? positive(kept) : kept, {});
          result = result * 2 ** pair.bits + pattern;
        }
        return result >>> 0;
      },
    laneOperations: 2,
    evidence: 'isa',
    also: 'random bits of .rs; that they begin right below the last place is assumed',
  });
});
