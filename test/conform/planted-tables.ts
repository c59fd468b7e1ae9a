import * as fc from 'fast-check';
import {
  createExp2PolynomialArray,
  exp2Coefficients,
  type PolynomialDegree,
} from '../../kernels/index.js';
import {
  createSpecialFunctionArrays,
  specialFunctionTables,
  type Float32SpecialFunctionName,
  type SpecialFunctionTables,
} from '../../src/hardware/index.js';
import type { ArrayFunction } from '../../src/simd/index.js';

/** A model with one bit of one number of its tables turned over. */
export interface PlantedError {
  readonly instruction: string;
  /** Which number, and which of its bits. */
  readonly description: string;
  readonly createModel: () => ArrayFunction;
}

type Interpolated = Exclude<keyof SpecialFunctionTables, 'tanh'>;

const interpolated: readonly (readonly [Float32SpecialFunctionName, Interpolated])[] = [
  ['ex2.approx.ftz.f32', 'exp2'],
  ['ex2.approx.f32', 'exp2'],
  ['rcp.approx.ftz.f32', 'reciprocal'],
  ['lg2.approx.ftz.f32', 'log2'],
  ['rsqrt.approx.ftz.f32', 'reciprocalSquareRoot'],
];

type Segments = SpecialFunctionTables['exp2']['segments'];

/** Bits that c0, c1 and c2 of a segment have in the unit. */
const coefficientBits = [26, 17, 15] as const;

function withFlippedSegment(
  segments: Segments,
  index: number,
  coefficient: number,
  bit: number,
): Segments {
  return segments.map((segment, i) => {
    if (i !== index) return segment;
    const changed: [number, number, number] = [...segment];
    changed[coefficient] ^= 1 << bit;
    return changed;
  });
}

/** One bit of one coefficient of one of `count` segments. */
function coefficientBit(count: number): fc.Arbitrary<readonly [number, number, number]> {
  return fc
    .tuple(fc.nat(count - 1), fc.constantFrom(0, 1, 2))
    .chain(([index, coefficient]) =>
      fc.tuple(
        fc.constant(index),
        fc.constant(coefficient),
        fc.nat(coefficientBits[coefficient] - 1),
      ),
    );
}

function inSegment(): fc.Arbitrary<PlantedError> {
  return fc.constantFrom(...interpolated).chain(([instruction, key]) => {
    const table = specialFunctionTables[key];
    return coefficientBit(table.segments.length).map(([index, coefficient, bit]) => {
      const segments = withFlippedSegment(table.segments, index, coefficient, bit);
      const tables = { ...specialFunctionTables, [key]: { ...table, segments } };
      return {
        instruction,
        description: `bit ${bit} of c${coefficient} in segment ${index}`,
        createModel: () => createSpecialFunctionArrays(tables)[instruction],
      };
    });
  });
}

function inRoundingConstant(): fc.Arbitrary<PlantedError> {
  return fc.tuple(fc.constantFrom(...interpolated), fc.nat(15)).map(([[instruction, key], bit]) => {
    const table = specialFunctionTables[key];
    const tables = { ...specialFunctionTables, [key]: { ...table, bias: table.bias ^ (1 << bit) } };
    return {
      instruction,
      description: `bit ${bit} of the rounding constant`,
      createModel: () => createSpecialFunctionArrays(tables)[instruction],
    };
  });
}

function inTanh(): fc.Arbitrary<PlantedError> {
  const binades = specialFunctionTables.tanh;
  return fc.nat(binades.length - 1).chain((index) => {
    const binade = binades[index];
    const { interpolator } = binade;
    return coefficientBit(interpolator.segments.length).map(([segment, coefficient, bit]) => {
      const segments = withFlippedSegment(interpolator.segments, segment, coefficient, bit);
      const changed = { ...binade, interpolator: { ...interpolator, segments } };
      const tables = { ...specialFunctionTables, tanh: binades.with(index, changed) };
      return {
        instruction: 'tanh.approx.f32',
        description: `bit ${bit} of c${coefficient} in segment ${segment} of binade ${index}`,
        createModel: () => createSpecialFunctionArrays(tables)['tanh.approx.f32'],
      };
    });
  });
}

function flipFloat32(value: number, bit: number): number {
  const words = new Uint32Array(Float32Array.of(value).buffer);
  words[0] ^= 1 << bit;
  return new Float32Array(words.buffer)[0];
}

function inPolynomial(): fc.Arbitrary<PlantedError> {
  return fc
    .constantFrom<PolynomialDegree[]>(1, 2, 3, 4, 5)
    .chain((degree) => fc.tuple(fc.constant(degree), fc.nat(degree), fc.nat(31)))
    .map(([degree, index, bit]) => {
      const coefficients = exp2Coefficients[degree];
      const changed = coefficients.with(index, flipFloat32(coefficients[index], bit));
      return {
        instruction: `fa4_ex2_poly${degree}`,
        description: `bit ${bit} of c${index}`,
        createModel: () => createExp2PolynomialArray(degree, changed),
      };
    });
}

/** Any bit of any number in the tables of the special function unit and of the polynomials. */
export function plantedError(): fc.Arbitrary<PlantedError> {
  return fc.oneof(
    { weight: 5, arbitrary: inSegment() },
    { weight: 1, arbitrary: inRoundingConstant() },
    { weight: 1, arbitrary: inTanh() },
    { weight: 5, arbitrary: inPolynomial() },
  );
}
