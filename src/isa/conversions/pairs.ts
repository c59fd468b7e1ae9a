import { float32Of } from '../../arith/index.js';
import type { RoundingOptions } from '../../formats/index.js';
import {
  conversions,
  convertPacked,
  convertPair,
  type PackedConversionName,
  type PairConversionName,
} from '../../hardware/index.js';
import { type Row, row } from '../row.js';
import { positive, roundings } from '../values/rounding.js';
import { type Emit, onWords, shortened } from '../vectors/index.js';
import { i32x4, v128 } from '../webassembly/index.js';
import { roundedToBf16 } from './code.js';
import { halves, joined, type PairFormat, pairFacts, shortFormats } from './pair-formats.js';

/** The chosen modifiers; conversions have some of them. */
type Chosen = Readonly<Record<string, string>>;

function limited(chosen: Chosen): (value: number) => number {
  return chosen.relu === 'relu' ? positive : (value) => value;
}

function isPair(name: string): name is PairConversionName {
  return Object.hasOwn(conversions, name) && name.endsWith('x2.f32');
}

function isPacked(name: string): name is PackedConversionName {
  return Object.hasOwn(conversions, name) && !name.endsWith('.f32') && !name.startsWith('cvt.f32.');
}

function optionsOf(rounding: string, saturates: boolean): RoundingOptions {
  return { rounding: roundings[rounding], overflow: saturates ? 'saturate' : 'overflow' };
}

/** The conversion of src/hardware with these modifiers, if there is one. */
function pairName(format: PairFormat, { mode = 'rn', relu, satfinite }: Chosen) {
  if (relu === 'relu') return null;
  const name = `cvt.${mode}${satfinite === 'satfinite' ? '.satfinite' : ''}.${format.name}.f32`;
  return isPair(name) ? name : null;
}

/** `d = {a, b}`, a in the high part. */
function pairCode(name: PairConversionName, bits: number): Emit {
  if (name === 'cvt.rn.bf16x2.f32')
    return onWords((body, a, b) => {
      const high = v128.and(roundedToBf16(body, a), i32x4.splat(0xffff0000));
      return v128.or(high, i32x4.shrU(roundedToBf16(body, b), 16));
    });
  return onWords((body, a, b) => {
    const high = shortened(body, name, a);
    return v128.or(i32x4.shl(high, bits), shortened(body, name, b));
  });
}

/** The formats that an H200 has in pairs; of the others the ISA speaks. */
function evidenceOf({ name }: PairFormat, other = ''): 'silicon' | 'isa' {
  const isNew = /^(e2m3|e3m2|e2m1)/.test(name) || (name.startsWith('e') && other === 'bf16x2');
  return isNew ? 'isa' : 'silicon';
}

/** Two fp32 numbers to a word of both, with the first operand in the high part. */
function ofFloats(format: PairFormat, modifiers: string, saturates: (chosen: Chosen) => boolean) {
  const optionsFor = (chosen: Chosen) => optionsOf(chosen.mode ?? 'rn', saturates(chosen));
  return row({
    ...pairFacts,
    syntax: `cvt${modifiers}.${format.name}.f32 d, a, b` as string,
    alternatives: { mode: ['.rn', '.rz'] },
    evaluate: (chosen: Chosen) => {
      const name = pairName(format, chosen);
      if (name !== null) return (a: number, b: number) => convertPair(name, a, b);
      const [limit, options] = [limited(chosen), optionsFor(chosen)];
      const one = (bits: number): number => format.encode(limit(float32Of(bits)), options);
      return (high: number, low: number) => joined(one(high), one(low), format.bits);
    },
    emit: (chosen: Chosen) => {
      const name = pairName(format, chosen);
      return name === null ? null : pairCode(name, format.bits);
    },
    isOfMachine: (chosen: Chosen) => pairName(format, chosen) !== null,
    laneOperations: 2,
    evidence: evidenceOf(format),
  });
}

/** One fp32 number, converted as in the pairs; without `.relu` and `.satfinite` it is a conversion of single numbers. */
function ofFloat(format: PairFormat): Row {
  return row({
    ...pairFacts,
    syntax: `cvt.mode{.relu}{.satfinite}.${format.name.slice(0, -'x2'.length)}.f32 d, a` as string,
    alternatives: { mode: ['.rn', '.rz'] },
    except: ({ relu, satfinite }: Chosen) => relu === '' && satfinite === '',
    evaluate: (chosen: Chosen) => {
      const name = pairName(format, chosen);
      if (name !== null) return conversions[name].evaluate;
      const [limit, options] = [
        limited(chosen),
        optionsOf(chosen.mode, chosen.satfinite === 'satfinite'),
      ];
      return (bits: number) => format.encode(limit(float32Of(bits)), options);
    },
    emit: (chosen: Chosen) => {
      const name = pairName(format, chosen);
      return name === null ? null : onWords((body, a) => shortened(body, name, a));
    },
    isOfMachine: (chosen: Chosen) => pairName(format, chosen) !== null,
    evidence: 'silicon',
  });
}

/** Pairs of a short format from and to pairs of f16 and bf16, each half by itself. */
function betweenPairs(format: PairFormat, half: PairFormat): Row[] {
  const saturating = optionsOf('rn', true);
  const toShort = `cvt.rn.satfinite.${format.name}.${half.name}`;
  const toHalf = `cvt.rn.${half.name}.${format.name}`;
  const mask = 2 ** format.bits - 1;
  const facts = {
    ...pairFacts,
    laneOperations: 2,
    evidence: evidenceOf(format, half.name),
  } as const;
  return [
    row({
      ...facts,
      syntax: `cvt.rn.satfinite{.relu}.${format.name}.${half.name} d, a` as string,
      evaluate: (chosen: Chosen) => {
        if (chosen.relu === '' && isPacked(toShort))
          return (word: number) => convertPacked(toShort, word);
        const limit = limited(chosen);
        const one = (bits: number): number => format.encode(limit(half.decode(bits)), saturating);
        return (word: number) => joined(one(word >>> 16), one(word & 0xffff), format.bits);
      },
      isOfMachine: ({ relu }: Chosen) => relu === '' && isPacked(toShort),
    }),
    row({
      ...facts,
      syntax: `cvt.rn{.relu}.${half.name}.${format.name} d, a` as string,
      evaluate: (chosen: Chosen) => {
        if (chosen.relu === '' && isPacked(toHalf))
          return (word: number) => convertPacked(toHalf, word & 0xffff);
        const limit = limited(chosen);
        const one = (bits: number): number => half.encode(limit(format.decode(bits)), {});
        return (word: number) => joined(one((word >>> format.bits) & mask), one(word & mask), 16);
      },
      isOfMachine: ({ relu }: Chosen) => relu === '' && isPacked(toHalf),
    }),
  ];
}

/** `cvt` to and from pairs of numbers. In pairs the first operand is the high one. Forms with scales are left out. */
export const pairConversionRows: readonly Row[] = [
  ...[...halves]
    .reverse()
    .flatMap((format) => [
      ofFloats(format, '.mode{.relu}{.satfinite}', ({ satfinite }) => satfinite === 'satfinite'),
      ofFloat(format),
    ]),
  ...shortFormats.map((format) => ofFloats(format, '.rn.satfinite{.relu}', () => true)),
  ...shortFormats.flatMap((format) => halves.flatMap((half) => betweenPairs(format, half))),
];
