import { multiplyFloat32 } from '../../../src/arith/index.js';
import {
  convertFloat32Bits,
  decodeToFloat32,
  formats,
  storageOf,
} from '../../../src/formats/index.js';
import { lazily } from '../../../src/reuse.js';
import type { Problem, ProblemShape } from '../../../src/problem/index.js';
import { createHeadPasses, type BackwardTensors, type HeadPasses } from './head-pass.js';
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
  const { groupSize, queries, keys, qkDim, vDim } = shape;
  const { format, softmaxScale } = recipe;
  const create = execution === 'plain' ? createPlainKeyBlock : createKeyBlock;
  const dimensions = { qkDim, vDim };
  const hasOwnPass = recipe.queryPass === 'own';
  // Made when needed: not where other threads do the work.
  const work = lazily<KeyBlockWork>(() => create(recipe, dimensions));
  const passes = createHeadPasses(problem, shape, recipe, tensors, { work, diagonal });
  const queryWork = lazily<KeyBlockWork>(() => create(recipe, dimensions, softmaxScale));
  const queryPasses = hasOwnPass
    ? createHeadPasses(problem, shape, recipe, tensors, { work: queryWork, diagonal })
    : null;

  return {
    recipe,
    shape,
    passes,
    run: (kvHead) => {
      const dq = new Float32Array(groupSize * queries * qkDim);
      const dk = new Float32Array(keys * qkDim);
      const dv = new Float32Array(keys * vDim);
      const isOneSum = groupSize === 1 || recipe.groupOrder === 'chain';
      const ofGroup = headsOfGroup(kvHead, shape);
      const placeOf = (i: number, { first }: Stretch): number => (i * queries + first) * qkDim;
      const isRounded = recipe.groupOrder === 'rounded' && groupSize > 1;
      const factors = keyFactors(recipe, groupSize);
      const addKeys = (
        { first, count }: Stretch,
        sums: { readonly dk: Float32Array; readonly dv: Float32Array },
      ): void => {
        const ofKeys = dk.subarray(first * qkDim, (first + count) * qkDim);
        const ofValues = dv.subarray(first * vDim, (first + count) * vDim);
        if (isOneSum) {
          ofKeys.set(sums.dk);
          ofValues.set(sums.dv);
        } else if (isRounded) {
          addRounded(ofKeys, scaledPatterns(sums.dk, factors.each, format), format);
          addRounded(ofValues, scaledPatterns(sums.dv, 1, format), format);
        } else {
          addTile(ofKeys, scaledSums(sums.dk, factors.each));
          addTile(ofValues, sums.dv);
        }
      };
      const buffers = Array.from({ length: recipe.queryBuffers - 1 }, () =>
        lazily(() => new Float32Array(dq.length)),
      );
      const used = new Set<number>();
      const bufferOf = (keyBlock: number): Float32Array => {
        const buffer = keyBlock % recipe.queryBuffers;
        if (buffer === 0) return dq;
        used.add(buffer);
        return buffers[buffer - 1]();
      };
      ofGroup.forEach((head, i) =>
        queryPasses?.runQueries(head, (rows, tile) => {
          dq.set(tile, placeOf(i, rows));
        }),
      );
      if (recipe.groupOrder === 'chain') passes.run(ofGroup, { keys: addKeys });
      else
        ofGroup.forEach((head, i) => {
          const tile = (rows: Stretch, sums: Float32Array, keyBlock: number): void => {
            const at = placeOf(i, rows);
            addTile(bufferOf(keyBlock).subarray(at, at + sums.length), sums);
          };
          passes.run([head], { ...(hasOwnPass ? {} : { tile }), keys: addKeys });
        });
      for (const buffer of [...used].sort((a, b) => a - b)) addSums(dq, buffers[buffer - 1]());
      return {
        dq: scaledPatterns(dq, hasOwnPass ? 1 : softmaxScale, format),
        dk: scaledPatterns(dk, factors.sum, format),
        dv: scaledPatterns(dv, 1, format),
      };
    },
  };
}
