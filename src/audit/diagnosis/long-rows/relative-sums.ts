import {
  addWeighed,
  cellKeys,
  emptySums,
  type RelativeWeights,
  type WeightedSums,
} from '../prediction.js';

/** Sums over the values of a row with its correct weights. */
export interface ShareSums {
  readonly all: WeightedSums;
  /** The sums over each stretch of 16 keys, [cells × vDim], and the last by cell. */
  readonly cells: {
    readonly out: Float64Array;
    readonly magnitude: Float64Array;
    readonly squares: Float64Array;
  };
}

/** The sums over values [keys × vDim] with correct weights, over all and by stretch of 16 keys. */
export function sumShares(shares: Float64Array, values: Float64Array, vDim: number): ShareSums {
  const keys = values.length / Math.max(vDim, 1);
  const count = Math.ceil(keys / cellKeys);
  const all = emptySums(vDim);
  const cells = {
    out: new Float64Array(count * vDim),
    magnitude: new Float64Array(count * vDim),
    squares: new Float64Array(count),
  };
  for (let cell = 0; cell < count; cell++) {
    const first = cell * vDim;
    for (let j = cell * cellKeys; j < Math.min((cell + 1) * cellKeys, keys); j++) {
      const w = shares[j];
      let norm = 0;
      for (let c = 0, at = j * vDim; c < vDim; c++, at++) {
        const product = w * values[at];
        cells.out[first + c] += product;
        cells.magnitude[first + c] += Math.abs(product);
        norm += values[at] * values[at];
      }
      cells.squares[cell] += w * w * norm;
    }
    for (let c = 0; c < vDim; c++) {
      all.out[c] += cells.out[first + c];
      all.magnitude[c] += cells.magnitude[first + c];
    }
    all.squares += cells.squares[cell];
  }
  return { all, cells };
}

/** The sums with a factor, not negative, for each stretch of 16 keys. */
export function sumsOfCells(
  factors: Float64Array,
  { cells }: ShareSums,
  vDim: number,
): WeightedSums {
  const sums = emptySums(vDim);
  for (let cell = 0; cell < factors.length; cell++) {
    const factor = factors[cell];
    if (factor === 0) continue;
    for (let c = 0, at = cell * vDim; c < vDim; c++, at++) {
      sums.out[c] += factor * cells.out[at];
      sums.magnitude[c] += factor * cells.magnitude[at];
    }
    sums.squares += factor * factor * cells.squares[cell];
  }
  return sums;
}

/**
 * The sums where the keys of a range have other weights, and those of the others are multiplied by a factor.
 * @param values those of the range alone
 */
export function sumsOfRange(
  { shares, range }: RelativeWeights,
  all: WeightedSums,
  values: Float64Array,
  vDim: number,
): WeightedSums {
  if (range === null) return all;
  const { begin, end, weights, factor } = range;
  const [own, changed] = [emptySums(vDim), emptySums(vDim)];
  addWeighed(own, shares.subarray(begin, end), values, vDim);
  addWeighed(changed, weights, values, vDim);
  const of = (name: 'out' | 'magnitude') =>
    all[name].map((x, c) => factor * (x - own[name][c]) + changed[name][c]);
  return {
    out: of('out'),
    magnitude: of('magnitude'),
    squares: factor * factor * (all.squares - own.squares) + changed.squares,
  };
}

/** Weights that are given in multiples of the correct ones, of all keys. */
export function weightsOf({ shares, cells, range }: RelativeWeights): Float64Array {
  if (cells !== null) return shares.map((x, j) => x * cells[Math.floor(j / cellKeys)]);
  if (range === null) return shares;
  const weights = shares.map((x) => x * range.factor);
  weights.set(range.weights, range.begin);
  return weights;
}
