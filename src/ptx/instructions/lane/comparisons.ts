import {
  type FloatType,
  floatTypes,
  flushed,
  integerOf,
  type IntegerType,
  integerTypes,
  type LaneInstruction,
  type LaneValue,
  type RegisterWidth,
} from '../../../isa/index.js';
import {
  bitComparisons,
  combinations,
  type Comparison,
  floatComparisons,
  signedComparisons,
  unsignedComparisons,
} from './comparison-operators.js';
import { type FamilyFacts, row, type RowFunction } from './row.js';

const facts = (instruction: string): FamilyFacts => ({
  meaning: 'decides',
  unit: 'alu',
  evidence: 'isa',
  source: `PTX ISA, Comparison and Selection Instructions: ${instruction}`,
});

/** A type whose values are compared; two where it is packed. */
interface ComparedType {
  /** The suffix of the type in names, with `.ftz` before it where subnormals count as zeros. */
  readonly suffix: string;
  readonly width: RegisterWidth;
  readonly comparisons: Readonly<Record<string, Comparison>>;
  readonly valueOf: (bits: LaneValue) => number | bigint;
}

function integers(
  types: readonly IntegerType[],
  comparisons: ComparedType['comparisons'],
): ComparedType[] {
  return types.map((type) => ({
    suffix: `.${type.name}`,
    width: type.bits as 16 | 32 | 64,
    comparisons,
    valueOf: (bits) => integerOf(type, bits),
  }));
}

function floats(type: FloatType): ComparedType[] {
  const plain: ComparedType = {
    suffix: `.${type.name}`,
    width: type.width,
    comparisons: floatComparisons,
    valueOf: type.numberOf,
  };
  if (type.name === 'f64') return [plain];
  const flushing: ComparedType = {
    suffix: `.ftz.${type.name}`,
    width: type.width,
    comparisons: floatComparisons,
    valueOf: (bits) => flushed(type, type.numberOf(bits)),
  };
  return type.name === 'bf16' ? [plain] : [plain, flushing];
}

const { b16, b32, b64, u16, u32, u64, s16, s32, s64 } = integerTypes;

/** The types of single values, of 16, 32 and 64 bits. */
const comparedTypes: readonly ComparedType[] = [
  ...integers([b16, b32, b64], bitComparisons),
  ...integers([u16, u32, u64], unsignedComparisons),
  ...integers([s16, s32, s64], signedComparisons),
  ...Object.values(floatTypes).flatMap(floats),
];

/** The comparison of each opcode and combination, for single values: 0 or 1. */
function eachComparison<Result>(
  type: ComparedType,
  make: (
    modifiers: string,
    hasPredicate: boolean,
    compare: (a: LaneValue, b: LaneValue) => number,
    combine: (result: number, predicate: number) => number,
  ) => Result[],
): Result[] {
  return Object.entries(type.comparisons).flatMap(([name, holds]) =>
    Object.entries(combinations).flatMap(([modifier, combine]) =>
      make(
        `.${name}${modifier}`,
        modifier !== '',
        (a, b) => (holds(type.valueOf(a), type.valueOf(b)) ? 1 : 0),
        combine,
      ),
    ),
  );
}

function isHalf({ suffix }: ComparedType): boolean {
  return suffix.endsWith('f16');
}

function setpRows(type: ComparedType): LaneInstruction[] {
  const { suffix, width } = type;
  return eachComparison(type, (modifiers, hasPredicate, compare, combine) => {
    const name = `setp${modifiers}${suffix}`;
    const sources: RegisterWidth[] = hasPredicate ? [width, width, 'pred'] : [width, width];
    const one: RowFunction['evaluate'] = (a, b, c) => combine(compare(a, b), Number(c ?? 0));
    const two: RowFunction['evaluate'] = (a, b, c) => {
      const result = compare(a, b);
      const predicate = Number(c ?? 0);
      return [combine(result, predicate), combine(result ^ 1, predicate)];
    };
    const single = row(name, { destinations: ['pred'], sources, evaluate: one }, facts('setp'));
    // In half precision only pairs have two results.
    if (isHalf(type)) return [single];
    return [
      single,
      row(name, { destinations: ['pred', 'pred'], sources, evaluate: two }, facts('setp')),
    ];
  });
}

/** The types of half precision in pairs, whose two results are for the low and the high half. */
const packedTypes: readonly ComparedType[] = [floatTypes.f16, floatTypes.bf16].flatMap((type) =>
  floats(type).map((single) => ({
    suffix: `${single.suffix}x2`,
    width: 32,
    comparisons: single.comparisons,
    valueOf: single.valueOf,
  })),
);

function halvesOf(value: LaneValue): readonly [number, number] {
  return [Number(value) & 0xffff, Number(value) >>> 16];
}

function packedSetpRows(type: ComparedType): LaneInstruction[] {
  return eachComparison(type, (modifiers, hasPredicate, compare, combine) => {
    const evaluate: RowFunction['evaluate'] = (a, b, c) => {
      const [x, y] = [halvesOf(a), halvesOf(b)];
      return [0, 1].map((half) => combine(compare(x[half], y[half]), Number(c ?? 0)));
    };
    const sources: RegisterWidth[] = hasPredicate ? [32, 32, 'pred'] : [32, 32];
    const operation: RowFunction = { destinations: ['pred', 'pred'], sources, evaluate };
    return [row(`setp${modifiers}${type.suffix}`, operation, facts('setp'))];
  });
}

/** The value that `set` writes for a comparison that holds, by the type of the result; otherwise it writes 0. */
const setResults: Readonly<Record<string, readonly [RegisterWidth, number]>> = {
  u32: [32, 0xffffffff],
  s32: [32, 0xffffffff],
  u16: [16, 0xffff],
  s16: [16, 0xffff],
  f32: [32, 0x3f800000],
  f16: [16, 0x3c00],
  bf16: [16, 0x3f80],
};

/** The results that comparisons of a type may have. Source: PTX ISA, `set`, and the forms that ptxas accepts. */
function setResultsOf(type: ComparedType): string[] {
  if (type.suffix === '.bf16') return ['u32', 's32', 'u16', 's16', 'bf16'];
  const results = isHalf(type) ? ['u32', 's32', 'u16', 's16', 'f16'] : ['u32', 's32', 'f32', 'f16'];
  return type.suffix.startsWith('.ftz') ? results : [...results, 'bf16'];
}

/** The modifiers of `set` have the type of the result before that of the sources: `set.eq.ftz.u32.f32`. */
function setName(modifiers: string, result: string, suffix: string): string {
  return suffix.startsWith('.ftz')
    ? `set${modifiers}.ftz.${result}${suffix.slice('.ftz'.length)}`
    : `set${modifiers}.${result}${suffix}`;
}

function setRows(type: ComparedType): LaneInstruction[] {
  const { suffix, width } = type;
  return setResultsOf(type).flatMap((result) =>
    eachComparison(type, (modifiers, hasPredicate, compare, combine) => {
      const [destination, truth] = setResults[result];
      const evaluate: RowFunction['evaluate'] = (a, b, c) =>
        combine(compare(a, b), Number(c ?? 0)) === 1 ? truth : 0;
      const sources: RegisterWidth[] = hasPredicate ? [width, width, 'pred'] : [width, width];
      const operation: RowFunction = { destinations: [destination], sources, evaluate };
      return [row(setName(modifiers, result, suffix), operation, facts('set'))];
    }),
  );
}

function packedSetRows(type: ComparedType): LaneInstruction[] {
  const element = type.suffix.includes('bf16') ? 'bf16' : 'f16';
  const truth = setResults[element][1];
  return eachComparison(type, (modifiers, hasPredicate, compare, combine) => {
    const evaluate: RowFunction['evaluate'] = (a, b, c) => {
      const [x, y] = [halvesOf(a), halvesOf(b)];
      const [low, high] = [0, 1].map((half) =>
        combine(compare(x[half], y[half]), Number(c ?? 0)) === 1 ? truth : 0,
      );
      return ((high << 16) | low) >>> 0;
    };
    const sources: RegisterWidth[] = hasPredicate ? [32, 32, 'pred'] : [32, 32];
    const operation: RowFunction = { destinations: [32], sources, evaluate };
    return [row(setName(modifiers, `${element}x2`, type.suffix), operation, facts('set'))];
  });
}

/**
 * `setp` and `set` of all types. With `p|q` q is the negated comparison, combined with the predicate; for
 * packed types p is for the low halves and q for the high ones.
 */
export function comparisons(): LaneInstruction[] {
  return [
    ...comparedTypes.flatMap((type) => [...setpRows(type), ...setRows(type)]),
    ...packedTypes.flatMap((type) => [...packedSetpRows(type), ...packedSetRows(type)]),
  ];
}
