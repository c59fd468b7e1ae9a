import * as fc from 'fast-check';
import type { Problem } from '../src/problem.js';
import { describeProblem } from './describe-problem.js';
import { decodeProblem, encodeProblem, type PlainProblem } from './plain-problem.js';
import {
  resolveConstraints,
  type ProblemConstraints,
  type ResolvedConstraints,
} from './problem-constraints.js';
import { generateProblem, hasEmptyRows } from './problem-generator.js';
import { simplerProblems } from './problem-shrinker.js';

class ProblemArbitrary extends fc.Arbitrary<Problem> {
  readonly #constraints: ResolvedConstraints;

  constructor(constraints: ResolvedConstraints) {
    super();
    this.#constraints = constraints;
  }

  #value(plain: PlainProblem): fc.Value<Problem> {
    const problem = encodeProblem(plain);
    // How fast-check prints a counterexample; not enumerable, so that problems compare as usual.
    Object.defineProperty(problem, fc.toStringMethod, { value: () => describeProblem(problem) });
    return new fc.Value(problem, undefined);
  }

  override generate(random: fc.Random): fc.Value<Problem> {
    return this.#value(generateProblem(this.#constraints, random));
  }

  override canShrinkWithoutContext(value: unknown): value is Problem {
    try {
      return decodeProblem(value as Problem) !== undefined;
    } catch {
      return false;
    }
  }

  override shrink(problem: Problem): fc.Stream<fc.Value<Problem>> {
    return fc.stream(this.#simpler(problem));
  }

  *#simpler(problem: Problem): Generator<fc.Value<Problem>, void, undefined> {
    const { emptyRows } = this.#constraints;
    for (const plain of simplerProblems(decodeProblem(problem), this.#constraints)) {
      const candidate = this.#value(plain);
      if (emptyRows || !hasEmptyRows(candidate.value)) yield candidate;
    }
  }
}

/**
 * A fast-check arbitrary of attention problems: batches, grouped heads, query and key lengths that
 * differ and sit at tile edges, head dimensions that differ, every format and regime of values,
 * causal masks, sliding windows, softcaps and odd scales, and special values where asked for.
 *
 * Shrinks toward no masks, sizes of one, and the values 0, 1 and round numbers; a counterexample
 * keeps the constraints on sizes, masks, formats and kinds of scale, but its values may be plainer
 * than its regime's.
 * @throws RequestError for constraints that are malformed or that no problem meets
 */
export function attentionProblem(constraints: ProblemConstraints = {}): fc.Arbitrary<Problem> {
  return new ProblemArbitrary(resolveConstraints(constraints));
}
