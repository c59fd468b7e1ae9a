import { formats, patternsOf } from '../../../src/formats/index.js';
import {
  problemShape,
  type Problem,
  type ProblemShape,
  type Tensor,
} from '../../../src/problem.js';
import { keyBlocks, queryTiles } from '../forward-blocks.js';
import { fa4Configuration, type Fa4Configuration } from '../forward-configuration.js';
import { createAttributedTile, type AttributedTileResult } from './attributed-tile.js';
import type { EmulatedTechniques } from './techniques.js';

/** The forward of one problem under several choices of emulated techniques, in tiles. */
export interface AttributedForward {
  readonly shape: ProblemShape;
  readonly configuration: Fa4Configuration;
  readonly tiles: number;
  /** Where the rows of a tile lie among all rows [batch · heads · queries]. */
  readonly rowsOf: (tile: number) => { readonly first: number; readonly rows: number };
  readonly runTile: (tile: number) => AttributedTileResult;
}

/**
 * FlashAttention-4's forward with each technique either as the GPU does it or exact, for each of the
 * choices: with all emulated the outputs of `createFa4Forward` bit for bit, with none exact attention
 * to about 1e-13 of Σ p|v|. What a technique is, and what each combination means, is told in
 * techniques.ts. Memory beyond inputs is that of one tile for each choice.
 *
 * @param choices for each run the techniques that are emulated
 * @throws RequestError for a problem that the kernel does not take and for a configuration out of
 * range.
 */
export function createAttributedForward(
  problem: Problem,
  choices: readonly EmulatedTechniques[],
  overrides: Partial<Fa4Configuration> = {},
): AttributedForward {
  const shape = problemShape(problem);
  const configuration = fa4Configuration(problem, shape, overrides);
  const { heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const format = problem.q.format === 'bf16' ? 'bf16' : 'fp16';
  const engine = createAttributedTile(
    configuration,
    format,
    { qkDim, vDim },
    problem.scale,
    choices,
  );
  const tilesOfHead = queryTiles(shape);
  const patterns = ({ data }: Tensor): Uint16Array =>
    patternsOf(data, formats[format]) as Uint16Array;
  const [q, k, v] = [patterns(problem.q), patterns(problem.k), patterns(problem.v)];
  const rowsFrom = (data: Uint16Array, first: number, rows: number, dim: number): Uint16Array =>
    data.subarray(first * dim, (first + rows) * dim);
  const place = (tile: number) => ({
    head: Math.floor(tile / tilesOfHead.length),
    queryTile: tilesOfHead[tile % tilesOfHead.length],
  });

  return {
    shape,
    configuration,
    tiles: shape.batch * heads * tilesOfHead.length,
    rowsOf: (tile) => {
      const { head, queryTile } = place(tile);
      return { first: head * queries + queryTile.first, rows: queryTile.rows };
    },
    runTile: (tile) => {
      const { head, queryTile } = place(tile);
      const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
      const { first, rows } = queryTile;
      engine.begin(rowsFrom(q, head * queries + first, rows, qkDim), rows);
      for (const block of keyBlocks(problem, shape, queryTile, configuration.blockKeys)) {
        const row = kvHead * keys + block.first;
        engine.block(
          block,
          rowsFrom(k, row, block.keys, qkDim),
          rowsFrom(v, row, block.keys, vDim),
        );
      }
      return engine.finish();
    },
  };
}
