import { specialFunctionEvidence, tensorCoreEvidence } from '../../../src/hardware/index.js';
import type { FeatureName, Problem } from '../../../src/problem/index.js';
import { fa4TensorCore } from '../configuration.js';
import { hasMaskMod } from '../features.js';
import { type Fa4BackwardConfiguration, ownKernelsDim } from './configuration.js';

/**
 * Features that FlashAttention-4's backward takes beside masks by position, without gradients for bias and sink.
 * Source: flash_attn/cute/interface.py of Dao-AILab/flash-attention.
 */
export const fa4BackwardFeatures: readonly FeatureName[] = [
  'mask',
  'segments',
  'prefix',
  'sink',
  'sequences',
];

/**
 * Evidence for one part: the bits of the compiled kernel, compared with the model's on random problems, or else the sources,
 * where the compiled kernel was not run. The comparisons: docs/reference/emulation.md, "FlashAttention-4's own PTX".
 */
function evidenceOf(isCompared: boolean, what: string, file: string): string {
  return isCompared
    ? `${what}: the bits of the compiled kernel`
    : `${what}: [model] read from flash_attn/cute/${file}; no kernel was compared`;
}

/** Evidence for the bits of the backward on a problem, a line each. */
export function fa4BackwardEvidence(
  problem: Problem,
  format: 'bf16' | 'fp16',
  { architecture, ctas, deterministic }: Fa4BackwardConfiguration,
): string[] {
  const tensorCore = tensorCoreEvidence(fa4TensorCore(architecture, format));
  const isCompared =
    architecture === 'sm_100' && !hasMaskMod(problem) && problem.sink === undefined;
  const of = (what: string, file: string): string => evidenceOf(isCompared, what, file);
  const hasOwnKernels = problem.q.shape[problem.q.shape.length - 1] === ownKernelsDim;
  const order = isCompared ? 'the bits of the compiled kernel' : 'FlashAttention-4 sources';
  return [
    `matrix products: ${tensorCore}`,
    `ex2: ${specialFunctionEvidence[architecture].label}`,
    'cvt, fp32 add, mul and fma: sm_90 silicon',
    hasOwnKernels
      ? `order of operations: ${order}`
      : `order of operations: ${order}; on sm_90 whole gradients equal an H200 that ran it instruction by instruction (fixtures/silicon/sm_90/fa4-backward.json)`,
    'order of additions in D: compiled by CuTe DSL 4.8.1 for sm_100a, as the sources have it',
    ...(hasOwnKernels
      ? [
          of(
            'dQ in a kernel of its own, a chain over all keys of a dS that is scaled first; dK and dV chains over the heads of a group',
            'sm100_hd256_2cta_fmha_backward.py',
          ),
        ]
      : [
          of(
            `blocks of 128 queries and ${128 * ctas} keys, chains of dQ over the keys of ${ctas === 1 ? 'one thread block' : 'two thread blocks'}`,
            'flash_bwd_sm100.py and interface.py',
          ),
          of(
            'scale after the sums of dQ and dK',
            'flash_bwd_postprocess.py and flash_bwd_sm100.py',
          ),
          'adds in memory flush subnormal numbers: PTX ISA on cp.reduce.async.bulk',
          deterministic
            ? of('order of the adds in memory, by semaphores', 'flash_bwd_sm100.py')
            : 'adds in memory have no order: these are in ascending order, one of many that a GPU may take',
        ]),
    ...(problem.softcap === null
      ? []
      : [
          'softcap by tanh.approx, its slope 1 − t² as one operation: ptxas 13.4.59 contracts it for sm_100a',
        ]),
    ...(problem.sequences === undefined
      ? []
      : [of('blocks of packed sequences', 'flash_bwd_sm100.py and seqlen_info.py')]),
    ...(hasMaskMod(problem)
      ? [of('a mask of its own, of which every block is visited', 'mask.py')]
      : []),
  ];
}
