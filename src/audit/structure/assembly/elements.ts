// AssemblyScript: the elements of up to 64 rows of an output, and their errors projected on four instruments. Definitions in TypeScript:
// test/audit/definitions.

import { halfUlpAt } from '../../bounds/assembly/format';
import { groupOf } from './errors';
import { slotOf } from './slots';

/** Instruments, and the bytes of a number for each. */
const instruments: i32 = 4;
const numberBytes: usize = 32;

/** Places of an ulp that outputs are told apart by. */
const outputPlaces: f64 = 64;

/** The part of a direction's square below which it is not free of fp64 roundings of the component that was removed. */
const negligible: f64 = 9.5367431640625e-7; // 2^-20

/** Numbers of fp64 between which squares and their inverses stay in its range with room to spare. */
const leastSize: f64 = 4.909093465297727e-91; // 2^-300
const mostSize: f64 = 2.037035976334486e90; // 2^300
const leastSquare: f64 = 1.1830521861667747e-271; // 2^-900
const mostSquare: f64 = 8.452712498170644e270; // 2^900

/** Sums of one row, four numbers each, and the places of the outputs' roundings, [4 × 64]. */
enum Sum {
  signed,
  worst,
  accumulated,
  total,
  ofOutputs,
  ofMagnitudes,
  // Of the groups of outputs that round alike.
  absolute,
  coherent,
  independent,
  mixed,
  places,
}

/** Elements of rows, [64 × columns] by block, and the numbers that they are judged by. */
@unmanaged
export class RowElements {
  columns: i32;
  exact: usize;
  magnitude: usize;
  out: usize;
  /** Four blocks one behind the other, each. */
  directions: usize;
  patterns: usize;
  /** By row: O·X and Y·X, four numbers each; and (i32) whether errors are numbers whose squares are. */
  own: usize;
  norm: usize;
  isMeasured: usize;
  // The output's format.
  precision: i32;
  minExponent: i32;
  maxExponent: i32;
  maxFinite: f64;
  smallestNormal: f64;
  // The groups of outputs that round alike: see `groupOf`.
  shift: i32;
  lowest: i32;
  size: i32;
  /** The groups of one row: slots of group + 1 and place, one less than their number, and by place the group and its sums. */
  slots: usize;
  slotMask: i32;
  groups: usize;
  groupSums: usize;
  groupSquares: usize;
  /** The sums of one row: see `Sum`. */
  sums: usize;
}

/** √(x² + y²). */
// @inline
function lengthOf(x: f64, y: f64): f64 {
  const squared = x * x + y * y;
  return squared > leastSquare && squared < mostSquare ? sqrt<f64>(squared) : Math.hypot(x, y);
}

/** x over the square of a deviation; 0 where that is no number, or the deviation is infinite. */
// @inline
function weighed(x: f64, deviation: f64): f64 {
  const result = x / deviation / deviation;
  return abs<f64>(result) < Infinity && deviation < Infinity ? result : 0;
}

/** Half an ulp of an output. */
// @inline
function halfOf(all: RowElements, exact: f64): f64 {
  const x = min<f64>(abs<f64>(exact), all.maxFinite);
  return halfUlpAt(x, all.precision, all.minExponent, all.maxExponent);
}

/** The rows that instruments are made for. */
@unmanaged
export class InstrumentRows {
  elements: RowElements;
  rows: i32;
  /** By row: the mean square of the errors within a kernel, relative to Σ w|v|; negative for a row without instruments. */
  noise: usize;
  /** The values of each row's heaviest key, [64 × columns]. */
  heaviest: usize;
}

/** Writes a row of a direction less its component along the values. */
function removeComponent(direction: usize, to: usize, values: usize, columns: i32): void {
  let product: f64 = 0;
  let ofValue: f64 = 0;
  let before: f64 = 0;
  for (let at: usize = 0; at < (<usize>columns) << 3; at += 8) {
    const x = load<f64>(direction + at);
    const v = load<f64>(values + at);
    product += x * v;
    ofValue += v * v;
    before += x * x;
  }
  const quotient = product / ofValue;
  const share = ofValue > 0 && abs<f64>(quotient) < Infinity ? quotient : 0;
  let after: f64 = 0;
  for (let at: usize = 0; at < (<usize>columns) << 3; at += 8) {
    const x = load<f64>(direction + at) - share * load<f64>(values + at);
    store<f64>(to + at, x);
    after += x * x;
  }
  if (!(after > negligible * before)) memory.fill(to, 0, (<usize>columns) << 3);
}

/**
 * The directions of least squares and their patterns: of the scale, of the scale without the heaviest key's value, of a bias, and of a
 * truncation, an element counting by the inverse of its expected noise. Zero for rows without instruments.
 */
export function makeInstruments(made: InstrumentRows): void {
  const all = made.elements;
  const columns = all.columns;
  const rowBytes = (<usize>columns) << 3;
  const block = rowBytes << 6;
  const third = 1 / sqrt<f64>(3);
  for (let i = 0; i < made.rows; i++) {
    const first = <usize>i * rowBytes;
    const noise = load<f64>(made.noise + ((<usize>i) << 3));
    const hasNone = !(noise >= 0);
    const ofRow = sqrt<f64>(noise);
    for (let at = first; at < first + rowBytes; at += 8) {
      const exact = load<f64>(all.exact + at);
      let half: f64 = 0;
      let deviation = Infinity;
      if (!hasNone) {
        half = halfOf(all, exact);
        deviation = lengthOf(ofRow * load<f64>(all.magnitude + at), half * third);
      }
      const signedHalf = exact < 0 ? -half : exact > 0 ? half : 0;
      const direction = all.directions + at;
      store<f64>(direction, weighed(exact, deviation));
      store<f64>(direction + 2 * block, weighed(1, deviation));
      store<f64>(direction + 3 * block, weighed(signedHalf, deviation));
      const pattern = all.patterns + at;
      store<f64>(pattern, exact);
      store<f64>(pattern + block, exact);
      store<f64>(pattern + 2 * block, 1);
      store<f64>(pattern + 3 * block, signedHalf);
    }
    const scale = all.directions + first;
    if (hasNone) memory.fill(scale + block, 0, rowBytes);
    else removeComponent(scale, scale + block, made.heaviest + first, columns);
  }
}

/** Sums O·X and Y·X of rows, and finds out whose errors are numbers, of elements whose squares are. */
export function measureRows(all: RowElements, rows: i32): void {
  const rowBytes = (<usize>all.columns) << 3;
  const block = rowBytes << 6;
  for (let i = 0; i < rows; i++) {
    const first = <usize>i * rowBytes;
    let isMeasured = true;
    for (let at = first; at < first + rowBytes; at += 8) {
      const error = load<f64>(all.out + at) - load<f64>(all.exact + at);
      const magnitude = load<f64>(all.magnitude + at);
      const hasSquare = magnitude === 0 || (magnitude > leastSize && magnitude < mostSize);
      isMeasured = isMeasured && hasSquare && abs<f64>(error) < Infinity;
    }
    for (let d = 0; d < instruments; d++) {
      const direction = all.directions + <usize>d * block;
      const pattern = all.patterns + <usize>d * block;
      let own: f64 = 0;
      let norm: f64 = 0;
      for (let at = first; at < first + rowBytes; at += 8) {
        const x = load<f64>(direction + at);
        own += load<f64>(all.exact + at) * x;
        norm += load<f64>(pattern + at) * x;
      }
      const place = <usize>i * numberBytes + ((<usize>d) << 3);
      store<f64>(all.own + place, own);
      store<f64>(all.norm + place, norm);
      isMeasured = isMeasured && abs<f64>(own) < Infinity && abs<f64>(norm) < Infinity;
    }
    store<i32>(all.isMeasured + ((<usize>i) << 2), isMeasured ? 1 : 0);
  }
}

/** A place among the sums of a row. */
// @inline
function sumOf(all: RowElements, sum: Sum, d: i32): usize {
  return all.sums + <usize>sum * numberBytes + ((<usize>d) << 3);
}

/** Adds to one of the sums. */
// @inline
function add(all: RowElements, sum: Sum, d: i32, x: f64): void {
  const at = sumOf(all, sum, d);
  store<f64>(at, load<f64>(at) + x);
}

/** The place of a group among those of the row, which begin with sums of 0. Their number so far is `count`. */
// @inline
function placeOfGroup(all: RowElements, group: i32, count: i32): i32 {
  const slot = slotOf(all.slots, <u32>all.slotMask, group);
  if (load<i32>(slot) !== 0) return load<i32>(slot, 4);
  store<i32>(slot, group + 1);
  store<i32>(slot, count, 4);
  store<i32>(all.groups + ((<usize>count) << 2), group);
  memory.fill(all.groupSums + <usize>count * numberBytes, 0, numberBytes);
  memory.fill(all.groupSquares + <usize>count * numberBytes, 0, numberBytes);
  return count;
}

/** Σ over the groups: |Σ x|, Σ x², and the larger of (Σ x)² and Σ x². */
function summariseGroups(all: RowElements, count: i32): void {
  for (let d = 0; d < instruments; d++) {
    let coherent: f64 = 0;
    let independent: f64 = 0;
    let mixed: f64 = 0;
    for (let place = 0; place < count; place++) {
      const at = <usize>place * numberBytes + ((<usize>d) << 3);
      const sum = load<f64>(all.groupSums + at);
      const square = load<f64>(all.groupSquares + at);
      coherent += abs<f64>(sum);
      independent += square;
      mixed += max<f64>(square, sum * sum);
    }
    store<f64>(sumOf(all, Sum.coherent, d), coherent);
    store<f64>(sumOf(all, Sum.independent, d), independent);
    store<f64>(sumOf(all, Sum.mixed, d), mixed);
  }
}

/**
 * Sums up the errors of a row and their bounds on each instrument, and its outputs' roundings by group and by place in an ulp.
 * @param accumulated the error of sums over keys, relative to Σ w|v|
 * @returns the number of groups
 */
export function projectRow(all: RowElements, row: i32, accumulated: f64): i32 {
  const rowBytes = (<usize>all.columns) << 3;
  const block = rowBytes << 6;
  const first = <usize>row * rowBytes;
  memory.fill(all.sums, 0, (<usize>Sum.places + 64) * numberBytes);
  memory.fill(all.slots, 0, (<usize>(all.slotMask + 1)) << 3);
  let count = 0;
  for (let at = first; at < first + rowBytes; at += 8) {
    const exact = load<f64>(all.exact + at);
    const magnitude = load<f64>(all.magnitude + at);
    const error = load<f64>(all.out + at) - exact;
    const size = abs<f64>(exact);
    const half = halfOf(all, exact);
    const ofSums = accumulated * magnitude;
    const amplitude = sqrt<f64>(half * half + ofSums * ofSums);
    const ulps = size / (half + half);
    const inUlp = <usize>((ulps - floor<f64>(ulps)) * outputPlaces);
    // Subnormal outputs are as far apart as the smallest normal ones.
    const rounded = size < all.smallestNormal ? size + all.smallestNormal : size;
    const place = placeOfGroup(all, groupOf(rounded, all.shift, all.lowest, all.size), count);
    if (place === count) count++;
    const group = <usize>place * numberBytes;
    for (let d = 0; d < instruments; d++) {
      const x = load<f64>(all.directions + <usize>d * block + at);
      const sizeOfX = abs<f64>(x);
      const signedX = exact < 0 ? -x : x;
      const rounding = half * signedX;
      add(all, Sum.signed, d, error * x);
      add(all, Sum.worst, d, abs<f64>(rounding));
      add(all, Sum.accumulated, d, ofSums * sizeOfX);
      add(all, Sum.total, d, sizeOfX);
      add(all, Sum.ofOutputs, d, abs<f64>(x * exact));
      add(all, Sum.ofMagnitudes, d, sizeOfX * magnitude);
      const inPlaces = sumOf(all, Sum.places, 0) + ((<usize>(d << 6) + inUlp) << 3);
      store<f64>(inPlaces, load<f64>(inPlaces) + rounding);
      const ofGroup = amplitude * signedX;
      add(all, Sum.absolute, d, abs<f64>(ofGroup));
      const to = group + ((<usize>d) << 3);
      store<f64>(all.groupSums + to, load<f64>(all.groupSums + to) + ofGroup);
      const square = all.groupSquares + to;
      store<f64>(square, load<f64>(square) + ofGroup * ofGroup);
    }
  }
  summariseGroups(all, count);
  return count;
}
