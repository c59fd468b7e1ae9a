// AssemblyScript: operands of matrix products, decoded once per tile. Every number becomes its value in
// fp32, which holds all formats of tensor cores exactly, and its exponent: that of the significand's
// leading place, ⌊log2|x|⌋ for normal numbers and the smallest normal exponent for subnormal ones. That
// is `decodeOperand` of src/hardware/tensor-core/operand.ts, as the products of tiles show.
//
// A format is 24 bytes, six i32: bytes of storage (1, 2 or 4), low bits without information, bits of
// the magnitude (exponent and fraction), bits of the fraction, exponent bias, and the smallest
// magnitude that is infinite or NaN (2^31 - 1 where there is none).
//
// Packed rows, [rows][inner]: fp32 values, then exponents as i32 whose halves are the exponent twice.
// Packed columns, [columns / 8][inner][8]: fp32 values, then exponents as i16. A panel of eight
// columns is contiguous, so the product reads memory in order.

/** The exponent of zero: so low that no product with it is the largest of a sum. */
export const zeroExponent: i32 = -8192;
/** The exponent of infinities and NaNs: so high that every product with them is out of range. */
export const specialExponent: i32 = 16000;

// @inline
function bitsAt(address: usize, bytes: i32): v128 {
  if (bytes === 2) return v128.load16x4_u(address);
  if (bytes === 4) return v128.load(address);
  return i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load32_zero(address)));
}

// @inline
function magnitudes(bits: v128, padding: i32, magnitudeBits: i32): v128 {
  return v128.and(i32x4.shr_u(bits, padding), i32x4.splat((1 << magnitudeBits) - 1));
}

// @inline
function values(
  bits: v128,
  magnitude: v128,
  padding: i32,
  magnitudeBits: i32,
  fractionBits: i32,
  bias: i32,
  firstSpecial: i32,
): v128 {
  const widened = i32x4.shl(magnitude, 23 - fractionBits);
  const rebias = (127 - bias) << 23;
  const normal = i32x4.add(widened, i32x4.splat(rebias));
  // A subnormal number with a hidden bit too many, which the subtraction takes away exactly.
  const smallestNormal = rebias + 0x00800000;
  const subnormal = f32x4.sub(
    i32x4.add(widened, i32x4.splat(smallestNormal)),
    i32x4.splat(smallestNormal),
  );
  let value = v128.bitselect(
    subnormal,
    normal,
    i32x4.lt_s(magnitude, i32x4.splat(1 << fractionBits)),
  );
  value = v128.bitselect(
    v128.or(widened, i32x4.splat(0x7f800000)),
    value,
    i32x4.ge_s(magnitude, i32x4.splat(firstSpecial)),
  );
  const sign = i32x4.shl(bits, 31 - padding - magnitudeBits);
  return v128.or(value, v128.and(sign, i32x4.splat(<i32>0x80000000)));
}

// @inline
function exponents(magnitude: v128, fractionBits: i32, bias: i32, firstSpecial: i32): v128 {
  let exponent = i32x4.sub(
    i32x4.max_s(i32x4.shr_u(magnitude, fractionBits), i32x4.splat(1)),
    i32x4.splat(bias),
  );
  exponent = v128.bitselect(
    i32x4.splat(specialExponent),
    exponent,
    i32x4.ge_s(magnitude, i32x4.splat(firstSpecial)),
  );
  return v128.bitselect(i32x4.splat(zeroExponent), exponent, i32x4.eq(magnitude, i32x4.splat(0)));
}

/**
 * Packs the left operand [rows][inner], inner contiguous and a multiple of 4; the target takes
 * 8 · rows · inner bytes.
 */
export function packRows(source: usize, target: usize, rows: i32, inner: i32, format: usize): void {
  const bytes = load<i32>(format);
  const padding = load<i32>(format, 4);
  const magnitudeBits = load<i32>(format, 8);
  const fractionBits = load<i32>(format, 12);
  const bias = load<i32>(format, 16);
  const firstSpecial = load<i32>(format, 20);
  const count: usize = <usize>(rows * inner);
  const exponentsAt = target + (count << 2);
  for (let i: usize = 0; i < count; i += 4) {
    const bits = bitsAt(source + i * bytes, bytes);
    const magnitude = magnitudes(bits, padding, magnitudeBits);
    v128.store(
      target + (i << 2),
      values(bits, magnitude, padding, magnitudeBits, fractionBits, bias, firstSpecial),
    );
    const exponent = exponents(magnitude, fractionBits, bias, firstSpecial);
    v128.store(
      exponentsAt + (i << 2),
      v128.or(i32x4.shl(exponent, 16), v128.and(exponent, i32x4.splat(0xffff))),
    );
  }
}

/**
 * Packs the right operand [inner][columns], columns contiguous and a multiple of 8; the target takes
 * 6 · inner · columns bytes.
 */
export function packColumns(
  source: usize,
  target: usize,
  inner: i32,
  columns: i32,
  format: usize,
): void {
  const bytes = load<i32>(format);
  const padding = load<i32>(format, 4);
  const magnitudeBits = load<i32>(format, 8);
  const fractionBits = load<i32>(format, 12);
  const bias = load<i32>(format, 16);
  const firstSpecial = load<i32>(format, 20);
  let valuesAt = target;
  let exponentsAt = target + ((<usize>(inner * columns)) << 2);
  for (let n = 0; n < columns; n += 8) {
    let from = source + <usize>(n * bytes);
    for (let k = 0; k < inner; k++) {
      const low = bitsAt(from, bytes);
      const high = bitsAt(from + <usize>(bytes << 2), bytes);
      const magnitudeLow = magnitudes(low, padding, magnitudeBits);
      const magnitudeHigh = magnitudes(high, padding, magnitudeBits);
      v128.store(
        valuesAt,
        values(low, magnitudeLow, padding, magnitudeBits, fractionBits, bias, firstSpecial),
      );
      v128.store(
        valuesAt,
        values(high, magnitudeHigh, padding, magnitudeBits, fractionBits, bias, firstSpecial),
        16,
      );
      v128.store(
        exponentsAt,
        i16x8.narrow_i32x4_s(
          exponents(magnitudeLow, fractionBits, bias, firstSpecial),
          exponents(magnitudeHigh, fractionBits, bias, firstSpecial),
        ),
      );
      from += <usize>(columns * bytes);
      valuesAt += 32;
      exponentsAt += 16;
    }
  }
}

/**
 * Packs the right operand given as [columns][inner], inner contiguous and a multiple of 4, columns a
 * multiple of 8; the target takes 6 · inner · columns bytes, as from `packColumns`.
 */
export function packTransposedColumns(
  source: usize,
  target: usize,
  inner: i32,
  columns: i32,
  format: usize,
): void {
  const bytes = load<i32>(format);
  const padding = load<i32>(format, 4);
  const magnitudeBits = load<i32>(format, 8);
  const fractionBits = load<i32>(format, 12);
  const bias = load<i32>(format, 16);
  const firstSpecial = load<i32>(format, 20);
  const stride = <usize>(inner * bytes);
  let valuesAt = target;
  let exponentsAt = target + ((<usize>(inner * columns)) << 2);
  for (let n = 0; n < columns; n += 8) {
    for (let k = 0; k < inner; k += 4) {
      let from = source + <usize>n * stride + <usize>(k * bytes);
      // Four columns at a time: low halves of the panel's rows, then high halves.
      for (let half: usize = 0; half < 2; half++) {
        const b0 = bitsAt(from, bytes);
        const b1 = bitsAt(from + stride, bytes);
        const b2 = bitsAt(from + 2 * stride, bytes);
        const b3 = bitsAt(from + 3 * stride, bytes);
        from += 4 * stride;
        const p0 = i8x16.shuffle(b0, b1, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
        const p1 = i8x16.shuffle(b2, b3, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
        const p2 = i8x16.shuffle(
          b0,
          b1,
          8,
          9,
          10,
          11,
          24,
          25,
          26,
          27,
          12,
          13,
          14,
          15,
          28,
          29,
          30,
          31,
        );
        const p3 = i8x16.shuffle(
          b2,
          b3,
          8,
          9,
          10,
          11,
          24,
          25,
          26,
          27,
          12,
          13,
          14,
          15,
          28,
          29,
          30,
          31,
        );
        for (let row: usize = 0; row < 4; row++) {
          const pair0 = row < 2 ? p0 : p2;
          const pair1 = row < 2 ? p1 : p3;
          const bits =
            row & 1
              ? i8x16.shuffle(
                  pair0,
                  pair1,
                  8,
                  9,
                  10,
                  11,
                  12,
                  13,
                  14,
                  15,
                  24,
                  25,
                  26,
                  27,
                  28,
                  29,
                  30,
                  31,
                )
              : i8x16.shuffle(pair0, pair1, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
          const magnitude = magnitudes(bits, padding, magnitudeBits);
          v128.store(
            valuesAt + (row << 5) + (half << 4),
            values(bits, magnitude, padding, magnitudeBits, fractionBits, bias, firstSpecial),
          );
          const exponent = exponents(magnitude, fractionBits, bias, firstSpecial);
          v128.store64_lane(
            exponentsAt + (row << 4) + (half << 3),
            i16x8.narrow_i32x4_s(exponent, exponent),
            0,
          );
        }
      }
      valuesAt += 128;
      exponentsAt += 64;
    }
  }
}
