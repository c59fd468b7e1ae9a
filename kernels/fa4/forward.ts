import type { ScaleFactors, Tensor } from '../../src/formats/index.js';
import {
  problemShape,
  scaledTensors,
  type Problem,
  type ProblemShape,
} from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { createForward } from '../online-softmax/forward.js';
import { otherTileOfCta, queryTiles } from '../online-softmax/key-blocks.js';
import type {
  ForwardPaths,
  ForwardTileResult,
  ForwardTiles,
} from '../online-softmax/query-tiles.js';
import { recipeSteps, type ForwardSteps } from '../online-softmax/steps.js';
import {
  fa4Configuration,
  type Descale,
  type Fa4Configuration,
  type Fa4Overrides,
} from './configuration.js';
import { fa4Recipe, tileSetting, type TileSetting } from './recipe.js';
import type { CombineSteps } from './split-combine.js';

/** The factor of one (batch, kv head). @throws RequestError for factors that the kernel has no path for */
function factorOf(name: string, factors: ScaleFactors, kv: number, shape: ProblemShape): number {
  const [batches, heads, rows, columns] = [1, ...factors.shape].slice(-4);
  const isByHead = factors.name === 'descale' && rows === 1 && columns === 1;
  if (!isByHead || heads > shape.kvHeads)
    throw new RequestError(
      `${name}_${factors.name} differs within a head of K and V; the fa4 model takes a factor of each, as FlashAttention-4 does`,
    );
  const [batch, head] = [Math.floor(kv / shape.kvHeads), kv % shape.kvHeads];
  return factors.values[(batches === 1 ? 0 : batch) * heads + (heads === 1 ? 0 : head)];
}

/**
 * The descales of each (batch, kv head) of a problem; null where it has none. Source: `_load_effective_descales` in
 * flash_attn/cute/flash_fwd_sm100.py of Dao-AILab/flash-attention, which reads all three by batch and kv head.
 * @throws RequestError for factors by block
 */
function problemDescales(problem: Problem, shape: ProblemShape): Descale[] | null {
  if (scaledTensors.every((name) => problem[name].scales === undefined)) return null;
  const all = (name: 'q' | 'k' | 'v', kv: number) => {
    const factors = problem[name].scales?.factors ?? [];
    if (factors.length > 1)
      throw new RequestError(
        `${name} has ${factors.map((one) => `${name}_${one.name}`).join(' and ')}; the fa4 model takes ${name}_descale alone`,
      );
    return factors.length === 0 ? 1 : factorOf(name, factors[0], kv, shape);
  };
  return Array.from({ length: shape.batch * shape.kvHeads }, (_, kv) => ({
    q: all('q', kv),
    k: all('k', kv),
    v: all('v', kv),
  }));
}

/** The problem with its inputs as they are stored. */
function withoutScales(problem: Problem): Problem {
  const stored = ({ format, shape, data }: Tensor): Tensor => ({ format, shape, data });
  return { ...problem, q: stored(problem.q), k: stored(problem.k), v: stored(problem.v) };
}

/** Data that a variation of the forward may use when it is about to change a tile's steps. */
export interface VariationContext extends TileSetting {
  /** The kernel's own steps. */
  readonly kernel: ForwardSteps;
  /** The problem's scale. */
  readonly softmaxScale: number;
  /**
   * Runs the other tile of queries of the same CTA with some steps changed, so that these can
   * observe it. Without another tile nothing is run.
   */
  readonly runOtherTile: (steps: Partial<ForwardSteps>) => void;
}

/** Deviations from FlashAttention-4's forward. */
export interface ForwardVariation {
  /** Computed anew for every tile, so that its state is the tile's. */
  readonly steps?: (context: VariationContext) => Partial<ForwardSteps>;
  readonly paths?: Partial<ForwardPaths>;
  readonly combine?: Partial<CombineSteps>;
  /** The scale of the exponents, from the kernel's and the problem's. */
  readonly scale?: (scale: number, softmaxScale: number) => number;
}

/** The forward of one problem, tile by tile. */
export interface Fa4Forward extends ForwardTiles<ForwardTileResult> {
  readonly shape: ProblemShape;
  readonly configuration: Fa4Configuration;
}

/** Deviations of the forward from FlashAttention-4's, and its execution. */
export interface Fa4ForwardOptions {
  /** Choices that differ from FlashAttention-4's for this problem. */
  readonly configuration?: Fa4Overrides;
  /**
   * `plain`: instruction by instruction, much slower; default `webassembly`. A variation is always
   * computed step by step, with the matrix products in WebAssembly unless `plain` is asked for.
   */
  readonly execution?: 'webassembly' | 'plain';
  /** Steps that differ from FlashAttention-4's. */
  readonly variation?: ForwardVariation;
}

/**
 * FlashAttention-4's forward on a problem, bit for bit: the same blocks in the same order, the same
 * instructions with the same rounding. Memory beyond inputs and outputs is that of one tile.
 *
 * Evidence: with sm_90's tensor cores, the outputs and LSEs that an H200 computed by the same
 * operations on 16-bit inputs (fixtures/attention); `fa4Evidence` lists the differences on
 * Blackwell and for fp8.
 *
 * @throws RequestError for a problem that the kernel does not take and for a configuration out of
 *   range.
 */
export function createFa4Forward(problem: Problem, options: Fa4ForwardOptions = {}): Fa4Forward {
  const shape = problemShape(problem);
  const descales = problemDescales(problem, shape);
  return descales === null
    ? createPlainForward(problem, shape, options)
    : createDescaledForward(withoutScales(problem), shape, descales, options);
}

/** A forward for each set of descales: every tile belongs to one head, and takes the descales of its kv head. */
function createDescaledForward(
  stored: Problem,
  shape: ProblemShape,
  descales: readonly Descale[],
  options: Fa4ForwardOptions,
): Fa4Forward {
  const forwards = new Map<string, Fa4Forward>();
  const ofHead = descales.map((descale) => {
    const key = Object.values(descale).join();
    const configuration = { ...options.configuration, descale };
    const forward =
      forwards.get(key) ?? createPlainForward(stored, shape, { ...options, configuration });
    forwards.set(key, forward);
    return forward;
  });
  const plain = createPlainForward(stored, shape, options);
  const { heads, kvHeads, groupSize, queries } = shape;
  return {
    ...plain,
    runTile: (tile) => {
      const head = Math.floor(plain.rowsOf(tile).first / Math.max(1, queries));
      const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
      return ofHead[kv].runTile(tile);
    },
  };
}

function createPlainForward(
  problem: Problem,
  shape: ProblemShape,
  options: Fa4ForwardOptions,
): Fa4Forward {
  const configuration = fa4Configuration(problem, shape, options.configuration);
  const { variation, execution } = options;
  const own = tileSetting(problem, configuration);
  const setting: TileSetting = {
    ...own,
    scale: variation?.scale?.(own.scale, problem.scale) ?? own.scale,
  };
  const recipe = fa4Recipe(setting, problem.scale, variation?.combine);

  function variedSteps(tile: number): Partial<ForwardSteps> {
    const steps = variation?.steps?.({
      ...setting,
      kernel: recipeSteps(recipe),
      softmaxScale: problem.scale,
      runOtherTile: (changed) => {
        const tilesOfHead = queryTiles(problem, shape, recipe.tiling.queries);
        const other = otherTileOfCta(tile, tilesOfHead, recipe.tiling);
        if (other !== null) forward.runChanged(other, changed);
      },
    });
    return steps ?? {};
  }

  const forward = createForward(problem, shape, recipe, {
    execution,
    steps: variation === undefined ? null : variedSteps,
    paths: variation?.paths,
  });
  return { shape, configuration, ...forward };
}
