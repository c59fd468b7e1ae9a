import {
  findTensorCoreArithmetic,
  specialFunctionEvidence,
  tensorCoreEvidence,
} from '../../src/hardware/index.js';
import type { Problem, ProblemShape } from '../../src/problem/index.js';
import type { Recipe } from '../online-softmax/recipe.js';
import { blockKeys, type FlashInferConfiguration, tileRows } from './configuration.js';
import { flashInferMerge } from './merge.js';

/**
 * FlashInfer's prefill (backend `fa2`): blocks from the first to the last, queries and heads of a group in the rows of one tile, every row
 * rescaled in every block by 2^(m·c − m′·c) as the assembler contracts it, the row sum as one more column of P·V. Sources:
 * include/flashinfer/attention/prefill.cuh and variants.cuh of FlashInfer 0.7.2; the contractions are those of ptxas 13.0.
 */
export function flashInferRecipe(
  problem: Problem,
  { keys, groupSize }: ProblemShape,
  { architecture, splits }: FlashInferConfiguration,
): Recipe {
  const { fround } = Math;
  const format = problem.q.format as 'bf16' | 'fp16';
  const partKeys = Math.ceil(keys / splits);
  const isSplit = splits > 1;
  return {
    kernel: 'flashinfer',
    format,
    outFormat: format,
    tensorCore: findTensorCoreArithmetic({ instruction: 'mma.sync', architecture, a: format }),
    tiling: {
      queries: tileRows / groupSize,
      keys: blockKeys,
      ...(isSplit ? { partKeys } : {}),
      tilesPerCta: 1,
      order: 'first-last',
      visits: 'diagonal',
    },
    softmaxScale: problem.scale,
    scoreChange: null,
    exponent: {
      scale: fround(fround(problem.scale) * fround(Math.LOG2E)),
      offset: 0,
      isFused: true,
    },
    exponential: { unit: 'ex2.approx.ftz.f32', polynomial: null },
    rescale: { threshold: 0, of: 'rows', exponent: 'as-weights', checksInfinity: true },
    rowSum: 'tensor-core',
    values: { sum: 'chain' },
    finish: {
      normalise: 'at-the-end',
      reciprocal: 'rcp.approx.ftz.f32',
      outFactor: 1,
      logSumExp: isSplit ? 'log2' : 'base-2',
      emptyLogSumExp: -Infinity,
    },
    split: isSplit ? flashInferMerge(splits, partKeys, format) : null,
  };
}

/** Evidence for the bits in a configuration, a line each. */
export function flashInferEvidence(
  { architecture }: FlashInferConfiguration,
  { tensorCore }: Recipe,
): string[] {
  return [
    `matrix products: ${tensorCoreEvidence(tensorCore)}`,
    `ex2, rcp, lg2: ${specialFunctionEvidence[architecture === 'sm_90' ? 'sm_90' : 'sm_100'].label}`,
    'fp32 add, mul and fma: IEEE 754',
    `order of operations: compiled kernel, FlashInfer 0.7.2 by nvcc 13.0${architecture === 'sm_90' ? '; outputs and LSEs of the bundled problems and of grouped heads equal those of an H200' : '; no GPU was compared'}`,
  ];
}
