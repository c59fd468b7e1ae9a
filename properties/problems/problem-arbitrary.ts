import * as fc from 'fast-check';
import type { Problem } from '../../src/problem/index.js';
import { describeProblem } from './describe-problem.js';
import { decodeProblem, encodeProblem, type PlainProblem } from './plain-problem.js';
import type { ProblemConstraints, ResolvedConstraints } from './problem-constraints.js';
import { generateProblem, hasEmptyRows } from './problem-generator.js';
import { searchStart, simplerProblems, type SearchPlace } from './problem-shrinker.js';
import { regimes, type RegimeName } from './regimes/index.js';
import { resolveConstraints } from './resolve-constraints.js';

/** What fast-check keeps with a problem: how to make it simpler. */
class ShrinkContext {
  constructor(
    /** The regime that simpler problems must be of as well. */
    readonly regime: RegimeName,
    readonly place: SearchPlace,
    /** The problem itself, with what cannot be told from its tensors: how it is posed. */
    readonly plain: PlainProblem,
  ) {}
}

/** Of a problem whose regime is not known, or that special values took out of it. */
const anyProblem = (): boolean => true;

class ProblemArbitrary extends fc.Arbitrary<Problem> {
  readonly #constraints: ResolvedConstraints;
  readonly #drawn: ResolvedConstraints;

  /** @param drawn what problems are drawn by; they shrink by the others */
  constructor(constraints: ResolvedConstraints, drawn: ResolvedConstraints) {
    super();
    this.#constraints = constraints;
    this.#drawn = drawn;
  }

  #value(plain: PlainProblem, context: unknown): fc.Value<Problem> {
    const problem = encodeProblem(plain);
    // How fast-check prints a counterexample; not enumerable, so that problems compare as usual.
    Object.defineProperty(problem, fc.toStringMethod, { value: () => describeProblem(problem) });
    return new fc.Value(problem, context);
  }

  override generate(random: fc.Random): fc.Value<Problem> {
    const { plain, regime } = generateProblem(this.#drawn, random);
    return this.#value(plain, new ShrinkContext(regime, searchStart, plain));
  }

  override canShrinkWithoutContext(value: unknown): value is Problem {
    try {
      return decodeProblem(value as Problem) !== undefined;
    } catch {
      return false;
    }
  }

  override shrink(problem: Problem, context?: unknown): fc.Stream<fc.Value<Problem>> {
    return fc.stream(this.#simpler(problem, context));
  }

  #regimeTest(
    regime: RegimeName | null,
    plain: PlainProblem,
  ): (candidate: PlainProblem) => boolean {
    if (regime === null) return anyProblem;
    const { holds } = regimes[regime];
    const { tiling } = this.#constraints;
    return holds(plain, tiling) ? (candidate) => holds(candidate, tiling) : anyProblem;
  }

  *#simpler(problem: Problem, context: unknown): Generator<fc.Value<Problem>, void, undefined> {
    const { emptyRows } = this.#constraints;
    const known = context instanceof ShrinkContext ? context : null;
    const { regime = null, place = searchStart } = known ?? {};
    const plain = known?.plain ?? decodeProblem(problem);
    const isOfRegime = this.#regimeTest(regime, plain);
    for (const { plain: simpler, resume } of simplerProblems(plain, this.#constraints, place)) {
      if (!isOfRegime(simpler)) continue;
      const next = regime === null ? null : new ShrinkContext(regime, resume, simpler);
      const candidate = this.#value(simpler, next ?? undefined);
      if (emptyRows || !hasEmptyRows(candidate.value)) yield candidate;
    }
  }
}

/**
 * A fast-check arbitrary of attention problems: batches, grouped heads, query and key lengths that
 * differ and sit at tile edges, head dimensions that differ, every format and regime of values,
 * causal masks, sliding windows, softcaps and odd scales, and special values where asked for.
 *
 * Shrinks toward sizes of one, no masks, and the values 0, 1 and round numbers; a counterexample
 * keeps the constraints on sizes, masks, formats and kinds of scale, and it stays in the regime that it
 * was drawn in, unless special values took it out of that at once.
 * @param drawn what problems are drawn by, where that is narrower than what they may shrink to; default
 * the constraints
 * @throws RequestError for constraints that are malformed or that no problem meets
 */
export function attentionProblem(
  constraints: ProblemConstraints = {},
  drawn: ProblemConstraints = constraints,
): fc.Arbitrary<Problem> {
  return new ProblemArbitrary(resolveConstraints(constraints), resolveConstraints(drawn));
}
