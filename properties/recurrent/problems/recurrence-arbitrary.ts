import * as fc from 'fast-check';
import type { RecurrentConstraints } from './constraints.js';
import {
  plainRecurrence,
  poseRecurrence,
  type PlainRecurrence,
  type PosedRecurrence,
} from './plain-recurrence.js';
import { drawRecurrence } from './recurrence-generator.js';
import { simplerRecurrences } from './recurrence-shrinker.js';
import { narrowedTo, recurrentRegime, type RecurrentRegimeName } from './regimes.js';

/** Problems of recurrences in a regime; what they are drawn and simplified by is their context. */
class RecurrenceArbitrary extends fc.Arbitrary<PosedRecurrence> {
  readonly #constraints: RecurrentConstraints;
  readonly #regime: RecurrentRegimeName;

  constructor(constraints: RecurrentConstraints, regime: RecurrentRegimeName) {
    super();
    this.#constraints = constraints;
    this.#regime = regime;
  }

  override generate(random: fc.Random): fc.Value<PosedRecurrence> {
    const plain = drawRecurrence(this.#constraints, this.#regime, random.nextInt(0, 0x7fffffff));
    return new fc.Value(poseRecurrence(plain), plain);
  }

  override canShrinkWithoutContext(_value: unknown): _value is PosedRecurrence {
    return false;
  }

  override shrink(posed: PosedRecurrence, context?: unknown): fc.Stream<fc.Value<PosedRecurrence>> {
    return fc.stream(
      this.#simpler(context === undefined ? plainRecurrence(posed) : (context as PlainRecurrence)),
    );
  }

  *#simpler(plain: PlainRecurrence): Generator<fc.Value<PosedRecurrence>, void, undefined> {
    const { holds } = recurrentRegime(this.#regime);
    const constraints = narrowedTo(this.#regime, this.#constraints) ?? this.#constraints;
    for (const simpler of simplerRecurrences(plain, constraints))
      if (holds(simpler, constraints.chunk)) yield new fc.Value(poseRecurrence(simpler), simpler);
  }
}

/**
 * An arbitrary of problems of linear attention in a regime, with what gradients begin with where the constraints ask for them. It shrinks
 * toward one sequence, few tokens, heads and dimensions, and the values 0, 1 and round numbers, and stays within the constraints and the regime.
 * @throws RequestError when it draws, where the constraints leave no problem of the regime
 */
export function recurrentProblem(
  constraints: RecurrentConstraints,
  regime: RecurrentRegimeName,
): fc.Arbitrary<PosedRecurrence> {
  return new RecurrenceArbitrary(constraints, regime);
}
