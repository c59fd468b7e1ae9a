import {
  addFloat32,
  bitsOfFloat32,
  float32Of,
  fusedMultiplyAddFloat32,
  sumToOdd,
} from '../../../arith/index.js';
import { outOfBoundsNan } from '../../../machine/index.js';
import {
  type FloatType,
  floatTypes,
  flushed,
  type LaneInstruction,
  type LaneUnit,
  ofHalves,
  type RegisterWidth,
  roundings,
  saturated,
} from '../../../isa/index.js';
import { type FamilyFacts, wordRow } from './row.js';

const { f16, bf16 } = floatTypes;

function facts(
  instruction: string,
  unit: LaneUnit = 'fma',
  section = 'Half Precision Floating Point',
): FamilyFacts {
  return {
    meaning: 'is',
    unit,
    evidence: 'isa',
    source: `PTX ISA, ${section} Instructions: ${instruction}`,
  };
}

/** A row for single values and one for pairs of them. */
function singleAndPair(
  name: string,
  operands: number,
  compute: (...halves: number[]) => number,
  common: FamilyFacts,
): LaneInstruction[] {
  const sources = (width: RegisterWidth): RegisterWidth[] =>
    Array.from({ length: operands }, () => width);
  return [
    wordRow(name, 16, sources(16), compute, common),
    wordRow(`${name}x2`, 32, sources(32), ofHalves(compute), { ...common, laneOperations: 2 }),
  ];
}

/**
 * The exact result, or an fp64 number on the same side of every half precision number, or halfway between two:
 * rounding it once more rounds the exact result.
 */
const operations: Readonly<
  Record<string, readonly [operands: 2 | 3, (a: number, b: number, c: number) => number]>
> = {
  add: [2, sumToOdd],
  sub: [2, (a, b) => sumToOdd(a, -b)],
  mul: [2, (a, b) => a * b],
  fma: [3, (a, b, c) => sumToOdd(a * b, c)],
};

/** Limits on a result. */
const limits: Readonly<Record<string, (value: number) => number>> = {
  '': (value) => value,
  '.sat': saturated,
  '.relu': (value) => (value <= 0 ? 0 : value),
};

function limitsOf(type: FloatType, opcode: string): string[] {
  if (opcode === 'fma') return type === f16 ? ['', '.sat', '.relu'] : ['', '.relu'];
  return type === f16 ? ['', '.sat'] : [''];
}

function arithmetic(type: FloatType): LaneInstruction[] {
  return Object.entries(operations).flatMap(([opcode, [operands, compute]]) =>
    (opcode === 'fma' ? ['.rn'] : ['', '.rn']).flatMap((mode) =>
      (type === f16 ? [false, true] : [false]).flatMap((isFlushing) =>
        limitsOf(type, opcode).flatMap((limit) => {
          const operand = (half: number): number => {
            const value = type.numberOf(half);
            return isFlushing ? flushed(type, value) : value;
          };
          const evaluate = (a: number, b: number, c: number): number => {
            const exact = compute(operand(a), operand(b), operand(c ?? 0));
            const rounded = type.numberOf(type.bitsOf(exact, { flushSubnormals: isFlushing }));
            return Number(type.bitsOf(limits[limit](rounded)));
          };
          const ftz = isFlushing ? '.ftz' : '';
          const name = `${opcode}${mode}${ftz}${limit}.${type.name}`;
          return singleAndPair(name, operands, evaluate, facts(opcode));
        }),
      ),
    ),
  );
}

/**
 * `fma.oob`: +0 where a factor is the NaN of either sign with which TMA fills places outside of a tensor. Source: PTX ISA, Half
 * Precision Floating Point Instructions: fma.
 */
function withoutOutside(type: FloatType): LaneInstruction[] {
  return ['', '.relu'].flatMap((relu) => {
    const evaluate = (a: number, b: number, c: number): number => {
      if ([a, b].some((half) => (half & 0x7fff) === outOfBoundsNan)) return 0;
      const exact = sumToOdd(type.numberOf(a) * type.numberOf(b), type.numberOf(c));
      return Number(type.bitsOf(limits[relu](type.numberOf(type.bitsOf(exact)))));
    };
    return singleAndPair(`fma.rn.oob${relu}.${type.name}`, 3, evaluate, facts('fma'));
  });
}

/** Sign instructions, which are additions in the hardware, so that a NaN becomes the canonical one. */
function signs(type: FloatType): LaneInstruction[] {
  const compute = { neg: (value: number) => -value, abs: Math.abs } as const;
  return (['neg', 'abs'] as const).flatMap((opcode) =>
    (type === f16 ? ['', '.ftz'] : ['']).flatMap((ftz) => {
      const evaluate = (half: number): number => {
        const value = type.numberOf(half);
        return Number(type.bitsOf(compute[opcode](ftz === '' ? value : flushed(type, value))));
      };
      return singleAndPair(`${opcode}${ftz}.${type.name}`, 1, evaluate, facts(opcode));
    }),
  );
}

/** fp32 with operands of half precision, which sm_100 has: the half is converted to fp32, exactly. */
function mixed(type: FloatType): LaneInstruction[] {
  return ['', ...Object.keys(roundings).map((mode) => `.${mode}`)].flatMap((mode) =>
    ['', '.sat'].flatMap((sat) => {
      const options = { rounding: roundings[mode.slice(1)] ?? 'nearest-even' };
      const limit = limits[sat];
      const sum = (a: number, c: number): number => bitsOfFloat32(limit(addFloat32(a, c, options)));
      const name = (opcode: string): string => `${opcode}${mode}${sat}.f32.${type.name}`;
      const mixedFacts = (opcode: string): FamilyFacts =>
        facts(opcode, 'fma', 'Mixed Precision Floating Point');
      const rows = [
        wordRow(
          name('add'),
          32,
          [16, 32],
          (a, c) => sum(type.numberOf(a), float32Of(c)),
          mixedFacts('add'),
        ),
        wordRow(
          name('sub'),
          32,
          [16, 32],
          (a, c) => sum(type.numberOf(a), -float32Of(c)),
          mixedFacts('sub'),
        ),
      ];
      if (mode === '') return rows;
      const fused = wordRow(
        name('fma'),
        32,
        [16, 16, 32],
        (a, b, c) =>
          bitsOfFloat32(
            limit(
              fusedMultiplyAddFloat32(type.numberOf(a), type.numberOf(b), float32Of(c), options),
            ),
          ),
        mixedFacts('fma'),
      );
      return [...rows, fused];
    }),
  );
}

/**
 * f16 and bf16, single and in pairs: rounded once to nearest from the exact result, subnormals kept except
 * with `.ftz`, every NaN canonical; and fp32 sums of them.
 */
export const halfArithmetic: readonly LaneInstruction[] = [
  ...[f16, bf16].flatMap((type) => [
    ...arithmetic(type),
    ...withoutOutside(type),
    ...signs(type),
    ...mixed(type),
  ]),
];
