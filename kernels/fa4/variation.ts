import type { ForwardPaths } from '../online-softmax/query-tiles.js';
import type { ForwardSteps } from '../online-softmax/steps.js';
import type { TileSetting } from './recipe.js';
import type { CombineSteps } from './split-combine.js';

/** What a variation of the forward may look at when it is about to change a tile's steps. */
export interface VariationContext extends TileSetting {
  /** The kernel's own steps. */
  readonly kernel: ForwardSteps;
  /** The problem's scale. */
  readonly softmaxScale: number;
  /**
   * Runs the other tile of queries of the same CTA with some steps changed, for what these see.
   * Without another tile nothing is run.
   */
  readonly runOtherTile: (steps: Partial<ForwardSteps>) => void;
}

/** What is done otherwise than in FlashAttention-4's forward. */
export interface ForwardVariation {
  /** Computed anew for every tile, so that what it keeps is the tile's. */
  readonly steps?: (context: VariationContext) => Partial<ForwardSteps>;
  readonly paths?: Partial<ForwardPaths>;
  readonly combine?: Partial<CombineSteps>;
  /** The scale of the exponents, from the kernel's and the problem's. */
  readonly scale?: (scale: number, softmaxScale: number) => number;
}
