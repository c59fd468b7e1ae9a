import { findTensorCoreArithmetic } from '../../../src/hardware/index.js';
import type { Problem, ProblemShape } from '../../../src/problem/index.js';
import type { BackwardRecipe } from '../../online-softmax/backward/recipe.js';
import type { OutFormat } from '../../online-softmax/units.js';
import {
  columnsOfRow,
  fa2BackwardTiling,
  queryBuffers,
  type Fa2BackwardConfiguration,
} from './configuration.js';

/** Elements of 16 bits that a thread loads at a time. */
const elementsOfLoad = 8;

/**
 * FlashAttention-2's backward as a recipe: a thread block has a block of keys and goes through the queries from the last block to the
 * first; P by the build's exponentials; tiles of dQ by atomic adds, in any order, or `deterministic` in ascending order in a sum for
 * each thread block, which a last kernel adds up; dK and dV of every query head rounded, those of a group added afterwards (at::sum).
 * Sources: csrc/flash_attn/src/flash_bwd_kernel.h, flash_bwd_preprocess_kernel.h and flash_api.cpp of Dao-AILab/flash-attention; the
 * bits of the kernel that nvcc 13.0 compiles from them (docs/reference/emulation.md).
 */
export function fa2BackwardRecipe(
  problem: Problem,
  shape: ProblemShape,
  format: OutFormat,
  configuration: Fa2BackwardConfiguration,
): BackwardRecipe {
  const { fround } = Math;
  const { architecture, build, deterministic } = configuration;
  const isFast = build === 'flash-attn';
  const softmaxScale = fround(problem.scale);
  return {
    kernel: 'fa2',
    format,
    tensorCore: findTensorCoreArithmetic({ instruction: 'mma.sync', architecture, a: format }),
    tiling: fa2BackwardTiling(shape.qkDim, architecture),
    chainOrder: 'descending',
    productSum: {
      run: elementsOfLoad,
      width: columnsOfRow,
      within: 'run-by-run',
      across: 'farthest-first',
    },
    scoreChange: null,
    weight: {
      scale: fround(softmaxScale * Math.LOG2E),
      isFused: isFast,
      unit: isFast ? 'ex2.approx.ftz.f32' : 'ex2.approx.f32',
    },
    softmaxScale,
    queryPass: 'shared',
    queryOrder: deterministic ? 'ascending' : 'any',
    queryBuffers: queryBuffers(shape, problem, configuration),
    groupOrder: 'rounded',
    groupScale: 'each',
  };
}
