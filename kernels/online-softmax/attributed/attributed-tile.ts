import { exactExponentScale, filledDim, polynomialColumnsOf, type Recipe } from '../recipe.js';
import { createExactArithmetic, type ExactArithmetic } from './engine.js';
import { decodeToFloat64, formats, storageOf } from '../../../src/formats/index.js';
import { createTensorCoreTile } from '../../../src/hardware/index.js';
import { groupRuns } from '../../run-groups.js';
import type { KeyBlock } from '../key-blocks.js';
import type { TileDimensions } from '../query-tiles.js';
import type { InputPatterns } from '../units.js';
import { createBlockProducts, type BlockValues } from './output-sums.js';
import {
  blockWeights,
  createWeightFunction,
  emulatedExponents,
  exactExponents,
  type ExponentScale,
} from './weights.js';
import { createRunningMaximum, type RunningMaximum } from './running-maximum.js';
import { type EmulatedTechniques, type Technique, techniques } from '../../techniques.js';
import { createTileScores, padRows, type TileScores } from './tile-scores.js';
import { createWeightGroup } from './weight-group.js';

/** The largest weight of each row of a tile: the one whose key has the largest exact score. */
interface LargestWeights {
  /** [128]: its key, counted from the problem's first; −1 for a row that sees none. */
  readonly keys: Int32Array;
  /** [128]: its exact score. */
  readonly scores: Float64Array;
  readonly begin: () => void;
  /** Takes the exact scores [rows × columns] of the block whose first key is `firstKey`. */
  readonly step: (scores: Float64Array, firstKey: number, rows: number, columns: number) => void;
}

/** Keeps track of the largest weights; among equal scores the first that is met. */
function createLargestWeights(tileQueries: number): LargestWeights {
  const keys = new Int32Array(tileQueries);
  const scores = new Float64Array(tileQueries);
  return {
    keys,
    scores,
    begin: () => {
      keys.fill(-1);
      scores.fill(-Infinity);
    },
    step: (block, firstKey, rows, columns) => {
      for (let row = 0, i = 0; row < rows; row++)
        for (let j = 0; j < columns; j++, i++)
          if (block[i] > scores[row]) {
            scores[row] = block[i];
            keys[row] = firstKey + j;
          }
    },
  };
}

/** The results of a tile of queries. */
export interface AttributedTileResult {
  /** Output values of each run, [rows × vDim]. */
  readonly outputs: readonly Float64Array[];
  /** Row sums l of each run, [rows], of weights relative to the maximum in use. */
  readonly rowSums: readonly Float64Array[];
  /** LSEs of each run, [rows], natural logarithm; −∞ for a row without keys. */
  readonly lse: readonly Float64Array[];
  /** [rows]: the maximum in use at the end, a raw score. */
  readonly maxima: Float64Array;
  /** [rows]: log2 of the factor by which the row's true maximum exceeds it; 0 where it does not lag. */
  readonly lags: Float64Array;
  /** [rows]: the key with the largest weight, −1 for a row without keys. */
  readonly largestKeys: Int32Array;
  /** [rows]: log2 of that weight in the units of an exact l. */
  readonly largestExponents: Float64Array;
}

/** One tile of queries on its way through the blocks of keys; methods as those of `ForwardTile`. */
interface AttributedTile {
  readonly begin: (queries: InputPatterns, rows: number, sink: number) => void;
  readonly block: (block: KeyBlock, keys: InputPatterns, values: InputPatterns) => void;
  readonly finish: () => AttributedTileResult;
}

/** The techniques that decide the weights; runs that agree in them share their weights. */
function weightTechniques(recipe: Recipe): Technique[] {
  return techniques
    .slice(0, techniques.indexOf('p-round'))
    .filter((name) => name !== 'exp2-polynomial' || polynomialColumnsOf(recipe).includes(true));
}

/** The scale of the exponents of a recipe. */
function exponentScaleOf(recipe: Recipe): ExponentScale {
  const { scale, offset, isFused } = recipe.exponent;
  return { exact: exactExponentScale(recipe), rounded: scale, offset, isFused };
}

/** The scores of a tile, by the techniques that decide them, and a path for each kind of scores. */
class TilePaths {
  /** The kernel's own path. */
  readonly own: RunningMaximum;
  readonly exactScores: Float64Array;
  readonly #scores: TileScores;
  readonly #paths: Map<Float64Array, RunningMaximum>;

  /** @param all the choices of techniques whose scores are asked for */
  constructor(recipe: Recipe, scores: TileScores, all: readonly EmulatedTechniques[]) {
    this.#scores = scores;
    this.own = createRunningMaximum(recipe, null);
    this.exactScores = scores.of('exact', 'exact');
    this.#paths = new Map([[scores.of('emulated', 'emulated'), this.own]]);
    for (const source of [this.exactScores, ...all.map((emulated) => this.scoresOf(emulated))])
      if (!this.#paths.has(source)) this.#paths.set(source, createRunningMaximum(recipe, this.own));
  }

  begin(): void {
    for (const path of this.#paths.values()) path.begin();
  }

  /** Takes the scores of the next block. The kernel's own are the first. */
  step(rows: number, columns: number): void {
    for (const [source, path] of this.#paths) path.step(source, rows, columns);
  }

  scoresOf(emulated: EmulatedTechniques): Float64Array {
    const arithmeticOf = (technique: Technique) => (emulated.has(technique) ? 'emulated' : 'exact');
    return this.#scores.of(arithmeticOf('qk-accumulate'), arithmeticOf('scale-subtract'));
  }

  /** The path of the scores of these techniques. */
  pathOf(emulated: EmulatedTechniques): RunningMaximum {
    return this.#paths.get(this.scoresOf(emulated)) ?? this.own;
  }
}

/** The weights of a block by the techniques that decide them, valid until the next. */
function createTileWeights(recipe: Recipe, paths: TilePaths, arithmetic: ExactArithmetic) {
  const { queries, keys: columns } = recipe.tiling;
  const scale = exponentScaleOf(recipe);
  const exponents = new Float64Array(queries * columns);
  const numbers = new Float64Array(queries * columns);
  const computeWeights = createWeightFunction(recipe, queries * columns, arithmetic);
  return (emulated: EmulatedTechniques, rows: number) => {
    const { subtracted } = paths.pathOf(emulated);
    const compute = emulated.has('scale-subtract') ? emulatedExponents : exactExponents;
    compute(exponents, paths.scoresOf(emulated), subtracted, scale, { rows, columns });
    computeWeights(numbers, exponents, rows * columns, emulated);
    return blockWeights(numbers.subarray(0, rows * columns), recipe.format);
  };
}

/** The product of P and V, and the values of a block in it, with `columns` a row. */
function createTileValues({ format, tiling, tensorCore }: Recipe, columns: number) {
  const { queries: rows, keys: inner } = tiling;
  const formatsOf = { aFormat: format, bFormat: format };
  const product = createTensorCoreTile(tensorCore, { rows, columns, inner, ...formatsOf });
  const numbers = new Float64Array(inner * columns);
  return {
    put: (values: InputPatterns, vDim: number): BlockValues => {
      padRows(product.b, values, vDim, columns);
      product.packB();
      decodeToFloat64(storageOf(formats[format], product.b), formats[format], numbers);
      return { values: numbers, inner, columns, product };
    },
    putWeights: (patterns: ArrayLike<number>): void => {
      product.a.fill(0);
      product.a.set(patterns);
      product.packA();
    },
  };
}

/** The maxima of a tile's rows at its end, and its largest weights. */
function tileMaxima(
  paths: TilePaths,
  largest: LargestWeights,
  { exact, offset }: ExponentScale,
  rows: number,
): Pick<AttributedTileResult, 'maxima' | 'lags' | 'largestKeys' | 'largestExponents'> {
  const { current, largest: reached } = paths.own;
  const exactMaxima = paths.pathOf(new Set()).current;
  const ofRows = (value: (row: number) => number): Float64Array =>
    Float64Array.from({ length: rows }, (_, row) => value(row));
  return {
    maxima: current.slice(0, rows),
    lags: ofRows((row) =>
      reached[row] === current[row] ? 0 : (reached[row] - current[row]) * exact,
    ),
    largestKeys: largest.keys.slice(0, rows),
    largestExponents: ofRows((row) =>
      largest.keys[row] < 0 ? -Infinity : (largest.scores[row] - exactMaxima[row]) * exact + offset,
    ),
  };
}

/**
 * The forward on one tile, once for each choice of emulated techniques. Scores and path are computed
 * once, weights once for each choice of the techniques that they depend on, and so on down to the
 * outputs. Memory is that of a tile for each run.
 */
export function createAttributedTile(
  recipe: Recipe,
  { qkDim, vDim }: TileDimensions,
  choices: readonly EmulatedTechniques[],
): AttributedTile {
  const { queries: tileQueries, keys: blockKeys } = recipe.tiling;
  const columns = 8 * Math.ceil(vDim / 8);
  const scale = exponentScaleOf(recipe);
  const arithmetic = createExactArithmetic({
    rows: tileQueries,
    inner: Math.max(filledDim(recipe, qkDim), blockKeys),
    columns: Math.max(columns, blockKeys),
  });
  const scores = createTileScores(recipe, qkDim, arithmetic);
  const groups = groupRuns(choices, weightTechniques(recipe)).groups.map((group) =>
    createWeightGroup(group, choices, { recipe, scale, vDim, columns }),
  );
  const paths = new TilePaths(
    recipe,
    scores,
    groups.map(({ emulated }) => emulated),
  );
  const largest = createLargestWeights(tileQueries);
  const weightsOf = createTileWeights(recipe, paths, arithmetic);
  const tileValues = createTileValues(recipe, columns);
  const products = createBlockProducts(tileQueries * columns, arithmetic);
  let [rows, logit] = [0, -Infinity];
  return {
    begin: (queries, count, sink) => {
      [rows, logit] = [count, sink];
      scores.begin(queries, rows);
      paths.begin();
      largest.begin();
      for (const group of groups) group.begin(rows);
    },
    block: (block, keys, values) => {
      scores.step(keys, block);
      paths.step(rows, blockKeys);
      largest.step(paths.exactScores, block.first, rows, blockKeys);
      const blockValues = tileValues.put(values, vDim);
      for (const group of groups) {
        const weights = weightsOf(group.emulated, rows);
        tileValues.putWeights(weights.patterns);
        products.next(weights, blockValues, rows);
        group.step(paths.pathOf(group.emulated), weights, blockValues, products);
      }
    },
    finish: () => {
      const results = groups
        .flatMap(({ emulated, finish }) =>
          finish(paths.pathOf(emulated).current.slice(0, rows), logit),
        )
        .sort((a, b) => a.run - b.run);
      return {
        outputs: results.map(({ out }) => out),
        rowSums: results.map(({ rowSums }) => rowSums),
        lse: results.map(({ lse }) => lse),
        ...tileMaxima(paths, largest, scale, rows),
      };
    },
  };
}
