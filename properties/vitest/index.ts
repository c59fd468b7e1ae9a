/**
 * flashproof for vitest: `describeAttentionKernel`, `describeRecurrentKernel`, and the matchers `toMatchAttention` and
 * `toBeWithinBound`, which importing this module adds to `expect`.
 */
import { expect } from 'vitest';
import type { AuditOptions } from '../../src/audit/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { matchAttention, matchBound, type BoundOptions } from '../suite/index.js';
import type { AttentionOutputs } from '../laws/index.js';

export { describeAttentionKernel, type DescribeOptions } from './describe-attention-kernel.js';
export {
  describeRecurrentKernel,
  type DescribeRecurrentOptions,
} from './describe-recurrent-kernel.js';

declare module 'vitest' {
  interface Matchers<T> {
    /**
     * Passes when what a kernel wrote, `{ out, lse? }`, is what rounding explains of the problem's
     * attention; see `auditOutputs`. Throws a RequestError, also under `.not`, when a tensor does not
     * fit the problem.
     */
    toMatchAttention(problem: Problem, options?: AuditOptions): T;
    /**
     * Passes when every element of an output, `{ out, lse? }` or the tensor alone, is within the
     * worst-case bound of a correct kernel (or of `options.arithmetic`); nothing statistical takes
     * part. Throws a RequestError, also under `.not`, when a tensor does not fit the problem.
     */
    toBeWithinBound(problem: Problem, options?: BoundOptions): T;
  }
}

expect.extend({
  toMatchAttention(received: AttentionOutputs, problem: Problem, options?: AuditOptions) {
    const { pass, message } = matchAttention(problem, received, options);
    return {
      pass,
      message: () =>
        pass ? `expected the output not to match the problem's attention\n${message}` : message,
    };
  },
  toBeWithinBound(received: AttentionOutputs | Tensor, problem: Problem, options?: BoundOptions) {
    const { pass, message } = matchBound(problem, received, options);
    return {
      pass,
      message: () => (pass ? `expected an element beyond its bound\n${message}` : message),
    };
  },
});
