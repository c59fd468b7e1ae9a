import {
  type Expression,
  f32x4,
  f64x2,
  type FunctionBody,
  i32x4,
  i64x2,
  lowWords,
  v128,
} from '../webassembly/index.js';
import type { SourceValue } from './emit.js';
import { flushed } from './float32.js';
import { type Pairwise, signed16, unsigned64 } from './integers.js';

/** The six comparisons that WebAssembly has. */
type Comparisons = Readonly<Record<'eq' | 'ne' | 'lt' | 'le' | 'gt' | 'ge', Pairwise>>;

/** PTX's other names for the order of unsigned integers. */
const unsignedNames: Readonly<Record<string, string>> = { lo: 'lt', ls: 'le', hi: 'gt', hs: 'ge' };

const { eq, ne } = i32x4;
const signedWords: Comparisons = {
  eq,
  ne,
  lt: i32x4.ltS,
  le: i32x4.leS,
  gt: i32x4.gtS,
  ge: i32x4.geS,
};
const unsignedWords: Comparisons = {
  eq,
  ne,
  lt: i32x4.ltU,
  le: i32x4.leU,
  gt: i32x4.gtU,
  ge: i32x4.geU,
};
const signedWide: Comparisons = {
  eq: i64x2.eq,
  ne: i64x2.ne,
  lt: i64x2.ltS,
  le: i64x2.leS,
  gt: i64x2.gtS,
  ge: i64x2.geS,
};

/** Comparisons of order with their operands changed; of equality as they are. */
function ordered(comparisons: Comparisons, change: (compare: Pairwise) => Pairwise): Comparisons {
  const { lt, le, gt, ge } = comparisons;
  return { ...comparisons, lt: change(lt), le: change(le), gt: change(gt), ge: change(ge) };
}

const integers: Readonly<Record<string, Comparisons>> = {
  b16: unsignedWords,
  u16: unsignedWords,
  s16: ordered(signedWords, (compare) => (a, b) => compare(signed16(a), signed16(b))),
  b32: unsignedWords,
  u32: unsignedWords,
  s32: signedWords,
  b64: signedWide,
  u64: ordered(signedWide, unsigned64),
  s64: signedWide,
};

/** The comparisons, which are false where an operand is NaN, `ne` included; those that end in `u` are true there. */
function ofNumbers({ lt, le, gt, ge, eq, ne }: Comparisons): Readonly<Record<string, Pairwise>> {
  const isUnordered: Pairwise = (a, b) => v128.or(ne(a, a), ne(b, b));
  return {
    lt,
    le,
    gt,
    ge,
    eq,
    ne: (a, b) => v128.or(lt(a, b), gt(a, b)),
    num: (a, b) => v128.and(eq(a, a), eq(b, b)),
    nan: isUnordered,
    ltu: (a, b) => v128.not(ge(a, b)),
    leu: (a, b) => v128.not(gt(a, b)),
    gtu: (a, b) => v128.not(le(a, b)),
    geu: (a, b) => v128.not(lt(a, b)),
    equ: (a, b) => v128.or(eq(a, b), isUnordered(a, b)),
    neu: ne,
  };
}

const numbers: Readonly<Record<string, Readonly<Record<string, Pairwise>>>> = {
  f32: ofNumbers(f32x4),
  f64: ofNumbers(f64x2),
};

/** The mask of the lanes in which a comparison holds. */
export type ComparisonCode = (body: FunctionBody, a: SourceValue, b: SourceValue) => Expression;

/**
 * The code of a comparison of PTX; null for the types of half precision.
 *
 * @param flushes whether subnormal fp32 numbers count as zeros
 */
export function comparisonCode(
  name: string,
  type: string,
  flushes: boolean,
): ComparisonCode | null {
  const ofType = numbers[type] ?? integers[type];
  if (ofType === undefined) return null;
  const compare = ofType[unsignedNames[name] ?? name];
  return (body, { vectors: a }, { vectors: b }) => {
    if (a.length === 2) return lowWords(compare(a[0], b[0]), compare(a[1], b[1]));
    const [x, y] = [a[0], b[0]];
    return flushes ? compare(body.keep(flushed(x)), body.keep(flushed(y))) : compare(x, y);
  };
}
