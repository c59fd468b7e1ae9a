import * as fc from 'fast-check';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { describeProblem } from './describe-problem.js';
import { drawDout } from './gradients/draw-dout.js';
import {
  decodeDout,
  decodeProblem,
  encodeDout,
  encodeProblem,
  type PlainProblem,
} from './plain-problem.js';
import type { ProblemConstraints, ResolvedConstraints } from './problem-constraints.js';
import { generateProblem, hasEmptyRows } from './problem-generator.js';
import { searchStart, simplerProblems, type SearchPlace } from './problem-shrinker.js';
import { regimes, type RegimeName } from './regimes/index.js';
import { resolveConstraints } from './resolve-constraints.js';
import { randomValues } from './values.js';

/** Context that fast-check keeps with a problem, for shrinking it. */
class ShrinkContext {
  constructor(
    /** The regime that simpler problems must be of as well. */
    readonly regime: RegimeName,
    readonly place: SearchPlace,
    /** The problem itself, with facts that its tensors do not show: the form in which it is posed. */
    readonly plain: PlainProblem,
  ) {}
}

/** Predicate for a problem whose regime is unknown, or that special values took out of it. */
const anyProblem = (): boolean => true;

/** A problem with the gradient of its output. */
export interface GradientProblem {
  readonly problem: Problem;
  /** [batch, query heads, queries, vDim]; bf16 for inputs of 8 bits, else in their format. */
  readonly dout: Tensor;
}

/** Conversion of plain problems to the values of an arbitrary, and back. */
interface Posing<T> {
  /** Adds the other parts to be drawn to a problem of a regime. */
  readonly completed: (plain: PlainProblem, regime: RegimeName, random: fc.Random) => PlainProblem;
  readonly posed: (plain: PlainProblem) => T;
  /** @throws RequestError when shapes do not fit together */
  readonly plain: (posed: T) => PlainProblem;
}

/** A problem that fast-check prints as it is described; not enumerable, so that problems compare as usual. */
function printedProblem(plain: PlainProblem): Problem {
  const problem = encodeProblem(plain);
  Object.defineProperty(problem, fc.toStringMethod, { value: () => describeProblem(problem) });
  return problem;
}

const problemsAlone: Posing<Problem> = {
  completed: (plain) => plain,
  posed: printedProblem,
  plain: decodeProblem,
};

const withGradients: Posing<GradientProblem> = {
  completed: (plain, regime, random) => ({
    ...plain,
    dout: drawDout(plain, regime, randomValues(random.nextInt(0, 2 ** 31 - 1))),
  }),
  posed: (plain) => ({ problem: printedProblem(plain), dout: encodeDout(plain)! }),
  plain: ({ problem, dout }) => ({ ...decodeProblem(problem), dout: decodeDout(dout) }),
};

class ProblemArbitrary<T> extends fc.Arbitrary<T> {
  readonly #constraints: ResolvedConstraints;
  readonly #drawn: ResolvedConstraints;
  readonly #posing: Posing<T>;

  /** @param drawn the constraints that problems are drawn by; they shrink by the others */
  constructor(constraints: ResolvedConstraints, drawn: ResolvedConstraints, posing: Posing<T>) {
    super();
    this.#constraints = constraints;
    this.#drawn = drawn;
    this.#posing = posing;
  }

  override generate(random: fc.Random): fc.Value<T> {
    const { plain, regime } = generateProblem(this.#drawn, random);
    const whole = this.#posing.completed(plain, regime, random);
    return new fc.Value(this.#posing.posed(whole), new ShrinkContext(regime, searchStart, whole));
  }

  override canShrinkWithoutContext(value: unknown): value is T {
    try {
      return this.#posing.plain(value as T) !== undefined;
    } catch {
      return false;
    }
  }

  override shrink(posed: T, context?: unknown): fc.Stream<fc.Value<T>> {
    return fc.stream(this.#simpler(posed, context));
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

  *#simpler(posed: T, context: unknown): Generator<fc.Value<T>, void, undefined> {
    const { emptyRows } = this.#constraints;
    const known = context instanceof ShrinkContext ? context : null;
    const { regime = null, place = searchStart } = known ?? {};
    const plain = known?.plain ?? this.#posing.plain(posed);
    const isOfRegime = this.#regimeTest(regime, plain);
    for (const { plain: simpler, resume } of simplerProblems(plain, this.#constraints, place)) {
      if (!isOfRegime(simpler)) continue;
      if (!emptyRows && hasEmptyRows(encodeProblem(simpler))) continue;
      const next = regime === null ? null : new ShrinkContext(regime, resume, simpler);
      yield new fc.Value(this.#posing.posed(simpler), next ?? undefined);
    }
  }
}

/**
 * A fast-check arbitrary of attention problems: batches, grouped heads, query and key lengths that
 * differ and sit at tile edges, head dimensions that differ, every format and regime of values, causal
 * masks, sliding windows, softcaps and odd scales, and special values where asked for.
 *
 * Shrinks toward sizes of one, no masks, and the values 0, 1 and round numbers; a counterexample keeps
 * the constraints on sizes, masks, formats and kinds of scale, and it stays in the regime that it was
 * drawn in, unless special values took it out of that at once.
 * @param drawn constraints to draw problems by, if narrower than those that they may shrink to; default
 * the constraints
 * @throws RequestError for constraints that are malformed or that no problem meets
 */
export function attentionProblem(
  constraints: ProblemConstraints = {},
  drawn: ProblemConstraints = constraints,
): fc.Arbitrary<Problem> {
  return new ProblemArbitrary(
    resolveConstraints(constraints),
    resolveConstraints(drawn),
    problemsAlone,
  );
}

/**
 * An arbitrary of problems with the gradient of their output, which is drawn in regimes of its own (`doutKinds`) and
 * shrinks beside the problem.
 * @throws RequestError for constraints that are malformed or that no problem meets
 */
export function gradientProblem(
  constraints: ProblemConstraints = {},
  drawn: ProblemConstraints = constraints,
): fc.Arbitrary<GradientProblem> {
  return new ProblemArbitrary(
    resolveConstraints(constraints),
    resolveConstraints(drawn),
    withGradients,
  );
}
