import { exactExponentScale, filledDim, polynomialColumnsOf, type Recipe } from '../recipe.js';
import { createExactArithmetic } from './engine.js';
import { decodeToFloat64, formats, storageOf } from '../../../src/formats/index.js';
import { createTensorCoreTile } from '../../../src/hardware/index.js';
import { groupRuns } from '../../run-groups.js';
import type { KeyBlock } from '../key-blocks.js';
import type { TileDimensions } from '../query-tiles.js';
import type { InputPatterns } from '../units.js';
import { createBlockProducts } from './output-sums.js';
import {
  blockWeights,
  createWeightFunction,
  emulatedExponents,
  exactExponents,
  type ExponentScale,
} from './weights.js';
import { createRunningMaximum, type RunningMaximum } from './running-maximum.js';
import { type EmulatedTechniques, type Technique, techniques } from '../../techniques.js';
import { createTileScores, padRows } from './tile-scores.js';
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
  const { format } = recipe;
  const { queries: tileQueries, keys: blockKeys } = recipe.tiling;
  const columns = 8 * Math.ceil(vDim / 8);
  const exactScale = exactExponentScale(recipe);
  const scale: ExponentScale = {
    exact: exactScale,
    rounded: recipe.exponent.scale,
    offset: recipe.exponent.offset,
    isFused: recipe.exponent.isFused,
  };
  const elements = tileQueries * blockKeys;
  const arithmetic = createExactArithmetic({
    rows: tileQueries,
    inner: Math.max(filledDim(recipe, qkDim), blockKeys),
    columns: Math.max(columns, blockKeys),
  });
  const scores = createTileScores(recipe, qkDim, arithmetic);
  const path = createRunningMaximum(recipe, null);
  const largest = createLargestWeights(tileQueries);
  const computeWeights = createWeightFunction(recipe, elements, arithmetic);
  const product = createTensorCoreTile(recipe.tensorCore, {
    rows: tileQueries,
    columns,
    inner: blockKeys,
    aFormat: format,
    bFormat: format,
  });
  const valueNumbers = new Float64Array(blockKeys * columns);
  const exponents = new Float64Array(elements);
  const weightNumbers = new Float64Array(elements);
  const products = createBlockProducts(tileQueries * columns, arithmetic);
  const groups = groupRuns(choices, weightTechniques(recipe)).groups.map((group) =>
    createWeightGroup(group, choices, { recipe, scale, vDim, columns }),
  );
  const ownScores = scores.of('emulated', 'emulated');
  const exactScores = scores.of('exact', 'exact');
  // A path for each kind of scores.
  const paths = new Map<Float64Array, RunningMaximum>([[ownScores, path]]);
  for (const source of [exactScores, ...groups.map(({ emulated }) => scoresOf(emulated))])
    if (!paths.has(source)) paths.set(source, createRunningMaximum(recipe, path));
  let rows = 0;
  let logit = -Infinity;

  function scoresOf(emulated: EmulatedTechniques): Float64Array {
    const arithmeticOf = (technique: Technique) => (emulated.has(technique) ? 'emulated' : 'exact');
    return scores.of(arithmeticOf('qk-accumulate'), arithmeticOf('scale-subtract'));
  }

  /** The path of the scores of these techniques. */
  function pathOf(emulated: EmulatedTechniques): RunningMaximum {
    return paths.get(scoresOf(emulated)) ?? path;
  }

  function weightsOf(emulated: EmulatedTechniques) {
    const source = scoresOf(emulated);
    const { subtracted } = pathOf(emulated);
    const compute = emulated.has('scale-subtract') ? emulatedExponents : exactExponents;
    compute(exponents, source, subtracted, scale, { rows, columns: blockKeys });
    const count = rows * blockKeys;
    computeWeights(weightNumbers, exponents, count, emulated);
    return blockWeights(weightNumbers.subarray(0, count), format);
  }

  return {
    begin: (queries, count, sink) => {
      rows = count;
      logit = sink;
      scores.begin(queries, rows);
      for (const one of paths.values()) one.begin();
      largest.begin();
      for (const group of groups) group.begin(rows);
    },
    block: (block, keys, values) => {
      scores.step(keys, block);
      // The kernel's own is the first.
      for (const [source, one] of paths) one.step(source, rows, blockKeys);
      largest.step(exactScores, block.first, rows, blockKeys);
      padRows(product.b, values, vDim, columns);
      product.packB();
      decodeToFloat64(storageOf(formats[format], product.b), formats[format], valueNumbers);
      const blockValues = { values: valueNumbers, inner: blockKeys, columns, product };
      for (const group of groups) {
        const weights = weightsOf(group.emulated);
        product.a.fill(0);
        product.a.set(weights.patterns);
        product.packA();
        products.next(weights, blockValues, rows);
        group.step(pathOf(group.emulated), weights, blockValues, products);
      }
    },
    finish: () => {
      const { current } = path;
      const exactMaxima = pathOf(new Set()).current;
      const results = groups
        .flatMap((group) => group.finish(pathOf(group.emulated).current.slice(0, rows), logit))
        .sort((a, b) => a.run - b.run);
      const ofRows = (value: (row: number) => number): Float64Array =>
        Float64Array.from({ length: rows }, (_, row) => value(row));
      return {
        outputs: results.map(({ out }) => out),
        rowSums: results.map(({ rowSums }) => rowSums),
        lse: results.map(({ lse }) => lse),
        maxima: current.slice(0, rows),
        lags: ofRows((row) =>
          path.largest[row] === current[row] ? 0 : (path.largest[row] - current[row]) * scale.exact,
        ),
        largestKeys: largest.keys.slice(0, rows),
        largestExponents: ofRows((row) =>
          largest.keys[row] < 0
            ? -Infinity
            : (largest.scores[row] - exactMaxima[row]) * scale.exact + scale.offset,
        ),
      };
    },
  };
}
