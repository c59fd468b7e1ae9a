// AssemblyScript: errors of weights, times their projections on up to four directions, summed over the weights that round alike.

import { addTo, blockBytes, pair } from './sums';

/** Bytes of a group: the sums over four directions, then the sums of squares. */
const groupBytes: usize = 64;

/** The group of a number: its fp32 word shifted, less the lowest, brought into range. */
// @inline
export function groupOf(x: f64, shift: i32, lowest: i32, size: i32): i32 {
  const group = <i32>(reinterpret<u32>(<f32>x) >> shift) - lowest;
  return min<i32>(max<i32>(group, 0), size - 1);
}

/** Groups of weights that round alike, and what is collected of them. */
@unmanaged
export class ErrorGroups {
  /**
   * Blocks of [64 × 64] numbers, one behind the other: weights w, factors p of the values, and projections X on each of the
   * directions, an even number of them.
   */
  weights: usize;
  directions: i32;
  // By row.
  toLargest: usize;
  amplitude: usize;
  // The groups of numbers: see `groupOf`.
  shift: i32;
  lowest: i32;
  size: i32;
  /** i32: by group its place + 1, 0 for one that is new; and by place its group. */
  slots: usize;
  groups: usize;
  /** What is collected by place. */
  sums: usize;
  /** Σ |amplitude·p·X| by direction. */
  absolute: usize;
}

/** Adds x and its square to sums of a group; returns |x|. */
// @inline
function addPair(ofGroup: usize, x: v128): v128 {
  addTo(ofGroup, x);
  addTo(ofGroup + 32, f64x2.mul(x, x));
  return v128.and(x, i64x2.splat(0x7fffffffffffffff));
}

/**
 * Adds the errors amplitude[i]·p·X of a tile's weights w to the sums of their groups, which are those of w·toLargest[i].
 * Returns how many groups there are then: `count` of them are known.
 */
export function addErrors(pool: ErrorGroups, rows: i32, keys: i32, count: i32): i32 {
  const weights = pool.weights;
  const toLargest = pool.toLargest;
  const amplitude = pool.amplitude;
  const shift = pool.shift;
  const lowest = pool.lowest;
  const size = pool.size;
  const slots = pool.slots;
  const groups = pool.groups;
  const sums = pool.sums;
  const absolute = pool.absolute;
  const isWide = pool.directions > 2;
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
      let x = f64x2.mul(pair(at + 2 * blockBytes, at + 3 * blockBytes), amount);
      absolute0 = f64x2.add(absolute0, addPair(ofGroup, x));
      if (!isWide) continue;
      x = f64x2.mul(pair(at + 4 * blockBytes, at + 5 * blockBytes), amount);
      absolute1 = f64x2.add(absolute1, addPair(ofGroup + 16, x));
    }
  }
  v128.store(absolute, absolute0);
  v128.store(absolute, absolute1, 16);
  return count;
}
