import { specialFunctionEvidence, tensorCoreEvidence } from '../../src/hardware/index.js';
import type { Recipe } from '../online-softmax/recipe.js';
import type { Fa2Configuration } from './configuration.js';

const captured =
  'order of operations: PyTorch sources; every captured output and LSE equals silicon, head dimensions 64 and 128';
const sources = 'order of operations: [model] FlashAttention-2 sources; no GPU was compared';

/** What the bits of FlashAttention-2's forward rest on in a configuration, a line each. */
export function fa2Evidence(
  { architecture, build }: Fa2Configuration,
  { tensorCore }: Recipe,
): string[] {
  const isCaptured = architecture === 'sm_90' && build === 'pytorch';
  return [
    `matrix products: ${tensorCoreEvidence(tensorCore)}`,
    `ex2, lg2: ${specialFunctionEvidence[architecture === 'sm_90' ? 'sm_90' : 'sm_100'].label}`,
    'fp32 add, mul, fma and div: IEEE 754',
    isCaptured ? captured : sources,
  ];
}
