import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { auditAccuracy } from '../../src/audit/index.js';
import type { Problem } from '../../src/problem/index.js';

/** Exact attention of a problem, each value with a radius as small as audits ask for. */
export function exactAttention(problem: Problem): AttentionReference {
  return attentionOracle(problem, { accuracy: auditAccuracy(problem.q.format) });
}
