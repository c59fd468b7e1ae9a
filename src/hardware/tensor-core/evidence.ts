import type { TensorCoreArithmetic, TensorCoreEvidence } from './arithmetic.js';

const labels: Readonly<Record<TensorCoreEvidence, (row: TensorCoreArithmetic) => string>> = {
  silicon: ({ architecture }) => `${architecture} silicon, every captured result`,
  'published-words': ({ architecture }) => `[model] with ${architecture} result words published`,
  'published-model': () => '[model] MMA-Sim, arXiv 2511.10909',
  assumed: () => '[assumed] as on sm_100',
};

/** What the arithmetic of a row rests on, one line for reports. */
export function tensorCoreEvidence(row: TensorCoreArithmetic): string {
  return labels[row.evidence](row);
}
