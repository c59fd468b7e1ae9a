import type { LaneInstruction } from '../../../src/ptx/instructions/index.js';

/**
 * What ptxas (12.9 to 13.5, sm_90a) leaves open or gets wrong, as its SASS shows, so that an H200's bits are not those of the
 * PTX: random kernels avoid it.
 */
interface Choice {
  readonly names: RegExp;
  /** What is done instead of what is written. */
  readonly what: string;
  /** Whether it is so only under a guard, or where a branch becomes guards. */
  readonly isOfGuards?: boolean;
  /** Instructions before and after, on the registers of the instruction, by which it does not matter. */
  readonly before?: (sources: readonly string[]) => readonly string[];
  readonly after?: (destinations: readonly string[]) => readonly string[];
}

/** Makes every NaN the same one; %p2 is nobody else's. */
const sameNaN = (format: 'f16' | 'bf16' | 'f32' | 'f64', pattern: string) => (register: string) => [
  `setp.nan.${format} %p2, ${register}, ${register};`,
  `@%p2 mov.b${/\d+/.exec(format)![0]} ${register}, ${pattern};`,
];
const sameF64 = sameNaN('f64', '0x7ff8000000000000');
const ofRegisters = (make: (register: string) => readonly string[], prefix: string) => {
  return (registers: readonly string[]) =>
    [...new Set(registers)].filter((register) => register.startsWith(prefix)).flatMap(make);
};

function widthOf(register: string): number {
  return { '%h': 16, '%r': 32, '%d': 64 }[register.slice(0, 2)]!;
}

/** Shifts, and fields of bits: the last source is a distance or a length, that before it in a field its place. */
const distances = /^(sh[lr]|bfe)\.[bsu](16|32|64)$/;

const choices: readonly Choice[] = [
  {
    names: /^testp\./,
    what: 'the guard is dropped',
    isOfGuards: true,
  },
  {
    names: /^set\..*\.([fs]16|bf16|[ub]16|f16x2|bf16x2)$/,
    what: 'the old value of the destination is converted in lanes that the guard leaves out',
    isOfGuards: true,
  },
  {
    names: /^cvt\..*\.[su](8|16)\./,
    what: 'the upper half of a wider destination keeps its old value in lanes that the guard lets in',
    isOfGuards: true,
  },
  {
    names: /^(and|or|xor|not|mov)\.pred$/,
    what: 'the guard and the operation become one, and a lane that the guard leaves out may change',
    isOfGuards: true,
  },
  {
    names: /\.f64(\.|$)/,
    what: 'which of two NaNs comes out, and with which sign, depends on the order of operands and on folded signs',
    before: ofRegisters(sameF64, '%d'),
    after: ofRegisters(sameF64, '%d'),
  },
  {
    names: /^(neg|abs)(\.ftz)?\.f32$/,
    what: 'the sign bit is set, or a sum made that forgets the NaN',
    before: ofRegisters(sameNaN('f32', '0x7fffffff'), '%r'),
    after: ofRegisters(sameNaN('f32', '0x7fffffff'), '%r'),
  },
  {
    names: /^(neg|abs)(\.ftz)?\.f16$/,
    what: 'as of f32',
    before: ofRegisters(sameNaN('f16', '0x7fff'), '%h'),
    after: ofRegisters(sameNaN('f16', '0x7fff'), '%h'),
  },
  {
    names: /^(neg|abs)(\.ftz)?\.bf16$/,
    what: 'as of f32',
    before: ofRegisters(sameNaN('bf16', '0x7fff'), '%h'),
    after: ofRegisters(sameNaN('bf16', '0x7fff'), '%h'),
  },
  {
    names: /^(abs|neg)\.s(16|32|64)$/,
    what: 'the least number is taken to have an opposite: the result of abs to be no less than 0',
    before: ([source]) => {
      const bits = widthOf(source);
      return [`max.s${bits} ${source}, ${source}, ${1n - (1n << BigInt(bits - 1))};`];
    },
  },
  {
    names: /^(div|rem)\.[su](16|32|64)$/,
    what: 'a quotient by 0, or of the least number by -1, is what an algorithm gives that is chosen by what is known of the divisor',
    before: ([, divisor]) => {
      const bits = widthOf(divisor);
      return [
        `or.b${bits} ${divisor}, ${divisor}, 1;`,
        `and.b${bits} ${divisor}, ${divisor}, ${(1n << BigInt(bits - 1)) - 1n};`,
      ];
    },
  },
  {
    names: distances,
    what: 'a place or distance that a floating-point instruction has written is converted to an integer',
    before: (sources) => sources.slice(1).map((from, i) => `and.b32 %r${3 + i}, ${from}, 255;`),
  },
];

/** Instructions that random kernels leave out; the rows themselves have been compared one by one. */
const leftOut: readonly { readonly names: RegExp; readonly what: string }[] = [
  {
    names: /^(neg|abs)(\.ftz)?\.b?f16x2$/,
    what: 'as of f32, and no instruction makes the NaNs of packed halves the same',
  },
  {
    names: /^set\..*\.(f32|f16|bf16|f16x2|bf16x2)\.[a-z]+\d+(x2)?$/,
    what: 'the conversion of 1 to a floating-point number is lost where the kernel calls a subroutine, as of a division',
  },
  {
    names: /^(tanh|ex2)\.approx(\.ftz)?\.b?f16$/,
    what: 'the upper half of the register is not cleared, and is taken for a part of the number',
  },
  { names: /^rcp\.approx/, what: 'the reciprocal of a reciprocal, or of ex2, is simplified' },
  { names: /^slct\..*\.f32$/, what: 'the result of ex2 is taken to be no less than 0, and no NaN' },
  { names: /^cnot\./, what: 'its result is taken for an integer by floating-point instructions' },
  {
    names: /^mov\.[busf](16|32|64)$/,
    what: 'two registers with one value are one, so that min and max of both are not made',
  },
  {
    names: /^(mul24|mad24)\./,
    what: 'factors of more than 24 bits are multiplied otherwise near other uses of them',
  },
  {
    names: /^cvt\..*\.[su](8|16)\.(f16|bf16|f32|f64)$/,
    what: 'what does not fit into the narrow type is not always brought into it',
  },
  { names: /^fns\./, what: 'it is simplified where the offset is a result of set' },
];

/** Whether random kernels have an instruction at all. */
export function isDrawn({ name }: LaneInstruction): boolean {
  return !leftOut.some(({ names }) => names.test(name));
}

/** Whether an instruction may not stand under a guard or in a branch. */
export function isWrongUnderGuards({ name }: LaneInstruction): boolean {
  return choices.some(({ names, isOfGuards }) => isOfGuards === true && names.test(name));
}

/** What stands before and after an instruction, and its sources. */
export function withoutChoices(
  { name }: LaneInstruction,
  destinations: readonly string[],
  sources: readonly string[],
): {
  readonly before: readonly string[];
  readonly sources: readonly string[];
  readonly after: readonly string[];
} {
  const its = choices.filter(({ names }) => names.test(name));
  const hasDistances = distances.test(name);
  return {
    before: its.flatMap(({ before }) => before?.(sources) ?? []),
    sources: hasDistances ? sources.map((source, i) => (i === 0 ? source : `%r${2 + i}`)) : sources,
    after: its.flatMap(({ after }) => after?.(destinations) ?? []),
  };
}
