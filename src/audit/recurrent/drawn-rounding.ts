import {
  recurrentOperands,
  type RecurrentArithmetic,
  type RecurrentRounding,
  type RecurrentValue,
} from '../../../kernels/index.js';
import { makesGates } from '../../../oracles/index.js';
import { formats, type FormatName } from '../../formats/index.js';
import { recurrentFamilies, type RecurrentProblem } from '../../problem/index.js';
import { lazily } from '../../reuse.js';
import { randomWords } from '../rows/index.js';

const bits = new Float64Array(1);
const words = new Uint32Array(bits.buffer);

/** The power of two at or below |x| of normal fp64 numbers, by their field of the exponent. */
const powers = lazily(() => {
  const table = new Float64Array(2 ** 11);
  for (let field = 1; field < table.length; field++) table[field] = 2 ** (field - 1023);
  return table;
});

/** Numbers of {@link noise}, a power of two. */
const noiseLength = 2 ** 16;

/**
 * Random numbers, normally distributed (Box and Muller) with the variance 1/3 of a rounding that is uniform from −1 to 1: normal ones make
 * the limits provable. A stretch of them that begins anywhere serves many values.
 */
const noise = lazily(() => {
  const next = randomWords(1, 0);
  const uniform = () => (next() + 0.5) / 2 ** 32;
  return Float64Array.from(
    { length: noiseLength },
    () => Math.sqrt((-2 / 3) * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()),
  );
});

/** The root mean square of 2^⌊log2|x|⌋ / |x|, x distributed as significands are (Benford): √(3 / (8 ln 2)). */
const meanPower = Math.sqrt(3 / (8 * Math.LN2));

/**
 * Half ulps that an exponential may err by: ex2.approx.ftz.f32 by 2^-22.5 of 2^x for most arguments, and the product with log2 e that x is
 * rounds too.
 */
const decayHalves = 3;

/** Formats of many bits, whose roundings are drawn relative to the value: only their mean square matters. */
const longBits = 20;

/**
 * A rounding that draws what it does: an error of the variance that one within half an ulp of the value's format has. Numbers of fp64 and zeros stay.
 */
export function drawnRounding(
  arithmetic: RecurrentArithmetic,
  outputs: Readonly<Partial<Record<string, FormatName>>>,
  seed: number,
): RecurrentRounding {
  const next = randomWords(seed, 1);
  const drawn = noise();
  const powerOf = powers();
  const mask = noiseLength - 1;
  const change = (
    name: FormatName,
    values: Float64Array,
    [first, end]: readonly [number, number],
    halves = 1,
  ) => {
    if (name === 'fp64') return;
    const { precision, minExponent } = formats[name];
    const half = halves * 2 ** -precision;
    const from = (next() & mask) - first;
    if (precision > longBits) {
      const share = half * meanPower;
      for (let i = first; i < end; i++) values[i] *= 1 + share * drawn[(from + i) & mask];
      return;
    }
    const minNormal = 2 ** minExponent;
    for (let i = first; i < end; i++) {
      const x = values[i];
      if (x === 0) continue;
      bits[0] = x;
      const power = Math.abs(x) < minNormal ? minNormal : powerOf[(words[1] >>> 20) & 0x7ff];
      values[i] = x + half * power * drawn[(from + i) & mask];
    }
  };
  return {
    value: (of, values, first, end) => {
      change(arithmetic.formats[of], values, [first, end], of === 'decay' ? decayHalves : 1);
    },
    output: (name, values, first, end) => {
      change(outputs[name] ?? 'fp32', values, [first, end]);
    },
  };
}

/**
 * Values whose errors may all have one sense: tensor cores truncate sums, units approximate exponentials, one decay is rounded the same for every
 * token, sums of gates lean as their gates do, and a state of few bits that decays slowly is rounded the same way again and again.
 */
const alikeValues = ['sum', 'decay', 'gates', 'state'] as const satisfies readonly RecurrentValue[];

/** A value whose errors may all have one sense, or dots both of whose operands are cut. */
export type AlikeValue = RecurrentValue | 'decayed-dots';

/**
 * The values of a problem's kernels whose errors may all have one sense; of made gates and β what they are made of, of Mamba-2 Δ too, as tokens of one dt have one Δ.
 * In chunks these are also operands in tf32, to which tensor cores cut numbers of fp32, and dots of operands that hold decays.
 */
export function alikeValuesOf(
  problem: RecurrentProblem,
  { form, formats: of }: Pick<RecurrentArithmetic, 'form' | 'formats'>,
): readonly AlikeValue[] {
  const hasSteps = makesGates(problem) || problem.mamba2 !== undefined;
  const steps = hasSteps ? (['time-step'] as const) : [];
  if (form === 'recurrent') return [...alikeValues, ...steps];
  const isByDimension = recurrentFamilies[problem.family].decay === 'by-key-dimension';
  const decayed = isByDimension ? (['decayed-dots', 'decayed-operand'] as const) : [];
  return [
    ...alikeValues,
    ...steps,
    ...recurrentOperands.filter((value) => of[value] === 'tf32'),
    ...decayed,
  ];
}

/** What dots lose at most whose two operands are cut to tf32, relative: an ulp each. */
const cutDots = 2 ** (2 - formats.tf32.precision);

/**
 * A rounding that makes all values of a name larger by an ulp of fp32, or by half an ulp of a shorter format, and nothing else; dots larger
 * by what both of their operands lose.
 */
export function alikeRounding(
  { formats: of }: RecurrentArithmetic,
  name: AlikeValue,
): RecurrentRounding {
  const larger = (values: Float64Array, [first, end]: readonly [number, number], share: number) => {
    for (let i = first; i < end; i++) values[i] *= 1 + share;
  };
  const output = () => undefined;
  if (name === 'decayed-dots')
    return {
      value: () => undefined,
      output,
      decayedDots: (dots, first, end) => larger(dots, [first, end], cutDots),
    };
  const { precision } = formats[of[name]];
  // States of fp32 are rounded to nearest, and of many bits; what is cut to tf32 may lose an ulp.
  const short = of[name] === 'tf32' ? 2 ** (1 - precision) : 2 ** -precision;
  const share = precision <= longBits ? short : name === 'state' ? 0 : 2 ** -23;
  return {
    value: (one, values, first, end) => {
      if (one === name) larger(values, [first, end], share);
    },
    output,
  };
}
