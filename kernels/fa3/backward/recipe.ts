import { findTensorCoreArithmetic } from '../../../src/hardware/index.js';
import type { Problem, ProblemShape } from '../../../src/problem/index.js';
import type { BackwardRecipe } from '../../online-softmax/backward/recipe.js';
import type { OutFormat } from '../../online-softmax/units.js';
import {
  fa3BackwardMask,
  fa3BackwardTiling,
  fa3ColumnsOfRow,
  type Fa3BackwardConfiguration,
} from './configuration.js';

/** Elements of 16 bits that a thread loads at a time. */
const elementsOfLoad = 8;

/**
 * FlashAttention-3's backward on Hopper as a recipe: a thread block has a block of keys and goes through the queries from the first block
 * to the last; products by wgmma, P and dS rounded between them; tiles of dQ added in fp32 memory, in any order, or `deterministic` in
 * ascending order, with a causal mask in descending order; dK and dV of the heads of a group added likewise, from the first head to the
 * last, dK of each scaled before. Sources: hopper/mainloop_bwd_sm90_tma_gmma_ws.hpp (`store_dq`), hopper/epilogue_bwd.hpp,
 * hopper/flash_bwd_preprocess_kernel.h and hopper/flash_bwd_launch_template.h of Dao-AILab/flash-attention (commit 0251105a, August 2026),
 * and their compilation by nvcc 13.0.
 */
export function fa3BackwardRecipe(
  problem: Problem,
  shape: ProblemShape,
  format: OutFormat,
  { deterministic }: Fa3BackwardConfiguration,
): BackwardRecipe {
  const { fround } = Math;
  const softmaxScale = fround(problem.scale);
  const mask = fa3BackwardMask(problem, shape);
  return {
    kernel: 'fa3',
    format,
    tensorCore: findTensorCoreArithmetic({
      instruction: 'wgmma',
      architecture: 'sm_90',
      a: format,
    }),
    tiling: fa3BackwardTiling(shape, mask),
    chainOrder: 'ascending',
    productSum: {
      run: elementsOfLoad,
      width: fa3ColumnsOfRow,
      within: 'run-by-run',
      across: 'farthest-first',
    },
    scoreChange: null,
    weight: {
      scale: fround(softmaxScale * Math.LOG2E),
      isFused: true,
      unit: 'ex2.approx.ftz.f32',
    },
    softmaxScale,
    queryPass: 'shared',
    queryOrder: !deterministic ? 'any' : mask === 'causal' ? 'descending' : 'ascending',
    queryBuffers: 1,
    groupOrder: deterministic ? 'ascending' : 'any',
    groupScale: 'each',
  };
}
