import { specialFunctionEvidence, tensorCoreEvidence } from '../../src/hardware/index.js';
import { fa4TensorCore, type Fa4Architecture } from './forward-configuration.js';

const ptxConversions = 'cvt, fp32 add, mul and fma: sm_90 silicon';

/** What the forward model's bits rest on for an architecture, a line each. */
export function fa4Evidence(architecture: Fa4Architecture, format: 'bf16' | 'fp16'): string[] {
  const tensorCore = tensorCoreEvidence(fa4TensorCore(architecture, format));
  return [
    `matrix products: ${tensorCore}`,
    `ex2, rcp, lg2: ${specialFunctionEvidence[architecture].label}`,
    'software exp2: sm_90 silicon, every input (IEEE operations, the same everywhere)',
    ptxConversions,
    'order of operations: FlashAttention-4 sources; on sm_90 whole outputs equal silicon',
  ];
}
