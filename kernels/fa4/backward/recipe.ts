import type { Problem } from '../../../src/problem/index.js';
import type { BackwardRecipe } from '../../online-softmax/backward/recipe.js';
import { log2OfE } from '../../online-softmax/backward/row-values.js';
import type { OutFormat } from '../../online-softmax/units.js';
import { fa4TensorCore } from '../configuration.js';
import { hasScoreMod, kernelMask } from '../features.js';
import { type Fa4BackwardConfiguration, ownKernelsDim } from './configuration.js';

/** Elements of 16 bits that a thread loads at a time. */
const elementsOfLoad = 8;

/**
 * Columns that the threads of a row load at a time: the widest of 128, 64 and 32 that divides the head dimension,
 * filled up to a multiple of 32. Source: `gmem_k_block_size` in flash_bwd_preprocess.py.
 */
function columnsOfRow(vDim: number): number {
  const filled = 32 * Math.ceil(vDim / 32);
  return [128, 64].find((width) => filled % width === 0) ?? 32;
}

/**
 * FlashAttention-4's backward as a recipe. The scale of the exponents is an fp32 product of the scale and log2 e; with a softcap the scale is applied to the
 * scores before it, and the exponents have log2 e alone. Without a fixed order (`deterministic`), tiles of dQ, and dK and dV of the heads of a group, are
 * added as they come; with one, tiles in ascending order of keys, in descending order for causal and window masks, heads in ascending order. For head
 * dimension 256 dQ has a kernel of its own, and the heads of a group are one chain. Sources: flash_bwd_sm100.py (`softmax_scale_log2`, `spt`,
 * `_dq_semaphore_lock_value`, `epilogue_dK_or_dV_tma`), flash_bwd_postprocess.py, sm100_hd256_2cta_fmha_backward_dqkernel.py and …_dkdvkernel.py, and
 * interface.py of flash_attn/cute in Dao-AILab/flash-attention.
 */
export function fa4BackwardRecipe(
  problem: Problem,
  format: OutFormat,
  { architecture, ctas, deterministic, blockQueries, blockKeys }: Fa4BackwardConfiguration,
): BackwardRecipe {
  const { fround } = Math;
  const softmaxScale = fround(problem.scale);
  const isModified = hasScoreMod(problem);
  const { causal, local } = kernelMask(problem);
  const hasOwnKernels = problem.q.shape[problem.q.shape.length - 1] === ownKernelsDim;
  const order = (causal || local) && !hasOwnKernels ? 'descending' : 'ascending';
  return {
    kernel: 'fa4',
    format,
    tensorCore: fa4TensorCore(architecture, format),
    tiling: { queries: blockQueries, keys: blockKeys * ctas },
    chainOrder: 'ascending',
    productSum: {
      run: elementsOfLoad,
      width: columnsOfRow,
      within: 'column-by-column',
      across: 'nearest-first',
    },
    scoreChange: isModified
      ? { scale: softmaxScale, softcap: problem.softcap, fusesAddend: false }
      : null,
    weight: {
      scale: isModified ? log2OfE : fround(softmaxScale * log2OfE),
      isFused: true,
      unit: 'ex2.approx.ftz.f32',
    },
    softmaxScale,
    queryPass: hasOwnKernels ? 'own' : 'shared',
    queryOrder: deterministic ? order : 'any',
    queryBuffers: 1,
    groupOrder: hasOwnKernels ? 'chain' : deterministic ? 'ascending' : 'any',
    groupScale: 'sum',
  };
}
