import type { SpecialFunctionTables } from '../../../hardware/index.js';
import {
  type Expression,
  f32x4,
  i32x4,
  joinHigh,
  joinLow,
  lowWords,
  type Subroutine,
  type Table,
  v128,
} from '../../webassembly/index.js';
import { magnitude } from '../float32.js';
import { gather, interpolated, truncated } from './interpolation.js';

/** The first binade of the table begins at 2^-8, the last ends at 8. */
const firstPattern = 0x3b800000;
const lastPattern = 0x41000000;
/** Number of leading fraction bits that choose a segment, in every binade. */
const indexBits = 4;
/** Number of entries, with places for lanes whose input is outside of the table: a power of two. */
const entries = 256;
const entryBytes = 32;

/**
 * Segments of all binades, each binade cut into the same number: 32 bytes each, those of `interpolated` first, then as
 * i32 the factor of the fraction before its leading 17 bits count, and, 8 bytes on, the unit of the sum as fp64.
 */
function packBinades(binades: SpecialFunctionTables['tanh']): DataView {
  const packed = new DataView(new ArrayBuffer(entries * entryBytes));
  binades.forEach((binade, i) => {
    const { c0Weight, c2Weight, bias, segments } = binade.interpolator;
    for (let part = 0; part < 2 ** indexBits; part++) {
      const at = ((i << indexBits) + part) * entryBytes;
      const [c0, c1, c2] = segments[part >> (indexBits - binade.indexBits)];
      packed.setBigInt64(at, BigInt(c0 * c0Weight + bias), true);
      packed.setInt32(at + 8, c1, true);
      packed.setInt32(at + 12, c2 * c2Weight, true);
      packed.setInt32(at + 16, 2 ** binade.indexBits, true);
      packed.setFloat64(at + 24, 2 ** binade.unitExponent, true);
    }
  });
  return packed;
}

/** `tanh.approx.f32` on four lanes. Defined by `tanhApprox` of src/hardware/mufu. */
export function hyperbolicTangent(binades: SpecialFunctionTables['tanh']): Subroutine {
  const table: Table = { name: 'tanh', pack: () => packBinades(binades) };
  return {
    name: 'tanh.approx.f32',
    parameters: 1,
    build: (body, bits) => {
      const size = body.keep(magnitude(bits));
      const index = i32x4.shrU(i32x4.sub(size, i32x4.splat(firstPattern)), 23 - indexBits);
      const place = body.keep(
        i32x4.shl(v128.and(index, i32x4.splat(entries - 1)), Math.log2(entryBytes)),
      );
      const [first, second, third, fourth] = gather(body, table, place, 16);
      const factor = lowWords(joinLow(first, second), joinLow(third, fourth));
      const fraction = v128.and(size, i32x4.splat(0x7fffff));
      const x = body.keep(
        v128.and(i32x4.shrU(i32x4.mul(fraction, factor), 6), i32x4.splat(0x1ffff)),
      );
      const [low, high] = interpolated(body, table, { place, x, squared: x });
      const rounded = (sum: Expression, unit: Expression): Expression =>
        f32x4.demoteF64x2Zero(truncated(sum, unit));
      const sum = joinLow(
        rounded(low, joinHigh(first, second)),
        rounded(high, joinHigh(third, fourth)),
      );
      const one = i32x4.splat(0x3f800000);
      const result = v128.bitselect(one, sum, i32x4.geS(size, i32x4.splat(lastPattern)));
      const signed = v128.or(result, v128.and(bits, i32x4.splat(0x80000000)));
      // Below the table the result is the input.
      const known = v128.bitselect(bits, signed, i32x4.ltS(size, i32x4.splat(firstPattern)));
      return v128.bitselect(
        i32x4.splat(0x7fffffff),
        known,
        i32x4.gtS(size, i32x4.splat(0x7f800000)),
      );
    },
  };
}
