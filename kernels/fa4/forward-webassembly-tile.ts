import { seesAKey } from './forward-blocks.js';
import { fa4TensorCore, type Fa4Configuration } from './forward-configuration.js';
import { createForwardEngine, type TileDimensions } from './forward-engine.js';
import { blockMmas, type ForwardTile } from './forward-tile.js';

/** Rows of `dim` elements into rows of `stride`; the elements beyond `dim` are left as they are. */
function copyRows(source: Uint16Array, dim: number, target: Uint16Array, stride: number): void {
  if (dim === stride) target.set(source);
  else
    for (let row = 0; row * dim < source.length; row++)
      target.set(source.subarray(row * dim, (row + 1) * dim), row * stride);
}

/**
 * FlashAttention-4's forward on one tile in WebAssembly: for all inputs the bits of
 * `createPlainForwardTile`. Each call makes an instance with the memory of one tile, some megabytes;
 * make one per thread and use it for many tiles.
 */
export function createForwardTile(
  configuration: Fa4Configuration,
  format: 'bf16' | 'fp16',
  dimensions: TileDimensions,
  scale: number,
): ForwardTile {
  const { qkDim, vDim } = dimensions;
  const { blockKeys } = configuration;
  const { productsPerSum } = fa4TensorCore(configuration.architecture, format);
  const engine = createForwardEngine(configuration, format, dimensions, scale);
  const { inner, outColumns, polynomialColumns } = engine;
  let rows = 0;
  let blocks = 0;
  let hasSeenKeys = false;
  return {
    begin: (queries, count) => {
      rows = count;
      blocks = 0;
      hasSeenKeys = false;
      copyRows(queries, qkDim, engine.queries, inner);
      engine.begin(rows);
    },
    block: (block, keys, values) => {
      if (block.keys < blockKeys) [engine.keys, engine.values].forEach((view) => view.fill(0));
      copyRows(keys, qkDim, engine.keys, inner);
      copyRows(values, vDim, engine.values, outColumns);
      block.visible.forEach(({ begin, end }, row) => engine.visible.set([begin, end], 2 * row));
      engine.packBlock();
      engine.scores();
      engine.softmax(blocks === 0, hasSeenKeys);
      if (blocks > 0) engine.rescale(hasSeenKeys);
      engine.output();
      blocks++;
      hasSeenKeys ||= seesAKey(block);
    },
    finish: () => {
      engine.finish();
      const out = new Uint16Array(rows * vDim);
      for (let row = 0; row < rows; row++)
        out.set(engine.result.subarray(row * outColumns, row * outColumns + vDim), row * vDim);
      const [rowRescales, rowRescalesSkipped, warpRescales, warpRescalesSkipped] = engine.counters;
      return {
        out,
        lse: engine.lse.slice(0, rows),
        rescales: engine.rescales.slice(0, rows),
        counters: {
          ...{ rowRescales: rowRescales!, rowRescalesSkipped: rowRescalesSkipped! },
          ...{ warpRescales: warpRescales!, warpRescalesSkipped: warpRescalesSkipped! },
          polynomialLanes: blocks * rows * polynomialColumns,
          hardwareLanes: blocks * rows * (blockKeys - polynomialColumns),
          mmas: blocks * blockMmas(inner, blockKeys, vDim, productsPerSum),
        },
      };
    },
  };
}
