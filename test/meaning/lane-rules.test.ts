import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { doubleDouble } from '../../src/arith/index.js';
import { type LaneValue, laneRows, type Variant } from '../../src/isa/index.js';
import {
  type ElementOperand,
  type ElementRule,
  evaluateReal,
  laneRules,
  limited,
} from '../../src/meaning/rules/index.js';
import { wordSource } from '../hardware/tensor-core/random-patterns.js';
import { scaled } from '../setup/effort.js';

const variants = laneRows.flatMap((row) => row.variants());
const functions = variants.filter(({ meaning }) => meaning === 'is');
const onNumbers = functions.filter(({ name }) => /\.(?:b?f(?:16|32|64)|tf32|u?e\dm\d)/.test(name));

/** Functions of numbers that have no rule: those values are lost, or decided. */
const without: Readonly<Record<string, RegExp>> = {
  'an extremum of magnitudes, with the sign of another operand or with none': /^(?:min|max)\..*abs/,
  'numbers of less than a byte, whose places tags do not tell apart': /\.e2m1x/,
  'numbers of six bits, which are no values': /\.e[23]m[32]x/,
  'a power of two by its exponent, which is decided as an integer is': /\.ue8m0x2\.(?:f32|bf16x2)$/,
};

it('has a rule for each function of numbers, but for those with a reason', () => {
  const lacking = onNumbers.filter((variant) => laneRules(variant) === null);
  const reasonOf = ({ name }: Variant) =>
    Object.keys(without).find((reason) => without[reason].test(name));
  expect(lacking.filter((variant) => reasonOf(variant) === undefined)).toEqual([]);
  expect(new Set(lacking.map(reasonOf))).toEqual(new Set(Object.keys(without)));
});

/** Bits of a format's significands, the first one of which is not stored. */
const precisions: Readonly<Record<string, number>> = {
  f64: 53,
  f32: 24,
  f16: 11,
  tf32: 11,
  bf16: 8,
  e4m3: 4,
  e5m2: 3,
};

/** Largest errors of units that do not round correctly; source: PTX ISA, the instruction's own page. */
const approximations: readonly (readonly [RegExp, (real: number, ulp: number) => number])[] = [
  [/^(?:rcp|rsqrt)\.approx\.ftz\.f64/, (real) => Math.abs(real) * 2 ** -19],
  [/^rcp\.approx/, (_, ulp) => ulp],
  [/^div\.(?:approx|full)/, (_, ulp) => 2 * ulp],
  [/^sqrt\.approx/, (real) => Math.abs(real) * 2 ** -23],
  [/^rsqrt\.approx/, (real) => Math.abs(real) * 2 ** -22.9],
  [/^(?:sin|cos)\.approx/, () => 2 ** -14.7],
  [/^lg2\.approx/, (real) => Math.max(1, Math.abs(real)) * 2 ** -22],
  [/^ex2\.approx\.f16/, (real) => Math.abs(real) * 2 ** -9.9],
  [/^ex2\.approx.*bf16/, (real) => Math.abs(real) * 2 ** -7],
  [/^ex2\.approx/, (real) => Math.abs(real) * 2 ** -22],
  [/^tanh\.approx\.f16/, () => 2 ** -10.987],
  [/^tanh\.approx\.bf16/, () => 2 ** -8],
  [/^tanh\.approx/, (real) => Math.abs(real) * 2 ** -11],
];

function allowed(name: string, { format }: ElementOperand, real: number): number {
  const precision = precisions[name.includes('.tf32.') ? 'tf32' : format.name];
  const ulp = 2 ** (Math.floor(Math.log2(Math.abs(real))) + 1 - precision);
  const own = approximations.find(([pattern]) => pattern.test(name));
  return own === undefined ? ulp : own[1](real, ulp);
}

/** Bits of an operand that is a number of moderate size: an integer, or one with an exponent near that of 1. */
function drawBits(
  { format: { name, bytes, isInteger, decode } }: ElementOperand,
  next: () => number,
): bigint {
  const size = BigInt(8 * bytes);
  for (;;) {
    const bits = BigInt.asUintN(8 * bytes, (BigInt(next()) << 32n) | BigInt(next()));
    if (isInteger) return bits >> (BigInt(next()) % size);
    const number = decode(Number(bits & 0xffffffffn), Number(bits >> 32n));
    const isModerate = Math.abs(number) >= 2 ** -5 && Math.abs(number) <= 2 ** 5;
    if (isModerate) return bits;
    if (name !== 'f32' && name !== 'f64' && name !== 'bf16') continue;
    // Few patterns of so many exponents are moderate: another exponent is put in.
    const fraction = { f64: 52n, f32: 23n, bf16: 7n }[name];
    const bias = name === 'f64' ? 1023n : 127n;
    const exponent = bias + BigInt(next() % 10) - 5n;
    const sign = (bits >> (size - 1n)) << (size - 1n);
    return sign | (exponent << fraction) | (bits & ((1n << fraction) - 1n));
  }
}

/** Random operands of an instruction with rules: numbers in the places of its elements, and anything elsewhere. */
function drawOperands({ sources }: Variant, rules: readonly ElementRule[], next: () => number) {
  const bits = sources.map((width) =>
    width === 'pred' ? 0n : BigInt.asUintN(width, (BigInt(next()) << 32n) | BigInt(next())),
  );
  for (const { operands } of rules)
    for (const operand of operands) {
      const shift = BigInt(8 * operand.byte);
      const mask = ((1n << BigInt(8 * operand.format.bytes)) - 1n) << shift;
      bits[operand.operand] = (bits[operand.operand] & ~mask) | (drawBits(operand, next) << shift);
    }
  return bits;
}

function numberAt({ operand, byte, format }: ElementOperand, bits: readonly bigint[]): number {
  const shifted = bits[operand] >> BigInt(8 * byte);
  const low = Number(BigInt.asUintN(8 * Math.min(format.bytes, 4), shifted));
  return format.decode(low, Number(BigInt.asUintN(32, shifted >> 32n)));
}

function laneValueOf(bits: bigint, width: Variant['sources'][number]): LaneValue {
  return width !== 'pred' && width > 32 ? bits : Number(bits);
}

describe('bits are within one rounding of the real function', () => {
  const opcodes = new Set(onNumbers.map(({ name }) => name.split('.')[0]));
  it.each([...opcodes])('%s', (opcode) => {
    const ruled = onNumbers.flatMap((variant) => {
      const rules = variant.name.split('.')[0] === opcode ? laneRules(variant) : null;
      return rules === null ? [] : [{ variant, rules }];
    });
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const next = wordSource(seed);
        for (const { variant, rules } of ruled) {
          const bits = drawOperands(variant, rules, next);
          const result = variant.evaluate(
            ...bits.map((one, i) => laneValueOf(one, variant.sources[i])),
          );
          const results = (typeof result === 'object' ? result : [result]).map(BigInt);
          for (const { function: name, limit, operands, result: place } of rules) {
            if (place.format.isInteger) continue;
            const numbers = operands.map((operand) => numberAt(operand, bits));
            const [a, b = doubleDouble(0), c = doubleDouble(0)] = numbers.map(doubleDouble);
            const real = limited(evaluateReal(name, a, b, c), limit).high;
            const { largest } = place.format;
            if (!Number.isFinite(real) || Math.abs(real) > largest || Math.abs(real) < 2 ** -14)
              continue;
            const got = numberAt(place, results);
            expect(
              Math.abs(got - real),
              `${variant.name} of ${numbers.join(', ')} gives ${got}, and ${name} is ${real}`,
            ).toBeLessThanOrEqual(allowed(variant.name, place, real));
          }
        }
      }),
      { numRuns: scaled(4) },
    );
  });
});
