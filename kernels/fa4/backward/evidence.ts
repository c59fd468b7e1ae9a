import { specialFunctionEvidence, tensorCoreEvidence } from '../../../src/hardware/index.js';
import type { FeatureName, Problem } from '../../../src/problem/index.js';
import { fa4TensorCore } from '../configuration.js';
import type { Fa4BackwardConfiguration } from './configuration.js';

/**
 * What FlashAttention-4's backward takes beside masks by position, without the gradients of their own that a bias and a
 * sink have. Source: flash_attn/cute/interface.py of Dao-AILab/flash-attention.
 */
export const fa4BackwardFeatures: readonly FeatureName[] = [
  'mask',
  'segments',
  'prefix',
  'sink',
  'sequences',
];

const source = (what: string, file: string): string =>
  `${what}: [model] read from flash_attn/cute/${file}; no Blackwell GPU was compared`;

/** What the bits of the backward rest on for a problem, a line each. */
export function fa4BackwardEvidence(
  problem: Problem,
  format: 'bf16' | 'fp16',
  { architecture, ctas, deterministic }: Fa4BackwardConfiguration,
): string[] {
  const tensorCore = tensorCoreEvidence(fa4TensorCore(architecture, format));
  return [
    `matrix products: ${tensorCore}`,
    `ex2: ${specialFunctionEvidence[architecture].label}`,
    'cvt, fp32 add, mul and fma: sm_90 silicon',
    'order of operations: FlashAttention-4 sources; on sm_90 whole gradients equal an H200 that ran it instruction by instruction (fixtures/silicon/sm_90/fa4-backward.json)',
    'order of additions in D: compiled by CuTe DSL 4.8.1 for sm_100a, as the sources have it',
    source(
      `blocks of 128 queries and ${128 * ctas} keys, chains of dQ over the keys of ${ctas === 1 ? 'one thread block' : 'two thread blocks'}`,
      'flash_bwd_sm100.py and interface.py',
    ),
    source('scale after the sums of dQ and dK', 'flash_bwd_postprocess.py and flash_bwd_sm100.py'),
    'adds in memory flush subnormal numbers: PTX ISA on cp.reduce.async.bulk',
    deterministic
      ? source('order of the adds in memory, by semaphores', 'flash_bwd_sm100.py')
      : 'adds in memory have no order: these are in ascending order, one of many that a GPU may take',
    ...(problem.softcap === null
      ? []
      : [
          'softcap by tanh.approx, its slope 1 − t² as one operation: CuTe DSL 4.8.1 for sm_100a contracts it',
        ]),
    ...(problem.sequences === undefined
      ? []
      : [source('blocks of packed sequences', 'flash_bwd_sm100.py and seqlen_info.py')]),
    ...(problem.mask === undefined && problem.segments === undefined
      ? []
      : [source('a mask of its own, of which every block is visited', 'mask.py')]),
  ];
}
