import { tileQueries } from '../forward-configuration.js';
import type { BlockProducts, BlockValues } from './block-products.js';
import { emulatedRescale, type BlockRescale } from './rescale.js';
import type { EmulatedTechniques } from './techniques.js';

/** The techniques that decide the sums O beyond those of the weights. */
export const outputSumTechniques = ['p-round', 'rescale', 'pv-accumulate'] as const;

/** The sums O of a tile over the blocks of keys, before they are divided. */
export interface OutputSums {
  /** [128 × columns], fp64. */
  readonly sums: Float64Array;
  readonly begin: (rows: number) => void;
  /** Takes the next block: rescales, unless it is the first, and adds P·V. */
  readonly step: (rescale: BlockRescale, products: BlockProducts, values: BlockValues) => void;
}

/** The sums of runs that emulate the same techniques up to here, with V padded to `columns`. */
export function createOutputSums(emulated: EmulatedTechniques, columns: number): OutputSums {
  const isRounded = emulated.has('p-round');
  const sums = new Float64Array(tileQueries * columns);
  let rows = 0;
  let isFirst = true;

  function rescaleSums({ path, exactAlpha }: BlockRescale): void {
    const isEmulated = emulated.has('rescale');
    for (let row = 0; row < rows; row++) {
      if (isEmulated && path.multiplies[row] === 0) continue;
      const alpha = isEmulated ? path.alpha[row] : exactAlpha[row];
      if (alpha === 1) continue;
      for (let i = row * columns; i < (row + 1) * columns; i++)
        sums[i] = isEmulated ? emulatedRescale(sums[i], alpha) : sums[i] * alpha;
    }
  }

  /**
   * sums += P·V by the tensor cores at the fp32 sums nearest to `sums` and the rounded weights, plus
   * what the differences from these contribute.
   */
  function accumulate(products: BlockProducts, { product }: BlockValues): void {
    const count = rows * columns;
    const { c } = product;
    c.fill(0);
    // A store to a Float32Array rounds to nearest even.
    c.set(sums.subarray(0, count));
    for (let i = 0; i < count; i++) sums[i] = sums[i] === c[i] ? 0 : sums[i] - c[i];
    product.multiplyAccumulate();
    for (let i = 0; i < count; i++) sums[i] = sums[i] === 0 ? c[i] : c[i] + sums[i];
    if (isRounded) return;
    const [unrounded, rounded] = [products.unrounded(), products.rounded()];
    for (let i = 0; i < count; i++) sums[i] += unrounded[i] - rounded[i];
  }

  return {
    sums,
    begin: (count) => {
      rows = count;
      isFirst = true;
      sums.fill(0);
    },
    step: (rescale, products, values) => {
      if (!isFirst) rescaleSums(rescale);
      isFirst = false;
      if (emulated.has('pv-accumulate')) accumulate(products, values);
      else {
        const added = isRounded ? products.rounded() : products.unrounded();
        for (let i = 0; i < rows * columns; i++) sums[i] += added[i];
      }
    },
  };
}
