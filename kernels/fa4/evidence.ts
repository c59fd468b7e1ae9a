import { specialFunctionEvidence, tensorCoreEvidence } from '../../src/hardware/index.js';
import { fa4TensorCore, type Fa4Architecture } from './configuration.js';
import { fa4Formats, type Fa4Format } from './formats.js';

const ptxConversions = 'cvt, fp32 add, mul and fma: sm_90 silicon';
/** By the bits of an input element. */
const order = {
  16: 'order of operations: FlashAttention-4 sources; on sm_90 whole outputs equal silicon',
  8: 'order of operations: FlashAttention-4 sources; no fp8 output of any GPU was compared',
} as const;
const combine =
  'combine of the splits: FlashAttention-4 sources; no GPU was compared, contraction is a guess';

/** What the forward model's bits rest on for an architecture, a line each. */
export function fa4Evidence(
  architecture: Fa4Architecture,
  format: Fa4Format,
  splits = 1,
): string[] {
  const tensorCore = tensorCoreEvidence(fa4TensorCore(architecture, format));
  return [
    `matrix products: ${tensorCore}`,
    `ex2, rcp, lg2: ${specialFunctionEvidence[architecture].label}`,
    'software exp2: sm_90 silicon, every input (IEEE operations, the same everywhere)',
    ptxConversions,
    order[fa4Formats[format].bits],
    ...(splits > 1 ? [combine] : []),
  ];
}
