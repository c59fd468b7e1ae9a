import {
  addFloat32,
  bitsOfFloat32,
  type Float32Options,
  float32Of,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../../arith/index.js';
import { formats, type RoundingMode } from '../../../formats/index.js';
import {
  addLoop,
  addToNearestLoop,
  extremum,
  extremumLoop,
  extremumOfThreeLoop,
  type ExtremumRule,
  flushed,
  fusedMultiplyAddToNearestLoop,
  multiplyToNearestLoop,
  subtractToNearestLoop,
} from './float32-loops.js';
import {
  evaluatingLoop,
  type PairInstruction,
  type RunLoop,
  type WordInstruction,
} from './instruction.js';
import {
  createSpecialFunctionArrays,
  type Float32SpecialFunctionName,
  type SpecialFunctionName,
  specialFunctions,
} from '../../../hardware/index.js';
import { lazily } from '../../../lazily.js';
import { arrayLoop } from './array-loops.js';

interface Operation {
  readonly opcode: string;
  readonly operands: 2 | 3;
  /** Whether PTX accepts it without a rounding modifier, as `.rn`. */
  readonly hasDefaultRounding: boolean;
  readonly compute: (a: number, b: number, c: number, options?: Float32Options) => number;
  /** The loop to nearest even with subnormals kept. */
  readonly toNearestLoop: RunLoop;
  /** The loop in the other modes, if there is one. */
  readonly loop?: (options: Float32Options) => RunLoop;
}

const operations: readonly Operation[] = [
  {
    opcode: 'add',
    operands: 2,
    hasDefaultRounding: true,
    compute: (a, b, _c, options) => addFloat32(a, b, options),
    toNearestLoop: addToNearestLoop,
    loop: addLoop,
  },
  {
    opcode: 'sub',
    operands: 2,
    hasDefaultRounding: true,
    compute: (a, b, _c, options) => subtractFloat32(a, b, options),
    toNearestLoop: subtractToNearestLoop,
  },
  {
    opcode: 'mul',
    operands: 2,
    hasDefaultRounding: true,
    compute: (a, b, _c, options) => multiplyFloat32(a, b, options),
    toNearestLoop: multiplyToNearestLoop,
  },
  {
    opcode: 'fma',
    operands: 3,
    hasDefaultRounding: false,
    compute: fusedMultiplyAddFloat32,
    toNearestLoop: fusedMultiplyAddToNearestLoop,
  },
];

/** PTX's rounding modifiers; a mnemonic without one rounds to nearest even. */
const roundings: Readonly<Record<string, RoundingMode>> = {
  '': 'nearest-even',
  '.rn': 'nearest-even',
  '.rz': 'toward-zero',
  '.rm': 'down',
  '.rp': 'up',
};

/** Without and with `.ftz`. */
export const flushings: Readonly<Record<string, boolean>> = { '': false, '.ftz': true };

/** The default of src/arith is rn without ftz and its fastest path. */
function optionsOf(rounding: RoundingMode, flushToZero: boolean): Float32Options | undefined {
  return rounding === 'nearest-even' && !flushToZero ? undefined : { rounding, flushToZero };
}

function roundedInstruction(
  { opcode, operands, compute, toNearestLoop, loop }: Operation,
  modifiers: string,
  options: Float32Options | undefined,
): WordInstruction {
  const evaluate = (a: number, b: number, c: number): number =>
    bitsOfFloat32(compute(float32Of(a), float32Of(b), float32Of(c), options));
  const roundedLoop = (rounding: Float32Options): RunLoop =>
    loop?.(rounding) ?? evaluatingLoop(evaluate);
  return {
    name: `${opcode}${modifiers}.f32`,
    unit: 'fma',
    operands,
    laneOperations: 1,
    width: 1,
    evaluate,
    loop: options === undefined ? toNearestLoop : roundedLoop(options),
  };
}

/**
 * `add`, `sub`, `mul` and `fma` of fp32 in the four rounding modes, with and without `.ftz`, rounded
 * once from the exact result as in src/arith, which equals an H200 bit for bit. Every NaN result is
 * 0x7fffffff. Without a mode they round as `.rn` does; ptxas may fuse such a product and such a sum
 * into an `fma`, which here are two instructions with two roundings.
 */
export const roundedInstructions: readonly WordInstruction[] = operations.flatMap((operation) =>
  Object.entries(roundings).flatMap(([mode, rounding]) =>
    mode === '' && !operation.hasDefaultRounding
      ? []
      : Object.entries(flushings).map(([ftz, flushToZero]) =>
          roundedInstruction(operation, mode + ftz, optionsOf(rounding, flushToZero)),
        ),
  ),
);

/** A pair of independent instructions on the words of register pairs. */
export function packed(element: WordInstruction, name: string): PairInstruction {
  const { unit, operands } = element;
  return { name, unit, operands, laneOperations: 2, width: 2, element };
}

/**
 * The same packed in pairs, `add.rn.f32x2` and so on, from sm_100 on: the low word of a 64-bit
 * register is one fp32 number and the high word another, and they are independent. Source: PTX ISA,
 * `add`, `sub`, `mul` and `fma`; an H200 has none of them to compare with.
 */
export const packedInstructions: readonly PairInstruction[] = roundedInstructions.map((element) =>
  packed(element, `${element.name}x2`),
);

const extrema: Readonly<Record<string, boolean>> = { min: false, max: true };
const nanModifiers: Readonly<Record<string, boolean>> = { '': false, '.NaN': true };

function extremumInstructions(name: string, rule: ExtremumRule): WordInstruction[] {
  const facts = { name, unit: 'alu', laneOperations: 1, width: 1 } as const;
  return [
    {
      ...facts,
      operands: 2,
      loop: extremumLoop(rule),
      evaluate: (a, b) => bitsOfFloat32(extremum(float32Of(a), float32Of(b), rule)),
    },
    {
      ...facts,
      operands: 3,
      loop: extremumOfThreeLoop(rule),
      evaluate: (a, b, c) =>
        bitsOfFloat32(extremum(extremum(float32Of(a), float32Of(b), rule), float32Of(c), rule)),
    },
  ];
}

/**
 * `min` and `max` of two fp32 numbers or, from sm_100 on, three: a NaN loses against a number and
 * wins with `.NaN`; −0 is less than +0. Subnormals are kept but for `.ftz`. NaN results are
 * 0x7fffffff. Those of two equal an H200's bit for bit; those of three, which it lacks, are taken to
 * be two in a row, whose order makes no difference.
 */
export const float32ExtremumInstructions: readonly WordInstruction[] = Object.entries(
  extrema,
).flatMap(([opcode, isMaximum]) =>
  Object.entries(flushings).flatMap(([ftz, flushToZero]) =>
    Object.entries(nanModifiers).flatMap(([nan, keepsNan]) =>
      extremumInstructions(`${opcode}${ftz}${nan}.f32`, { isMaximum, keepsNan, flushToZero }),
    ),
  ),
);

const signOperations: Readonly<Record<string, (value: number) => number>> = {
  neg: (value) => -value,
  abs: Math.abs,
};

/**
 * `neg` and `abs` of fp32: exact, and additions in hardware: a NaN gives 0x7fffffff, and `.ftz`
 * flushes subnormals, as on an H200.
 */
export const float32SignInstructions: readonly WordInstruction[] = Object.entries(
  signOperations,
).flatMap(([opcode, compute]) =>
  Object.entries(flushings).map(([ftz, flushToZero]): WordInstruction => {
    const evaluate = (a: number): number => {
      const value = float32Of(a);
      return bitsOfFloat32(compute(flushToZero ? flushed(value) : value));
    };
    const loop = evaluatingLoop(evaluate);
    const name = `${opcode}${ftz}.f32`;
    return { name, unit: 'fma', operands: 1, laneOperations: 1, width: 1, evaluate, loop };
  }),
);

const arrays = lazily(() => createSpecialFunctionArrays());
const names = Object.keys(specialFunctions) as SpecialFunctionName[];
const isFloat32 = (name: SpecialFunctionName): name is Float32SpecialFunctionName =>
  specialFunctions[name].format === 'fp32';

function loopOf(name: SpecialFunctionName, inOrder: RunLoop): RunLoop {
  if (!isFloat32(name)) return inOrder;
  return arrayLoop(() => arrays()[name], formats.fp32.storageBits, inOrder);
}

/**
 * The instructions of the special function unit that src/hardware models, bit for bit those of an
 * H200. ptxas surrounds `ex2.approx.f32`, without ftz, with two more instructions for subnormal
 * results; here it is PTX's single instruction.
 */
export const specialFunctionInstructions: readonly WordInstruction[] = names.map((name) => {
  const { format, evaluate: ofPattern } = specialFunctions[name];
  const mask = 2 ** formats[format].storageBits - 1;
  const evaluate = (a: number): number => ofPattern((a & mask) >>> 0);
  return {
    name,
    unit: 'mufu',
    operands: 1,
    laneOperations: 1,
    width: 1,
    evaluate,
    loop: loopOf(name, evaluatingLoop(evaluate)),
  };
});
