import { expect } from 'vitest';
import type { AuditOptions } from '../src/audit/index.js';
import type { Problem } from '../src/problem.js';
import { matchAttention, type AttentionOutputs } from './match-attention.js';

declare module 'vitest' {
  interface Matchers<T> {
    /**
     * Passes when what a kernel wrote, `{ out, lse? }`, is what rounding explains of the problem's
     * attention; see `auditOutputs`. Throws a RequestError, also under `.not`, when a tensor does not
     * fit the problem.
     */
    toMatchAttention(problem: Problem, options?: AuditOptions): T;
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
});
