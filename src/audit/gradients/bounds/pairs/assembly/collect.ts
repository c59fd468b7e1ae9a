// AssemblyScript: the errors of a tile's pairs, as parts of elements and as shares of techniques in rows. Its laws are the
// comments of ../pair-sums.ts and of ../share-pairs.ts.

import {
  blockBytes,
  Errors,
  number,
  ofRow,
  ofSide,
  PairTile,
  Part,
  Place,
  Row,
  Side,
  write,
} from './memory';

const places: i32 = 6;
const parts: i32 = 15;

/** The numbers of times that the variances of a technique count, once for each row that errs alike; −1 for once. */
// @inline
function alikeOf(place: i32): i32 {
  if (place === Place.dpAccumulate) return Side.alikeProducts;
  if (place === Place.dsRound) return Side.alikeBoth;
  return place === Place.delta ? -1 : Side.alikeScores;
}

/** Adds to a share of row or key `at` by technique: at worst, and its variance. */
// @inline
function addShare(tile: PairTile, place: i32, at: i32, worst: f64, variance: f64): void {
  const share = tile.shares + ((<usize>(place * 64 + at)) << 3);
  store<f64>(share, load<f64>(share) + worst);
  const spread = share + <usize>(places * 512);
  store<f64>(spread, load<f64>(spread) + variance);
}

/** Clears the parts of a gradient and the shares. */
function clear(tile: PairTile, to: usize): void {
  memory.fill(to, 0, <usize>(tile.isOfSums ? parts : Part.value + 1) * blockBytes);
  memory.fill(tile.shares, 0, <usize>(2 * places * 512));
}

/** Writes the parts that only the errors of fp32 sums follow from. */
// @inline
function writeSums(errors: usize, to: usize, at: usize, value: f64): void {
  write(to, Part.squares, at, value * value);
  write(to, Part.ofScores, at, number(errors, Errors.ofScores, at));
  write(to, Part.ofProducts, at, number(errors, Errors.ofProducts, at));
  write(to, Part.ofMeans, at, number(errors, Errors.ofMeans, at));
}

/** Writes the parts that are known. */
// @inline
function writeKnown(tile: PairTile, to: usize, at: usize): void {
  write(to, Part.known, at, number(tile.errors, Errors.known, at));
  for (let k = 0; k < tile.others; k++)
    write(to, Part.byOthers + k, at, number(tile.errors, Errors.byOthers + k, at));
}

/** Sums the errors of pairs over some techniques, and over queries into the shares of rows of keys; a bit for each technique. */
function collectKeys(tile: PairTile, to: usize, techniques: i32, sizes: i32, segments: i32): void {
  const errors = tile.errors;
  for (let place = 0; place < places; place++) {
    if (((techniques >> place) & 1) === 0) continue;
    const alike = alikeOf(place);
    for (let s = 0; s < segments; s++) {
      const segment = tile.segments + <usize>(s * 12);
      const i = load<i32>(segment);
      const end = load<i32>(segment, 8);
      const count = alike < 0 ? 1 : ofSide(tile.queries, alike, i);
      const size = ofSide(tile.queries, sizes, i);
      const square = ofSide(tile.queries, sizes + 1, i);
      for (let j = load<i32>(segment, 4); j < end; j++) {
        const at = (<usize>(i * 64 + j)) << 3;
        const error = number(errors, Errors.worst + place, at);
        const squared = number(errors, Errors.variance + place, at) * count;
        write(to, Part.worst, at, number(to, Part.worst, at) + error);
        write(to, Part.variance, at, number(to, Part.variance, at) + squared);
        addShare(tile, place, j, error * size, squared * square);
      }
    }
  }
}

/** The parts of a gradient of keys, which counts the row's errors among the pair's, and the shares of its techniques. */
export function collectOfKeys(
  tile: PairTile,
  to: usize,
  techniques: i32,
  isOfValues: bool,
  segments: i32,
): void {
  const errors = tile.errors;
  clear(tile, to);
  collectKeys(tile, to, techniques, isOfValues ? Side.valueSizes : Side.sizes, segments);
  for (let s = 0; s < segments; s++) {
    const segment = tile.segments + <usize>(s * 12);
    const i = load<i32>(segment);
    const end = (<usize>(i * 64 + load<i32>(segment, 8))) << 3;
    const typicalWeight = ofRow(tile, i, Row.typicalWeight);
    const typicalMean = ofRow(tile, i, Row.typicalMean);
    for (let at = (<usize>(i * 64 + load<i32>(segment, 4))) << 3; at < end; at += 8) {
      const value = number(errors, Errors.value, at);
      const sloped = number(errors, Errors.sloped, at);
      const size = abs<f64>(value);
      // D, which may be infinite, is no part of dV.
      const ofMean = sloped === 0 ? 0 : typicalMean * sloped;
      write(to, Part.magnitude, at, size + number(to, Part.worst, at));
      const systematic = number(errors, Errors.systematic, at) + typicalWeight * size + ofMean;
      write(to, Part.systematic, at, systematic);
      writeKnown(tile, to, at);
      write(to, Part.signed, at, value - number(errors, Errors.unshifted, at));
      write(to, Part.value, at, value);
      if (!tile.isOfSums) continue;
      writeSums(errors, to, at, value);
      write(to, Part.ofWeights, at, number(errors, Errors.ofWeights, at));
    }
  }
}

/** Sums errors over the techniques that are not the row's, and over keys into the shares of rows of queries. */
function collectQueries(tile: PairTile, to: usize, segments: i32): void {
  const errors = tile.errors;
  for (let place = <i32>Place.pRecompute; place < places; place++) {
    const alike = alikeOf(place);
    for (let s = 0; s < segments; s++) {
      const segment = tile.segments + <usize>(s * 12);
      const i = load<i32>(segment);
      const end = load<i32>(segment, 8);
      const share = tile.shares + ((<usize>(place * 64 + i)) << 3);
      const spread = share + <usize>(places * 512);
      let ofRow = load<f64>(share);
      let squaresOfRow = load<f64>(spread);
      for (let j = load<i32>(segment, 4); j < end; j++) {
        const at = (<usize>(i * 64 + j)) << 3;
        const error = number(errors, Errors.worst + place, at);
        const squared = number(errors, Errors.variance + place, at) * ofSide(tile.keys, alike, j);
        write(to, Part.worst, at, number(to, Part.worst, at) + error);
        write(to, Part.variance, at, number(to, Part.variance, at) + squared);
        ofRow += error * ofSide(tile.keys, Side.sizes, j);
        squaresOfRow += squared * ofSide(tile.keys, Side.squares, j);
      }
      store<f64>(share, ofRow);
      store<f64>(spread, squaresOfRow);
    }
  }
}

/** The parts of dQ, which has the row's errors beside the pairs', and the shares of its techniques. */
export function collectOfQueries(tile: PairTile, segments: i32): void {
  const errors = tile.errors;
  const to = tile.dq;
  clear(tile, to);
  collectQueries(tile, to, segments);
  for (let s = 0; s < segments; s++) {
    const segment = tile.segments + <usize>(s * 12);
    const i = load<i32>(segment);
    const end = (<usize>(i * 64 + load<i32>(segment, 8))) << 3;
    for (let at = (<usize>(i * 64 + load<i32>(segment, 4))) << 3; at < end; at += 8) {
      const value = number(errors, Errors.value, at);
      write(
        to,
        Part.magnitude,
        at,
        abs<f64>(value) +
          number(to, Part.worst, at) +
          number(errors, Errors.worst + Place.lseInput, at) +
          number(errors, Errors.worst + Place.delta, at),
      );
      write(to, Part.systematic, at, number(errors, Errors.systematic, at));
      writeKnown(tile, to, at);
      write(to, Part.signed, at, number(errors, Errors.sloped, at));
      if (!tile.isOfSums) continue;
      write(to, Part.value, at, value);
      writeSums(errors, to, at, value);
    }
  }
}
