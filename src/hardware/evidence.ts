import { type Architecture, architectures, specialFunctionEvidence } from './architectures.js';
import { tensorCoreArithmetic, tensorCoreEvidence } from './tensor-core/index.js';

/**
 * The evidence for the arithmetic that compiled kernels run with on an architecture, one line for reports: that of its matrix products, which
 * operands decide where there are several, and that of its special functions, which are sm_90's everywhere.
 */
export function architectureEvidence(architecture: Architecture): string {
  const rows = tensorCoreArithmetic.filter((row) => row.architecture === architecture);
  const products = [...new Set(rows.map(tensorCoreEvidence))];
  const by = products.length > 1 ? ', by operands' : '';
  const { specialFunctions } = architectures[architecture];
  const { label } = specialFunctions ?? specialFunctionEvidence.sm_100;
  return `matrix products ${products.join('; ')}${by}; special functions: ${label}`;
}
