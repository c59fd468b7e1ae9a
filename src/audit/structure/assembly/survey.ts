// AssemblyScript: what is known of rows from a walk over their weights. Definition in TypeScript:
// test/audit/definitions/surveyed-rows.test.ts.

import { groupOf } from './errors';

/** Sums of 64 rows: addresses of a number for each. */
@unmanaged
export class SurveyedRows {
  /** [64 × 64]. */
  weights: usize;
  /** The factor that makes a row's weights relative to the largest. */
  toLargest: usize;
  /** Σ w, Σ w², and the sum over groups of the squares of Σ w. */
  mass: usize;
  squares: usize;
  alike: usize;
  /** The largest weight, and (i32) its key. */
  most: usize;
  heaviest: usize;
  /** Σ w by a hash of the group, 2^tableBits for each row. */
  tables: usize;
  tableBits: i32;
  // The groups of weights that round alike: see `groupOf`.
  shift: i32;
  lowest: i32;
  size: i32;
}

/** Adds the weights of a tile, the first of whose keys is `firstKey`. */
export function surveyWeights(all: SurveyedRows, rows: i32, keys: i32, firstKey: i32): void {
  const shift = all.shift;
  const lowest = all.lowest;
  const size = all.size;
  const bits = 32 - all.tableBits;
  for (let i = 0; i < rows; i++) {
    const at = (<usize>i) << 3;
    const row = all.weights + ((<usize>i) << 9);
    const table = all.tables + ((<usize>i) << (all.tableBits + 3));
    const factor = load<f64>(all.toLargest + at);
    let mass = load<f64>(all.mass + at);
    let squares = load<f64>(all.squares + at);
    let alike = load<f64>(all.alike + at);
    let most = load<f64>(all.most + at);
    for (let j = 0; j < keys; j++) {
      const w = load<f64>(row + ((<usize>j) << 3));
      if (w === 0) continue;
      const group = groupOf(w * factor, shift, lowest, size);
      const slot = table + ((<usize>((<u32>(group * 0x9e3779b1)) >> bits)) << 3);
      const before = load<f64>(slot);
      // The change of the sum's square when w is added.
      alike += w * (2 * before + w);
      store<f64>(slot, before + w);
      squares += w * w;
      mass += w;
      if (w <= most) continue;
      most = w;
      store<i32>(all.heaviest + ((<usize>i) << 2), firstKey + j);
    }
    store<f64>(all.mass + at, mass);
    store<f64>(all.squares + at, squares);
    store<f64>(all.alike + at, alike);
    store<f64>(all.most + at, most);
  }
}
