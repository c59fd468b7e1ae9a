import { createAllocator } from '../../../../src/reuse.js';
import { warpRows } from '../../../online-softmax/units.js';
import {
  forwardRecipe,
  forwardTile,
} from '../../../online-softmax/webassembly/forward.generated.js';
import {
  forwardRecipeOf,
  instantiateForward,
  parameterTableBytes,
} from '../../../online-softmax/webassembly/module.js';
import { fa4Recipe, type TileSetting } from '../../recipe.js';
import { weightWords } from './row-arithmetic.js';

/** Columns of the smallest piece that `normalise` takes. */
export const factorColumns = 4;

/** The memory of one warp beside the module of the forward. */
export class RowMemory {
  readonly tile: number;
  readonly kernels: ReturnType<typeof instantiateForward>;
  readonly scores: Uint32Array;
  readonly weights: Uint32Array;
  /** By row: its first visible column, and the one after its last. */
  readonly visible: Int32Array;
  readonly maxima: Uint32Array;
  readonly sums: Uint32Array;
  readonly alphas: Uint32Array;
  readonly lse: Uint32Array;
  readonly factors: Uint32Array;

  constructor(setting: TileSetting) {
    const { configuration, format } = setting;
    const { blockKeys } = configuration;
    const words = weightWords(configuration, format);
    const rowWords = blockKeys + words + factorColumns + 16;
    this.kernels = instantiateForward();
    const { memory } = this.kernels;
    const allocator = createAllocator(memory, 4 * warpRows * rowWords + parameterTableBytes);
    /** Words of memory, `columns` for each row. */
    const place = (columns: number): Uint32Array => {
      const address = allocator.allocate(4 * warpRows * columns);
      return new Uint32Array(memory.buffer, address, warpRows * columns);
    };
    this.scores = place(blockKeys);
    this.weights = place(words);
    const visible = place(2);
    this.visible = new Int32Array(memory.buffer, visible.byteOffset, visible.length);
    this.maxima = place(1);
    this.sums = place(1);
    this.alphas = place(1);
    const rescales = place(1);
    this.lse = place(1);
    this.factors = place(factorColumns);
    const recipe = forwardRecipeOf(allocator, fa4Recipe(setting, 1), allocator.allocate(16));
    this.tile = allocator.struct(forwardTile).write({
      recipe: allocator.struct(forwardRecipe).write(recipe),
      keys: blockKeys,
      scores: this.scores.byteOffset,
      weights: this.weights.byteOffset,
      visible: this.visible.byteOffset,
      maxima: this.maxima.byteOffset,
      sums: this.sums.byteOffset,
      alphas: this.alphas.byteOffset,
      lse: this.lse.byteOffset,
      rescales: rescales.byteOffset,
      out: this.factors.byteOffset,
      // Nothing is rounded here.
      result: 0,
    });
  }
}
