import { decodeToFloat64, formats, storageOf } from '../../../src/formats/index.js';
import { createTensorCoreTile } from '../../../src/hardware/index.js';
import type { KeyBlock } from '../forward-blocks.js';
import { fa4TensorCore, tileQueries, type Fa4Configuration } from '../forward-configuration.js';
import { blockWeights } from './block-weights.js';
import { emulatedExponents, exactExponents, type ExponentScale } from './exponents.js';
import { createLargestWeights } from './largest-weight.js';
import { createRunningMaximum } from './running-maximum.js';
import { techniques, type EmulatedTechniques, type Technique } from './techniques.js';
import { createTileRun, type TileRun } from './tile-run.js';
import { createTileScores, padRows } from './tile-scores.js';
import { createWeightFunction } from './weights.js';

/** The results of a tile of queries. */
export interface AttributedTileResult {
  /** For each run the output values, [rows × vDim]. */
  readonly outputs: readonly Float64Array[];
  /** For each run the row sums l, [rows], of weights relative to the maximum in use. */
  readonly rowSums: readonly Float64Array[];
  /** [rows]: the maximum in use at the end, a raw score. */
  readonly maxima: Float64Array;
  /** [rows]: log2 of the factor by which the row's true maximum exceeds it; 0 where it does not lag. */
  readonly lags: Float64Array;
  /** [rows]: the key with the largest weight, −1 for a row without keys. */
  readonly largestKeys: Int32Array;
  /** [rows]: log2 of that weight in units of which l is the sum. */
  readonly largestExponents: Float64Array;
}

/** One tile of queries on its way through the blocks of keys; methods as those of `ForwardTile`. */
export interface AttributedTile {
  readonly begin: (queries: Uint16Array, rows: number) => void;
  readonly block: (block: KeyBlock, keys: Uint16Array, values: Uint16Array) => void;
  readonly finish: () => AttributedTileResult;
}

/** The techniques that decide the weights; runs that agree in them share their weights. */
const weightTechniques: readonly Technique[] = techniques.slice(0, techniques.indexOf('p-round'));

function groupByWeights(runs: readonly TileRun[]): TileRun[][] {
  const groups = new Map<string, TileRun[]>();
  for (const run of runs) {
    const key = weightTechniques.filter((name) => run.emulated.has(name)).join();
    groups.set(key, [...(groups.get(key) ?? []), run]);
  }
  return [...groups.values()];
}

/**
 * The forward on one tile, once for each choice of emulated techniques. Scores and path are computed
 * once, weights once for each choice of what they depend on. Memory is that of a tile for each run.
 *
 * @param softmaxScale the problem's scale
 */
export function createAttributedTile(
  configuration: Fa4Configuration,
  format: 'bf16' | 'fp16',
  { qkDim, vDim }: { readonly qkDim: number; readonly vDim: number },
  softmaxScale: number,
  choices: readonly EmulatedTechniques[],
): AttributedTile {
  const { architecture, blockKeys, maxOffset } = configuration;
  const columns = 8 * Math.ceil(vDim / 8);
  const exactScale = softmaxScale * Math.LOG2E;
  const scale: ExponentScale = {
    exact: exactScale,
    rounded: Math.fround(exactScale),
    offset: Math.fround(maxOffset),
  };
  const elements = tileQueries * blockKeys;
  const scores = createTileScores(configuration, format, qkDim);
  const path = createRunningMaximum(configuration, scale.rounded);
  const largest = createLargestWeights();
  const computeWeights = createWeightFunction(configuration, elements);
  const product = createTensorCoreTile(fa4TensorCore(architecture, format), {
    ...{ rows: tileQueries, columns, inner: blockKeys, aFormat: format, bFormat: format },
  });
  const valueNumbers = new Float64Array(blockKeys * columns);
  const exponents = new Float64Array(elements);
  const weightNumbers = new Float64Array(elements);
  const exactAlpha = new Float64Array(tileQueries);
  const runs = choices.map((emulated) =>
    createTileRun(emulated, format, blockKeys, { vDim, columns }),
  );
  const groups = groupByWeights(runs);
  let rows = 0;

  function weightsOf(emulated: EmulatedTechniques) {
    const source = emulated.has('qk-accumulate') ? scores.emulated : scores.exact;
    const compute = emulated.has('scale-subtract') ? emulatedExponents : exactExponents;
    compute(exponents, source, path.subtracted, scale, rows, blockKeys);
    const count = rows * blockKeys;
    computeWeights(weightNumbers, exponents, count, emulated);
    return blockWeights(weightNumbers.subarray(0, count), format);
  }

  return {
    begin: (queries, count) => {
      rows = count;
      scores.begin(queries, rows);
      path.begin();
      largest.begin();
      for (const run of runs) run.begin(rows);
    },
    block: (block, keys, values) => {
      scores.step(keys, block);
      path.step(scores.emulated, rows, blockKeys);
      largest.step(scores.exact, block.first, rows, blockKeys);
      for (let row = 0; row < rows; row++)
        exactAlpha[row] = 2 ** ((path.before[row] - path.subtracted[row]) * scale.exact);
      padRows(product.b, values, vDim, columns);
      product.packB();
      decodeToFloat64(storageOf(formats[format], product.b), formats[format], valueNumbers);
      const blockValues = { values: valueNumbers, inner: blockKeys, columns, product };
      for (const group of groups) {
        const weights = weightsOf(group[0].emulated);
        product.a.fill(0);
        product.a.set(weights.patterns);
        product.packA();
        for (const run of group) run.step({ path, exactAlpha, weights, values: blockValues });
      }
    },
    finish: () => {
      const results = runs.map((run) => run.finish());
      const ofRows = (value: (row: number) => number): Float64Array =>
        Float64Array.from({ length: rows }, (_, row) => value(row));
      const { current } = path;
      return {
        outputs: results.map(({ out }) => out),
        rowSums: results.map(({ rowSums }) => rowSums),
        maxima: current.slice(0, rows),
        lags: ofRows((row) =>
          path.largest[row] === current[row] ? 0 : (path.largest[row] - current[row]) * scale.exact,
        ),
        largestKeys: largest.keys.slice(0, rows),
        largestExponents: ofRows((row) =>
          largest.keys[row] < 0
            ? -Infinity
            : (largest.scores[row] - current[row]) * scale.exact + scale.offset,
        ),
      };
    },
  };
}
