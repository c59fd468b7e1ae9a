import {
  featureKinds,
  UnsupportedProblem,
  type AttentionKernel,
  type KernelPromises,
} from '../../../properties/index.js';
import { encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import type { BackwardKernel } from '../../kernels/gradients/index.js';

/** A gradient of zeros, for a kernel that is asked for its forward alone. */
function zeroDout(problem: Problem): Tensor {
  const { batch, heads, queries, vDim } = problemShape(problem);
  const format = problem.q.format === 'e4m3' ? 'bf16' : problem.q.format;
  const shape = [batch, heads, queries, vDim];
  const data = encodeFromFloat64(formats[format], new Float64Array(batch * heads * queries * vDim));
  return { format, shape, data };
}

/** A plain backward kernel as one under test; what it refuses it declines. */
export function kernelOf(backward: BackwardKernel): AttentionKernel {
  return (problem, { dout } = {}) => {
    try {
      return backward(problem, dout ?? zeroDout(problem));
    } catch (error) {
      if (error instanceof RequestError) throw new UnsupportedProblem(error.message);
      throw error;
    }
  };
}

/** What plain backward kernels promise: all features but the forms of storage. */
export const gradientPromises: KernelPromises = {
  gradients: true,
  deterministic: true,
  softcap: true,
  lse: true,
  formats: ['bf16', 'fp16', 'fp32', 'e4m3'],
  // Wide groups take a diagnosis some seconds each.
  sizes: { groupSize: { max: 4 } },
  features: featureKinds.filter((kind) => kind !== 'padded' && kind !== 'paged'),
  // Hidden keys take no part in any product of theirs.
  laws: { 'gradients-hidden-nan': 'bits' },
};
