// AssemblyScript: errors of weights, times their projections on up to four directions, summed over the weights that round alike.

/** Bytes from a block of [64 × 64] numbers to the next. */
const blockBytes: usize = 32768;

/** Bytes of a group: the sums over four directions, then the sums of squares. */
const groupBytes: usize = 64;

/** The group of a number: its fp32 word shifted, less the lowest, brought into range. */
// @inline
export function groupOf(x: f64, shift: i32, lowest: i32, size: i32): i32 {
  const group = <i32>(reinterpret<u32>(<f32>x) >> shift) - lowest;
  return min<i32>(max<i32>(group, 0), size - 1);
}

/**
 * Adds the errors amplitude[i]·p·X of a tile's weights w to the sums of their groups, which are those of w·toLargest[i]. The blocks of
 * [64 × 64] numbers lie one behind the other: w, p, and X for each of the directions, an even number of them. Returns how many groups there are then:
 * `count` of them are known. `slots` has the place of each group + 1, 0 for one that is new; `groups` the group of each place;
 * `sums` what is collected by place; `absolute` Σ |amplitude·p·X| by direction.
 */
export function addErrors(
  weights: usize,
  rows: i32,
  keys: i32,
  directions: i32,
  toLargest: usize,
  amplitude: usize,
  shift: i32,
  lowest: i32,
  size: i32,
  count: i32,
  slots: usize,
  groups: usize,
  sums: usize,
  absolute: usize,
): i32 {
  const magnitude = i64x2.splat(0x7fffffffffffffff);
  const isWide = directions > 2;
  let absolute0 = v128.load(absolute);
  let absolute1 = v128.load(absolute, 16);
  for (let i = 0; i < rows; i++) {
    const factor = load<f64>(toLargest + ((<usize>i) << 3));
    const error = load<f64>(amplitude + ((<usize>i) << 3));
    let at = weights + ((<usize>i) << 9);
    for (let j = 0; j < keys; j++, at += 8) {
      const w = load<f64>(at);
      if (w === 0) continue;
      const group = groupOf(w * factor, shift, lowest, size);
      let place = load<i32>(slots + ((<usize>group) << 2)) - 1;
      if (place < 0) {
        place = count++;
        store<i32>(slots + ((<usize>group) << 2), count);
        store<i32>(groups + ((<usize>place) << 2), group);
      }
      const ofGroup = sums + <usize>place * groupBytes;
      const amount = f64x2.splat(error * load<f64>(at + blockBytes));
      let x = f64x2.replace_lane(
        v128.load64_splat(at + 2 * blockBytes),
        1,
        load<f64>(at + 3 * blockBytes),
      );
      x = f64x2.mul(x, amount);
      v128.store(ofGroup, f64x2.add(v128.load(ofGroup), x));
      v128.store(ofGroup, f64x2.add(v128.load(ofGroup, 32), f64x2.mul(x, x)), 32);
      absolute0 = f64x2.add(absolute0, v128.and(x, magnitude));
      if (!isWide) continue;
      x = f64x2.replace_lane(
        v128.load64_splat(at + 4 * blockBytes),
        1,
        load<f64>(at + 5 * blockBytes),
      );
      x = f64x2.mul(x, amount);
      v128.store(ofGroup, f64x2.add(v128.load(ofGroup, 16), x), 16);
      v128.store(ofGroup, f64x2.add(v128.load(ofGroup, 48), f64x2.mul(x, x)), 48);
      absolute1 = f64x2.add(absolute1, v128.and(x, magnitude));
    }
  }
  v128.store(absolute, absolute0);
  v128.store(absolute, absolute1, 16);
  return count;
}
