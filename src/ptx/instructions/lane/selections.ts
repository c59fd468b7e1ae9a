import {
  type FloatType,
  floatTypes,
  flushed,
  type LaneInstruction,
  type RegisterWidth,
} from '../../../isa/index.js';
import { type FamilyFacts, row, wordRow } from './row.js';

const facts = (section: string, instruction: string): FamilyFacts => ({
  meaning: 'chooses',
  unit: 'alu',
  evidence: 'isa',
  source: `PTX ISA, ${section}: ${instruction}`,
});
const selection = (instruction: string) =>
  facts('Comparison and Selection Instructions', instruction);

const widths: readonly (readonly [16 | 32 | 64, readonly string[]])[] = [
  [16, ['b16', 'u16', 's16']],
  [32, ['b32', 'u32', 's32', 'f32']],
  [64, ['b64', 'u64', 's64', 'f64']],
];

const { f32 } = floatTypes;

function selectionRows(width: RegisterWidth, type: string): LaneInstruction[] {
  const common = { destinations: [width] } as const;
  const isNotNegative = (c: number): boolean => f32.numberOf(c) >= 0;
  return [
    row(
      `selp.${type}`,
      {
        destinations: common.destinations,
        sources: [width, width, 'pred'],
        evaluate: (a, b, predicate) => (predicate === 0 ? b : a),
      },
      selection('selp'),
    ),
    row(
      `slct.${type}.s32`,
      {
        destinations: common.destinations,
        sources: [width, width, 32],
        evaluate: (a, b, c) => ((Number(c) | 0) >= 0 ? a : b),
      },
      selection('slct'),
    ),
    // Flushing makes a small negative number −0, which is not less than 0.
    ...['', '.ftz'].map((ftz) =>
      row(
        `slct${ftz}.${type}.f32`,
        {
          destinations: common.destinations,
          sources: [width, width, 32],
          evaluate: (a, b, c) => {
            const value = f32.numberOf(c);
            return (ftz === '' ? isNotNegative(Number(c)) : flushed(f32, value) >= 0) ? a : b;
          },
        },
        selection('slct'),
      ),
    ),
  ];
}

/** The tests of `testp` on a number; zeros count as normal. */
const tests: Readonly<Record<string, (type: FloatType, value: number) => boolean>> = {
  finite: (_type, value) => Number.isFinite(value),
  infinite: (_type, value) => Math.abs(value) === Infinity,
  number: (_type, value) => !Number.isNaN(value),
  notanumber: (_type, value) => Number.isNaN(value),
  normal: (type, value) =>
    value === 0 || (Number.isFinite(value) && Math.abs(value) >= type.smallestNormal),
  subnormal: (type, value) => value !== 0 && Math.abs(value) < type.smallestNormal,
};

function testRows(type: FloatType): LaneInstruction[] {
  return Object.entries(tests).map(([name, holds]) =>
    row(
      `testp.${name}.${type.name}`,
      {
        destinations: ['pred'],
        sources: [type.width],
        evaluate: (a) => (holds(type, type.numberOf(a)) ? 1 : 0),
      },
      facts('Floating Point Instructions', 'testp'),
    ),
  );
}

/** `lop3` with a predicate as well: whether any bit is set, combined with another predicate. */
export function logicWithPredicate(lookUp: (...operands: number[]) => number): LaneInstruction[] {
  const combine = {
    or: (a: number, b: number) => a | b,
    and: (a: number, b: number) => a & b,
  } as const;
  return (['or', 'and'] as const).map((operation) =>
    row(
      `lop3.${operation}.b32`,
      {
        destinations: [32, 'pred'],
        sources: [32, 32, 32, 32, 'pred'],
        evaluate: (a, b, c, table, predicate) => {
          const result = lookUp(Number(a), Number(b), Number(c), Number(table));
          return [result, combine[operation](result === 0 ? 0 : 1, Number(predicate))];
        },
      },
      facts('Logic and Shift Instructions', 'lop3'),
    ),
  );
}

/** `slct` and `selp` of all types, `testp`. */
export const selections: readonly LaneInstruction[] = [
  ...widths.flatMap(([width, types]) => types.flatMap((type) => selectionRows(width, type))),
  ...[floatTypes.f32, floatTypes.f64].flatMap((type) => testRows(type)),
  wordRow('not.pred', 'pred', ['pred'], (a) => a ^ 1, facts('Logic and Shift Instructions', 'not')),
];
