import { packSegments, packSquares, specialFunctionTables } from '../../../hardware/index.js';
import {
  type Expression,
  f64x2,
  type FunctionBody,
  highWords,
  i32x4,
  i64x2,
  joinHigh,
  joinLow,
  lowWords,
  type Table,
  v128,
} from '../../webassembly/index.js';

// The special function unit's interpolation is described in src/hardware/mufu. A segment is 16 bytes: the constant term
// as i64, then c1 and c2 as i32. Four lanes fetch their segments, and then everything is done in four lanes.

const squares: Table = { name: 'squares', pack: packSquares };

/** Segments of the unit's functions with one table. */
export const segmentTables = {
  exp2: { name: 'exp2', pack: () => packSegments(specialFunctionTables.exp2) },
  log2: { name: 'log2', pack: () => packSegments(specialFunctionTables.log2) },
  reciprocal: { name: 'reciprocal', pack: () => packSegments(specialFunctionTables.reciprocal) },
  reciprocalSquareRoot: {
    name: 'reciprocal square root',
    pack: () => packSegments(specialFunctionTables.reciprocalSquareRoot),
  },
  squareRoot: { name: 'square root', pack: () => packSegments(specialFunctionTables.squareRoot) },
  sine: { name: 'sine', pack: () => packSegments(specialFunctionTables.sine) },
} as const satisfies Readonly<Record<string, Table>>;

const lanes = [0, 1, 2, 3] as const;

/** The 16 bytes at `offset` of an entry, for the entries of four lanes. */
export function gather(
  body: FunctionBody,
  table: Table,
  places: Expression,
  offset = 0,
): readonly Expression[] {
  const address = body.tableAddress(table) + offset;
  return lanes.map((lane) => body.keep(v128.load(i32x4.extractLane(places, lane), address)));
}

/** The unit's squares of 17-bit numbers, as words. */
function squaresOf(body: FunctionBody, x: Expression): Expression {
  const address = body.tableAddress(squares);
  const places = body.keep(i32x4.shl(x, 1));
  return lanes.reduce<Expression>(
    (vector, lane) => v128.load16Lane(i32x4.extractLane(places, lane), address, vector, 2 * lane),
    i32x4.splat(0),
  );
}

/** The position at which each lane interpolates. */
export interface Position {
  /** Byte of the segment in its table. */
  readonly place: Expression;
  /** Bits below the segment index, at most 17. */
  readonly x: Expression;
  /** The input of the squarer, 17 bits. */
  readonly squared: Expression;
}

/** The interpolated sums: two vectors of 64 bits. */
export function interpolated(
  body: FunctionBody,
  table: Table,
  { place, x, squared }: Position,
): readonly [Expression, Expression] {
  const [first, second, third, fourth] = gather(body, table, body.keep(place));
  const square = body.keep(squaresOf(body, squared));
  const linear = body.keep(x);
  const low = body.keep(joinHigh(first, second));
  const high = body.keep(joinHigh(third, fourth));
  const c1 = body.keep(lowWords(low, high));
  const c2 = body.keep(highWords(low, high));
  return [
    i64x2.add(
      i64x2.add(joinLow(first, second), i64x2.extmulLowI32x4S(c1, linear)),
      i64x2.extmulLowI32x4S(c2, square),
    ),
    i64x2.add(
      i64x2.add(joinLow(third, fourth), i64x2.extmulHighI32x4S(c1, linear)),
      i64x2.extmulHighI32x4S(c2, square),
    ),
  ];
}

/** Sums of at most 63 bits without their lowest bits: words. */
export function cut([low, high]: readonly [Expression, Expression], bits: number): Expression {
  return lowWords(i64x2.shrU(low, bits), i64x2.shrU(high, bits));
}

const two52 = f64x2.splat(2 ** 52);
/** Mask of all bits except the 29 fraction bits that fp64 has beyond fp32. */
const float32Bits = i64x2.splat(~0x1fffffffn & 0xffffffffffffffffn);

/** A 64-bit integer from 0 to 2^52 − 1 times `unit`, truncated to 24 bits: an fp64 number that is exact in fp32. */
export function truncated(integer: Expression, unit: Expression): Expression {
  // In fp64 from 2^52 on the fraction counts ones.
  const value = f64x2.sub(v128.or(integer, two52), two52);
  return f64x2.mul(v128.and(value, float32Bits), unit);
}
