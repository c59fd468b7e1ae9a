import { bitsOfFloat32, float32Of } from '../../../arith/index.js';
import type { LaneInstruction } from '../lane-instruction.js';
import { flushed, floatTypes, type FloatType, ofHalves } from './float-type.js';
import { type FamilyFacts, wordRow } from './row.js';

const { f16, bf16, f32 } = floatTypes;

function facts(opcode: string, section: string): FamilyFacts {
  return { unit: 'alu', evidence: 'isa', source: `PTX ISA, ${section} Instructions: ${opcode}` };
}

const floatSection = 'Floating Point';
const halfSection = 'Half Precision Floating Point';

/** The rule for choosing an operand. */
interface Rule {
  readonly isMaximum: boolean;
  /** Whether a NaN wins; otherwise it loses. */
  readonly keepsNan: boolean;
  readonly isFlushing: boolean;
  /** Whether magnitudes are compared; with `takesSign` the result has the product of the signs. */
  readonly ofMagnitudes: boolean;
  readonly takesSign: boolean;
}

function choose(a: number, b: number, { isMaximum, keepsNan }: Rule): number {
  const chosen = isMaximum ? Math.max(a, b) : Math.min(a, b);
  if (chosen === chosen || keepsNan) return chosen;
  return a === a ? a : b;
}

/**
 * The extremum of numbers of a type, with −0 less than +0. The signs of the operands are given, since NaN has one too.
 */
function extremum(
  type: FloatType,
  values: readonly number[],
  areNegative: readonly boolean[],
  rule: Rule,
): number {
  const operands = values.map((value) => {
    const kept = rule.isFlushing ? flushed(type, value) : value;
    return rule.ofMagnitudes ? Math.abs(kept) : kept;
  });
  const result = operands.reduce((chosen, value) => choose(chosen, value, rule));
  const isNegative = areNegative.reduce((all, negative) => all !== negative, false);
  return rule.takesSign && isNegative ? -result : result;
}

/** The modifiers that an extremum of a type may have, with their rules. */
function rules(
  hasFlushing: boolean,
  others: readonly string[],
): (readonly [string, Omit<Rule, 'isMaximum'>])[] {
  return (hasFlushing ? ['', '.ftz'] : ['']).flatMap((ftz) =>
    ['', '.NaN'].flatMap((nan) =>
      others.map((magnitude) => {
        const rule = {
          keepsNan: nan !== '',
          isFlushing: ftz !== '',
          ofMagnitudes: magnitude !== '',
          takesSign: magnitude === '.xorsign.abs',
        };
        return [ftz + nan + magnitude, rule] as const;
      }),
    ),
  );
}

const opcodes: Readonly<Record<string, boolean>> = { min: false, max: true };

const float32 = Object.entries(opcodes).flatMap(([opcode, isMaximum]) => {
  const form = (operands: 2 | 3, others: readonly string[]): LaneInstruction[] =>
    rules(true, others).map(([modifiers, rule]) =>
      wordRow(
        `${opcode}${modifiers}.f32`,
        32,
        Array.from({ length: operands }, () => 32 as const),
        (...words) =>
          bitsOfFloat32(
            extremum(
              f32,
              words.map(float32Of),
              words.map((word) => word >= 2 ** 31),
              { isMaximum, ...rule },
            ),
          ),
        facts(opcode, floatSection),
      ),
    );
  return [...form(2, ['.xorsign.abs']), ...form(3, ['.abs'])];
});

function halfRows(type: FloatType, hasFlushing: boolean): LaneInstruction[] {
  return Object.entries(opcodes).flatMap(([opcode, isMaximum]) =>
    rules(hasFlushing, ['', '.xorsign.abs']).flatMap(([modifiers, rule]) => {
      const single = (...halves: number[]): number =>
        Number(
          type.bitsOf(
            extremum(
              type,
              halves.map(type.numberOf),
              halves.map((half) => half >= 2 ** 15),
              { isMaximum, ...rule },
            ),
          ),
        );
      const name = `${opcode}${modifiers}.${type.name}`;
      const packed: FamilyFacts = { ...facts(opcode, halfSection), laneOperations: 2 };
      return [
        wordRow(name, 16, [16, 16], single, facts(opcode, halfSection)),
        wordRow(`${name}x2`, 32, [32, 32], ofHalves(single), packed),
      ];
    }),
  );
}

/** `min` and `max` of fp32 by magnitude, and of half precision. Others of fp32 are in the machine's rows. */
export const extrema: readonly LaneInstruction[] = [
  ...float32,
  ...halfRows(f16, true),
  ...halfRows(bf16, false),
];
