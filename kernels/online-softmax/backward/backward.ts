import { multiplyFloat32 } from '../../../src/arith/index.js';
import {
  convertFloat32Bits,
  decodeToFloat32,
  formats,
  storageOf,
} from '../../../src/formats/index.js';
import { lazily } from '../../../src/reuse.js';
import type { Problem, ProblemShape } from '../../../src/problem/index.js';
import {
  createHeadPasses,
  type BackwardTensors,
  type HeadPasses,
  type PassResults,
} from './head-pass.js';
import type { Stretch } from './blocks.js';
import type { KeyBlockWork } from './key-block.js';
import { createPlainKeyBlock } from './plain-key-block.js';
import { keyFactors, type BackwardRecipe } from './recipe.js';
import { addTile } from './tile-sums.js';
import { createKeyBlock } from './webassembly/webassembly-key-block.js';

/** Options of a backward's run. */
export interface BackwardOptions {
  /** `plain`: instruction by instruction, much slower; default `webassembly`. */
  readonly execution?: 'webassembly' | 'plain';
  /** Whether causal and window masks decide which blocks meet; default true. Otherwise all blocks of a sequence do. */
  readonly diagonal?: boolean;
}

/** The gradients of one key/value head and its query heads, as bit patterns in the format of the inputs. */
export interface HeadGroupGradients {
  /** [groupSize · queries × qkDim] */
  readonly dq: Uint16Array;
  /** [keys × qkDim] and [keys × vDim] */
  readonly dk: Uint16Array;
  readonly dv: Uint16Array;
}

/** The backward of a recipe on a problem. */
export interface Backward {
  readonly recipe: BackwardRecipe;
  readonly shape: ProblemShape;
  readonly passes: HeadPasses;
  /**
   * The gradients of a key/value head, counted over [batch · kv heads]; sums without a fixed order are added in
   * ascending order.
   */
  readonly run: (kvHead: number) => HeadGroupGradients;
}

/** fp32 sums times a factor, each product rounded to fp32. */
export function scaledSums(sums: Float32Array, factor: number): Float32Array {
  return factor === 1 ? sums : sums.map((sum) => multiplyFloat32(sum, factor));
}

/** fp32 sums times a factor, each product rounded to fp32 and then to the format, as bit patterns. */
export function scaledPatterns(
  sums: Float32Array,
  factor: number,
  format: BackwardRecipe['format'],
): Uint16Array {
  const scaled = Float32Array.from(scaledSums(sums, factor));
  const patterns = new Uint16Array(sums.length);
  convertFloat32Bits(formats[format], new Uint32Array(scaled.buffer), patterns);
  return patterns;
}

/** Adds fp32 numbers to fp32 sums, each sum rounded to nearest even. */
function addSums(sums: Float32Array, addends: ArrayLike<number>): void {
  for (let i = 0; i < sums.length; i++) sums[i] += addends[i];
}

/** The same for numbers as bit patterns. */
function addRounded(
  sums: Float32Array,
  patterns: Uint16Array,
  format: BackwardRecipe['format'],
): void {
  addSums(sums, decodeToFloat32(storageOf(formats[format], patterns), formats[format]));
}

/** The query heads of a key/value head, both counted over the batch. */
export function headsOfGroup(
  kvHead: number,
  { heads, kvHeads, groupSize }: ProblemShape,
): readonly number[] {
  const first = Math.floor(kvHead / kvHeads) * heads + (kvHead % kvHeads) * groupSize;
  return Array.from({ length: groupSize }, (_, i) => first + i);
}

/** The sums of the gradients of one key/value head and its query heads. */
class GroupSums {
  readonly #recipe: BackwardRecipe;
  readonly #shape: ProblemShape;
  readonly #dq: Float32Array;
  readonly #dk: Float32Array;
  readonly #dv: Float32Array;
  readonly #factors: ReturnType<typeof keyFactors>;
  /** Buffers of dQ beside the first, and those that are in use. */
  readonly #buffers: readonly (() => Float32Array)[];
  readonly #used = new Set<number>();

  constructor(recipe: BackwardRecipe, shape: ProblemShape) {
    const { groupSize, queries, keys, qkDim, vDim } = shape;
    this.#recipe = recipe;
    this.#shape = shape;
    this.#dq = new Float32Array(groupSize * queries * qkDim);
    this.#dk = new Float32Array(keys * qkDim);
    this.#dv = new Float32Array(keys * vDim);
    this.#factors = keyFactors(recipe, groupSize);
    this.#buffers = Array.from({ length: recipe.queryBuffers - 1 }, () =>
      lazily(() => new Float32Array(this.#dq.length)),
    );
  }

  /** Puts a whole dQ of queries of the group's head `i`. */
  setQueries(i: number, rows: Stretch, tile: Float32Array): void {
    this.#dq.set(tile, this.#placeOf(i, rows));
  }

  /** Adds a block of keys to the dQ of queries of the group's head `i`. */
  addQueries(i: number, rows: Stretch, tile: Float32Array, keyBlock: number): void {
    const at = this.#placeOf(i, rows);
    addTile(this.#bufferOf(keyBlock).subarray(at, at + tile.length), tile);
  }

  /** Adds the dK and dV of one head, or of the whole group where that is one sum. */
  addKeys(
    { first, count }: Stretch,
    { dk, dv }: { readonly dk: Float32Array; readonly dv: Float32Array },
  ): void {
    const { groupSize, qkDim, vDim } = this.#shape;
    const { groupOrder, format } = this.#recipe;
    const { each } = this.#factors;
    const ofKeys = this.#dk.subarray(first * qkDim, (first + count) * qkDim);
    const ofValues = this.#dv.subarray(first * vDim, (first + count) * vDim);
    if (groupSize === 1 || groupOrder === 'chain') {
      ofKeys.set(dk);
      ofValues.set(dv);
    } else if (groupOrder === 'rounded') {
      addRounded(ofKeys, scaledPatterns(dk, each, format), format);
      addRounded(ofValues, scaledPatterns(dv, 1, format), format);
    } else {
      addTile(ofKeys, scaledSums(dk, each));
      addTile(ofValues, dv);
    }
  }

  finish(): HeadGroupGradients {
    const { queryPass, softmaxScale, format } = this.#recipe;
    const dq = this.#dq;
    for (const buffer of [...this.#used].sort((a, b) => a - b))
      addSums(dq, this.#buffers[buffer - 1]());
    return {
      dq: scaledPatterns(dq, queryPass === 'own' ? 1 : softmaxScale, format),
      dk: scaledPatterns(this.#dk, this.#factors.sum, format),
      dv: scaledPatterns(this.#dv, 1, format),
    };
  }

  #placeOf(i: number, { first }: Stretch): number {
    return (i * this.#shape.queries + first) * this.#shape.qkDim;
  }

  #bufferOf(keyBlock: number): Float32Array {
    const buffer = keyBlock % this.#recipe.queryBuffers;
    if (buffer === 0) return this.#dq;
    this.#used.add(buffer);
    return this.#buffers[buffer - 1]();
  }
}

/**
 * The backward of a recipe on a problem, bit for bit: the same blocks in the same order, the same instructions with
 * the same rounding. Memory beyond inputs and gradients is that of one key/value head's sums and of one pair of blocks.
 */
export function createBackward(
  problem: Problem,
  shape: ProblemShape,
  recipe: BackwardRecipe,
  tensors: BackwardTensors,
  { execution = 'webassembly', diagonal = true }: BackwardOptions = {},
): Backward {
  const { qkDim, vDim } = shape;
  const create = execution === 'plain' ? createPlainKeyBlock : createKeyBlock;
  const dimensions = { qkDim, vDim };
  const hasOwnPass = recipe.queryPass === 'own';
  // Made when needed: not where other threads do the work.
  const work = lazily<KeyBlockWork>(() => create(recipe, dimensions));
  const passes = createHeadPasses(problem, shape, recipe, tensors, { work, diagonal });
  const queryWork = lazily<KeyBlockWork>(() => create(recipe, dimensions, recipe.softmaxScale));
  const queryPasses = hasOwnPass
    ? createHeadPasses(problem, shape, recipe, tensors, { work: queryWork, diagonal })
    : null;
  return {
    recipe,
    shape,
    passes,
    run: (kvHead) => {
      const sums = new GroupSums(recipe, shape);
      const ofGroup = headsOfGroup(kvHead, shape);
      const keys: PassResults['keys'] = (block, ofBlock) => sums.addKeys(block, ofBlock);
      ofGroup.forEach((head, i) =>
        queryPasses?.runQueries(head, (rows, tile) => sums.setQueries(i, rows, tile)),
      );
      if (recipe.groupOrder === 'chain') passes.run(ofGroup, { keys });
      else
        ofGroup.forEach((head, i) => {
          const tile: PassResults['tile'] = (rows, ofRows, keyBlock) =>
            sums.addQueries(i, rows, ofRows, keyBlock);
          passes.run([head], { ...(hasOwnPass ? {} : { tile }), keys });
        });
      return sums.finish();
    },
  };
}
