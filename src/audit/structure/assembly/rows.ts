// AssemblyScript: what the structure tests sum up of a row's weights and their products with the directions of four
// instruments, which go in pairs of lanes. Addresses of a row's record are those of ../row-memory.ts. Sums are fp64, in the order
// of the keys; their errors are far below what the tests tell apart.

import { groupOf } from './errors';
import { logarithm } from './logarithm';
import { slotOf } from './slots';
import { addNumber, addTo, blockBytes, pair } from './sums';

/** Places of an octave for what is smooth, and factors for which roundings are summed at most. */
const smoothPlaces: i32 = 32;

/** What is this close to a whole number is one. */
const wholeNumber: f64 = 1.4551915228366852e-11; // 2^-36

/** Weights are added to a sum with one error where they agree in so many parts of it. */
const cellsPerUnit: f64 = 33554432; // 2^25
/** From so many on, additions with one error count in full. */
const many: i32 = 16;

// A row's record, in bytes.
const toLargestAt: usize = 0;
const exponentsAt: usize = 8;
const ownAt: usize = 32;
const appliedAt: usize = 64;
const squaredAt: usize = 80;
const productsAt: usize = 112;
const lastAt: usize = 144;
const firstAt: usize = 176;
const lostAt: usize = 208;
const absoluteAt: usize = 240;
const weightsAt: usize = 272;
const equalAt: usize = 288;
const otherwiseAt: usize = 304;
const massAt: usize = 496;
const roundedAt: usize = 1264;
const squaresAt: usize = 2288;
const poolAt: usize = 3312;
const summaryAt: usize = 3344;
const smoothAt: usize = 3472;
const byInstrumentAt: usize = 4496;

/** Where the parameters have other factors, and the logarithms of a row of a tile. */
const factorsAt: usize = 56;
const logarithmsAt: usize = 160;

/** Bytes of a group's sums over five channels. */
const groupBytes: usize = 40;

/** y less the whole number below; 0 for what is a whole number but for roundings, which are of either sign. */
// @inline
function fractionOf(y: f64): f64 {
  const fraction = y - floor<f64>(y + wholeNumber);
  return fraction < wholeNumber ? 0 : fraction;
}

/** Gives a row's pool other arrays, which hold `capacity` groups, and moves what it has there. The slots are zero. */
export function movePool(
  row: usize,
  capacity: i32,
  slots: usize,
  groups: usize,
  sums: usize,
  squares: usize,
): void {
  const pool = row + poolAt;
  const count = load<i32>(pool, 4);
  memory.copy(groups, load<i32>(pool, 12), (<usize>count) << 2);
  memory.copy(sums, load<i32>(pool, 16), <usize>count * groupBytes);
  memory.copy(squares, load<i32>(pool, 20), <usize>count * groupBytes);
  store<i32>(pool, capacity);
  store<i32>(pool, <i32>slots, 8);
  store<i32>(pool, <i32>groups, 12);
  store<i32>(pool, <i32>sums, 16);
  store<i32>(pool, <i32>squares, 20);
  for (let place = 0; place < count; place++) {
    const group = load<i32>(groups + ((<usize>place) << 2));
    const at = slotOf(slots, 2 * capacity - 1, group);
    store<i32>(at, group + 1);
    store<i32>(at, place, 4);
  }
}

/** Starts a row: everything of it is 0 but for what its pool and its table of equal weights have for room. */
export function clearRow(row: usize, equalBytes: usize): void {
  const pool = row + poolAt;
  memory.fill(row, 0, poolAt);
  memory.fill(load<i32>(pool, 8), 0, (<usize>load<i32>(pool)) << 4);
  store<i32>(pool, 0, 4);
  if (equalBytes > 0) memory.fill(load<i32>(pool, 24), 0, equalBytes);
}

/**
 * Adds the weights of a row of a tile from the key `from` on. The blocks of [64 × 64] numbers lie one behind the other: what the
 * values are multiplied by, at `weights + blockBytes`, and four projections. Returns the key at which the row's pool had no room for
 * another group: nothing of that key is added yet; `keys` when all are.
 *
 * `parameters`: f64 the smallest weight that is normal in P's format, the most that a smaller one loses, how often it is rounded; then
 * i32 places of an octave, shift, lowest and number of the groups, the addresses of the rounding errors by place (0 for none) and of Σ c
 * by place, [3 × places × 4], what a hash of equal weights is shifted by (0 for none) and how many other factors there are; these as
 * i32 family and, 8 bytes behind, f64 shift; then room for 64 logarithms.
 */
export function addWeights(
  row: usize,
  weights: usize,
  keys: i32,
  from: i32,
  parameters: usize,
): i32 {
  const smallest = load<f64>(parameters);
  const mostLost = load<f64>(parameters, 8);
  const roundings = load<f64>(parameters, 16);
  const places = load<i32>(parameters, 24);
  const shift = load<i32>(parameters, 28);
  const lowest = load<i32>(parameters, 32);
  const size = load<i32>(parameters, 36);
  const roundingErrors: usize = load<i32>(parameters, 40);
  const phases: usize = load<i32>(parameters, 44);
  const equalShift = load<i32>(parameters, 48);
  const factors = load<i32>(parameters, 52);
  const ofPlaces = <f64>places;
  const familyBytes = (<usize>places) << 5;
  const toLargest = load<f64>(row, toLargestAt);
  const first = load<f64>(row, exponentsAt);
  const second = load<f64>(row, exponentsAt + 8);
  const third = load<f64>(row, exponentsAt + 16);
  const pool = row + poolAt;
  const capacity = load<i32>(pool);
  const slots: usize = load<i32>(pool, 8);
  const groups: usize = load<i32>(pool, 12);
  const sums: usize = load<i32>(pool, 16);
  const squares: usize = load<i32>(pool, 20);
  const equal: usize = load<i32>(pool, 24);
  const logarithms = parameters + logarithmsAt;
  const magnitude = i64x2.splat(0x7fffffffffffffff);
  for (let j = from & ~1; j < keys; j += 2)
    v128.store(logarithms + ((<usize>j) << 3), logarithm(v128.load(weights + ((<usize>j) << 3))));
  let squared0 = f64x2.splat(0);
  let squared1 = f64x2.splat(0);
  let products0 = f64x2.splat(0);
  let products1 = f64x2.splat(0);
  let absolute0 = f64x2.splat(0);
  let absolute1 = f64x2.splat(0);
  let applied: f64 = 0;
  let appliedSquares: f64 = 0;
  let absolute: f64 = 0;
  let ownSquares: f64 = 0;
  let j = from;
  for (; j < keys; j++) {
    const at = weights + ((<usize>j) << 3);
    const w = load<f64>(at);
    if (w === 0) continue;
    const group = groupOf(w * toLargest, shift, lowest, size);
    const slot = slotOf(slots, 2 * capacity - 1, group);
    const isNew = load<i32>(slot) === 0;
    let place = load<i32>(slot, 4);
    if (isNew) {
      place = load<i32>(pool, 4);
      if (place === capacity) break;
      store<i32>(pool, place + 1, 4);
      store<i32>(slot, group + 1);
      store<i32>(slot, place, 4);
      store<i32>(groups + ((<usize>place) << 2), group);
    }
    const p = load<f64>(at + blockBytes);
    const factor = f64x2.splat(p);
    const x0 = pair(at + 2 * blockBytes, at + 3 * blockBytes);
    const x1 = pair(at + 4 * blockBytes, at + 5 * blockBytes);
    const c0 = f64x2.mul(factor, x0);
    const c1 = f64x2.mul(factor, x1);
    const s0 = f64x2.mul(c0, c0);
    const s1 = f64x2.mul(c1, c1);
    const weight = f64x2.splat(w);
    applied += p;
    appliedSquares += p * p;
    squared0 = f64x2.add(squared0, s0);
    squared1 = f64x2.add(squared1, s1);
    products0 = f64x2.add(products0, f64x2.mul(c0, weight));
    products1 = f64x2.add(products1, f64x2.mul(c1, weight));
    absolute0 = f64x2.add(absolute0, v128.and(c0, magnitude));
    absolute1 = f64x2.add(absolute1, v128.and(c1, magnitude));
    absolute += w;
    ownSquares += w * w;
    // The group's sums.
    const ofGroup = sums + <usize>place * groupBytes;
    const ofSquares = squares + <usize>place * groupBytes;
    if (isNew) {
      v128.store(ofGroup, c0);
      v128.store(ofGroup, c1, 16);
      store<f64>(ofGroup, w, 32);
      v128.store(ofSquares, s0);
      v128.store(ofSquares, s1, 16);
      store<f64>(ofSquares, w * w, 32);
    } else {
      addTo(ofGroup, c0);
      addTo(ofGroup + 16, c1);
      addNumber(ofGroup + 32, w);
      addTo(ofSquares, s0);
      addTo(ofSquares + 16, s1);
      addNumber(ofSquares + 32, w * w);
    }
    // By place in an octave: coarse ones of the row, fine ones of all rows.
    const exponent = load<f64>(logarithms + ((<usize>j) << 3));
    const x = fractionOf(exponent + first);
    const y = fractionOf(exponent + second);
    const z = fractionOf(exponent + third);
    const nearest = <i32>(x * <f64>smoothPlaces);
    addNumber(row + massAt + ((<usize>nearest) << 3), w);
    addNumber(row + massAt + 256 + ((<usize>(y * <f64>smoothPlaces)) << 3), w);
    addNumber(row + massAt + 512 + ((<usize>(z * <f64>smoothPlaces)) << 3), w);
    const coarse = row + ((<usize>nearest) << 5);
    addTo(coarse + roundedAt, c0);
    addTo(coarse + roundedAt + 16, c1);
    addTo(coarse + squaresAt, s0);
    addTo(coarse + squaresAt + 16, s1);
    const inFirst = <usize>(x * ofPlaces);
    const inSecond = <usize>(y * ofPlaces);
    let phase = phases + (inFirst << 5);
    addTo(phase, c0);
    addTo(phase + 16, c1);
    phase = phases + familyBytes + (inSecond << 5);
    addTo(phase, c0);
    addTo(phase + 16, c1);
    phase = phases + 2 * familyBytes + ((<usize>(z * ofPlaces)) << 5);
    addTo(phase, c0);
    addTo(phase + 16, c1);
    if (w < smallest) {
      const lost = f64x2.splat(roundings * min<f64>(p, mostLost));
      addTo(row + lostAt, f64x2.mul(lost, v128.and(x0, magnitude)));
      addTo(row + lostAt + 16, f64x2.mul(lost, v128.and(x1, magnitude)));
    }
    if (roundingErrors !== 0) {
      // A weight of one is not rounded.
      if (x !== 0) {
        const error = v128.load64_splat(roundingErrors + (inFirst << 3));
        addTo(row + lastAt, f64x2.mul(c0, error));
        addTo(row + lastAt + 16, f64x2.mul(c1, error));
      }
      const error = v128.load64_splat(roundingErrors + (inSecond << 3));
      addTo(row + firstAt, f64x2.mul(c0, error));
      addTo(row + firstAt + 16, f64x2.mul(c1, error));
      for (let f = 0; f < factors; f++) {
        const other = parameters + factorsAt + ((<usize>f) << 4);
        const family = load<f64>(row + exponentsAt + ((<usize>load<i32>(other)) << 3));
        const fraction = fractionOf(exponent + family + load<f64>(other, 8));
        const error = v128.load64_splat(roundingErrors + ((<usize>(fraction * ofPlaces)) << 3));
        const sum = row + otherwiseAt + ((<usize>f) << 5);
        addTo(sum, f64x2.mul(c0, error));
        addTo(sum + 16, f64x2.mul(c1, error));
      }
    }
    if (equalShift !== 0) {
      // Halves go up, as Math.round takes them.
      const cell = (<u32>(w * cellsPerUnit + 0.5) * 0x9e3779b1) >> equalShift;
      const counter = equal + cell;
      const count = <i32>load<u8>(counter) + 1;
      // More than many are as many.
      if (count <= many) store<u8>(counter, <u8>count);
      if (count < many) addNumber(row + equalAt + 8, 2 * count - 1);
      else if (count > many) addNumber(row + equalAt, 1);
      else {
        addNumber(row + equalAt + 8, -(many - 1) * (many - 1));
        addNumber(row + equalAt, many);
      }
    }
  }
  addNumber(row + appliedAt, applied);
  addNumber(row + appliedAt + 8, appliedSquares);
  addTo(row + squaredAt, squared0);
  addTo(row + squaredAt + 16, squared1);
  addTo(row + productsAt, products0);
  addTo(row + productsAt + 16, products1);
  addTo(row + absoluteAt, absolute0);
  addTo(row + absoluteAt + 16, absolute1);
  addNumber(row + weightsAt, absolute);
  addNumber(row + weightsAt + 8, ownSquares);
  return j;
}

/**
 * What a row's groups come to, four numbers each: Σ |Σ x|, Σ x², Σ of the larger of (Σ x)² and Σ x², and Σ (Σ x − own·Σ w)²; Σ c − own·Σ w by
 * coarse place, and Σ c² by coarse place, both [4 × 32].
 */
export function summarise(row: usize): void {
  const pool = row + poolAt;
  const count = load<i32>(pool, 4);
  const sums: usize = load<i32>(pool, 16);
  const squares: usize = load<i32>(pool, 20);
  for (let half: usize = 0; half < 32; half += 16) {
    const own = v128.load(row + ownAt + half);
    let coherent = f64x2.splat(0);
    let independent = f64x2.splat(0);
    let mixed = f64x2.splat(0);
    let difference = f64x2.splat(0);
    for (let place = 0; place < count; place++) {
      const offset = <usize>place * groupBytes;
      const sum = v128.load(sums + offset + half);
      const square = v128.load(squares + offset + half);
      const apart = f64x2.sub(sum, f64x2.mul(own, v128.load64_splat(sums + offset + 32)));
      coherent = f64x2.add(coherent, f64x2.abs(sum));
      independent = f64x2.add(independent, square);
      mixed = f64x2.add(mixed, f64x2.max(square, f64x2.mul(sum, sum)));
      difference = f64x2.add(difference, f64x2.mul(apart, apart));
    }
    v128.store(row + summaryAt + half, coherent);
    v128.store(row + summaryAt + 32 + half, independent);
    v128.store(row + summaryAt + 64 + half, mixed);
    v128.store(row + summaryAt + 96 + half, difference);
  }
  for (let d: usize = 0; d < 4; d++) {
    const own = load<f64>(row + ownAt + (d << 3));
    for (let place: usize = 0; place < <usize>smoothPlaces; place++) {
      const from = (place << 5) + (d << 3);
      const to = ((d * smoothPlaces) << 3) + (place << 3);
      const mass = load<f64>(row + massAt + (place << 3));
      store<f64>(row + smoothAt + to, load<f64>(row + roundedAt + from) - own * mass);
      store<f64>(row + byInstrumentAt + to, load<f64>(row + squaresAt + from));
    }
  }
}
