import { float32Of } from '../../../arith/index.js';
import { evaluatingLoop, flushedFloat32 } from '../../../isa/index.js';
import type { WordInstruction } from './instruction.js';

/** Without and with `.ftz`. */
const flushings: Readonly<Record<string, boolean>> = { '': false, '.ftz': true };

type Comparison = (a: number, b: number) => boolean;

const isUnordered: Comparison = (a, b) => a !== a || b !== b;

const equality: Readonly<Record<string, Comparison>> = {
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
};

const order: Readonly<Record<string, Comparison>> = {
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
};

/** PTX's other names for the order of unsigned integers. */
const unsignedNames: Readonly<Record<string, Comparison>> = {
  lo: order.lt,
  ls: order.le,
  hi: order.gt,
  hs: order.ge,
};

/** False when an operand is NaN, `ne` too. */
const ordered: Readonly<Record<string, Comparison>> = {
  ...equality,
  ...order,
  ne: (a, b) => a < b || a > b,
  num: (a, b) => !isUnordered(a, b),
};

/** True when an operand is NaN. */
const unordered: Readonly<Record<string, Comparison>> = {
  ...Object.fromEntries(
    ['eq', 'ne', 'lt', 'le', 'gt', 'ge'].map((name): [string, Comparison] => [
      `${name}u`,
      (a, b) => isUnordered(a, b) || ordered[name](a, b),
    ]),
  ),
  nan: isUnordered,
};

/** Operations that combine the result with a third operand, a predicate. */
const combinations: Readonly<Record<string, (result: number, predicate: number) => number>> = {
  '.and': (result, predicate) => result & predicate,
  '.or': (result, predicate) => result | predicate,
  '.xor': (result, predicate) => result ^ predicate,
};

/** The operand types: the number that a register's bits represent, and the comparisons it allows. */
const types: readonly {
  readonly suffix: string;
  readonly valueOf: (bits: number) => number;
  readonly comparisons: Readonly<Record<string, Comparison>>;
}[] = [
  { suffix: '.b32', valueOf: (bits) => bits, comparisons: equality },
  { suffix: '.s32', valueOf: (bits) => bits | 0, comparisons: { ...equality, ...order } },
  {
    suffix: '.u32',
    valueOf: (bits) => bits >>> 0,
    comparisons: { ...equality, ...order, ...unsignedNames },
  },
  ...Object.entries(flushings).map(([ftz, flushToZero]) => ({
    suffix: `${ftz}.f32`,
    valueOf: flushToZero ? (bits: number) => flushedFloat32(float32Of(bits)) : float32Of,
    comparisons: { ...ordered, ...unordered },
  })),
];

function comparison(
  name: string,
  operands: 2 | 3,
  evaluate: WordInstruction['evaluate'],
): WordInstruction {
  return {
    name,
    unit: 'alu',
    operands,
    laneOperations: 1,
    width: 1,
    evaluate,
    loop: evaluatingLoop(evaluate),
  };
}

/**
 * `setp`: 1 when the comparison holds and 0 when it does not, combined with a third operand, a
 * predicate of 0 or 1, where the mnemonic has `.and`, `.or` or `.xor`. Comparisons of fp32 numbers
 * are false when an operand is NaN, `ne` as well; those that end in `u` are true then, and `num` and
 * `nan` test for this alone. −0 equals +0, and `.ftz` takes subnormals as zeros. Source: PTX ISA,
 * "Comparisons" and instruction `setp`.
 */
export const comparisonInstructions: readonly WordInstruction[] = types.flatMap(
  ({ suffix, valueOf, comparisons }) =>
    Object.entries(comparisons).flatMap(([opcode, holds]) => {
      const compare = (a: number, b: number): number => (holds(valueOf(a), valueOf(b)) ? 1 : 0);
      return [
        comparison(`setp.${opcode}${suffix}`, 2, compare),
        ...Object.entries(combinations).map(([modifier, combine]) =>
          comparison(`setp.${opcode}${modifier}${suffix}`, 3, (a, b, predicate) =>
            combine(compare(a, b), predicate),
          ),
        ),
      ];
    }),
);
