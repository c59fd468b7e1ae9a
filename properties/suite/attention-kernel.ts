import type { Problem } from '../../src/problem/index.js';
import type { AttentionOutputs } from '../match-attention.js';

/** A kernel under test: the outputs of a problem, at once or later. */
export type AttentionKernel = (problem: Problem) => AttentionOutputs | Promise<AttentionOutputs>;

/**
 * What a kernel throws for a problem that it does not take, such as a head dimension without a code
 * path: another problem is drawn in its place.
 */
export class UnsupportedProblem extends Error {
  override readonly name = 'UnsupportedProblem';
}
