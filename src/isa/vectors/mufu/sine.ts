import {
  type Expression,
  f64x2,
  type FunctionBody,
  i32x4,
  i64x2,
  lowWords,
  type Subroutine,
  v128,
} from '../../webassembly/index.js';
import { magnitude } from '../float32.js';
import { demoted, type Halves, promoted } from '../fused-multiply-add.js';
import { interpolated, segmentTables, truncated } from './interpolation.js';

/** 1/(2π) rounded to nearest fp32. */
const turnsPerRadian = 0.15915493667125702;
/** A turn in the unit's fixed point, and a quarter of it. */
const turn = 2 ** 25;
const quarter = 2 ** 23;
const gridBits = 37;

/** The 29 fraction bits that fp64 has beyond fp32. */
const beyondFloat32 = i64x2.splat(0x1fffffffn);

/** The angle of each lane as a fraction of a turn, truncated to 25 bits, from the magnitude of a number. */
function angleOf(body: FunctionBody, size: Expression): Expression {
  const { low, high } = promoted(size);
  const [first, second] = [low, high].map((value) => {
    // In turns, rounded toward zero to 24 bits; below fp32's normal numbers the angle is 0 in any case.
    const product = f64x2.mul(value, f64x2.splat(turnsPerRadian));
    const turns = body.keep(v128.andnot(product, beyondFloat32));
    const fraction = f64x2.sub(turns, f64x2.floor(turns));
    const angle = f64x2.floor(f64x2.mul(fraction, f64x2.splat(turn)));
    // From 2^52 on an fp64 number's low word counts ones.
    return f64x2.add(angle, f64x2.splat(2 ** 52));
  });
  return lowWords(first, second);
}

/**
 * A function as defined by `sinApprox` and `cosApprox` of src/hardware/mufu, which flush nothing that the result shows.
 */
function ofAngle(name: string, added: number, isOdd: boolean): Subroutine {
  return {
    name,
    parameters: 1,
    build: (body, bits) => {
      const size = body.keep(magnitude(bits));
      const angle = body.keep(
        v128.and(i32x4.add(angleOf(body, size), i32x4.splat(added)), i32x4.splat(turn - 1)),
      );
      // Odd quadrants are mirrored; those from the third on are negative.
      const isMirrored = i32x4.shrS(i32x4.shl(angle, 8), 31);
      const position = body.keep(v128.and(v128.xor(angle, isMirrored), i32x4.splat(quarter - 1)));
      const x = body.keep(v128.and(position, i32x4.splat(0x1ffff)));
      const [low, high] = interpolated(body, segmentTables.sine, {
        place: i32x4.shl(i32x4.shrU(position, 17), 4),
        x,
        squared: x,
      });
      const unit = f64x2.splat(2 ** -gridBits);
      const sums: Halves = {
        low: truncated(i64x2.shrU(low, 1), unit),
        high: truncated(i64x2.shrU(high, 1), unit),
      };
      const quadrantSign = i32x4.shl(angle, 7);
      const sign = isOdd ? v128.xor(quadrantSign, bits) : quadrantSign;
      const result = v128.or(demoted(sums), v128.and(sign, i32x4.splat(0x80000000)));
      return v128.bitselect(
        i32x4.splat(0x7fffffff),
        result,
        i32x4.geS(size, i32x4.splat(0x7f800000)),
      );
    },
  };
}

/** `sin.approx.f32`, which `.ftz` does not change. */
export const sine: Subroutine = ofAngle('sin.approx.f32', 0, true);

/** `cos.approx.f32`, which `.ftz` does not change. */
export const cosine: Subroutine = ofAngle('cos.approx.f32', quarter, false);
