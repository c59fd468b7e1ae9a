import { doubleDouble, type DoubleDouble } from '../../arith/index.js';
import { relativeDistance, type WorstDistance } from '../contracts/index.js';
import { recurrentShape, type RecurrentProblem } from '../../problem/index.js';
import { possibleConstants, scaleOf, type RecurrentConstants } from './constants.js';
import {
  distanceFrom,
  elementsOf,
  type ExactElement,
  type RecurrentOutput,
  type RecurrentRealOf,
} from './exact-elements.js';
import { findConstants, spread, type OutputScale } from './find-constants.js';

/** The real values of a kernel: those that decide, and others that are compared with the same constants; null for none. */
export interface RecurrentReals {
  readonly decisive: RecurrentRealOf;
  readonly others: RecurrentRealOf | null;
}

/** A result's real values against the recurrence: distances are relative to ‖q‖ ‖S_c‖, or to ‖S_c‖, as `ExactColumn` has it. */
export interface RecurrentOutputComparison {
  readonly output: RecurrentOutput;
  /** With the kernel's constants; null where nothing is compared. */
  readonly worst: WorstDistance | null;
  /** With the exact ones. */
  readonly worstIdeal: WorstDistance | null;
  /** Of the other real values; null where there are none. */
  readonly worstOfOthers: WorstDistance | null;
  /** Numbers of rows and of elements. */
  readonly rows: number;
  readonly compared: number;
  readonly withoutMeaning: number;
  /** Those of the compared that have terms other than zeros. */
  readonly telling: number;
}

/** A kernel's real values against a recurrence. */
export interface RecurrentComparison {
  readonly constants: RecurrentConstants;
  /** Of the log2 e of gates, kernel's / exact − 1; null without gates. */
  readonly gateError: number | null;
  /** Null where `out` is not compared. */
  readonly scale: OutputScale | null;
  /** Whether the real values are those of one log2 e alone; so where there are no gates. */
  readonly isGateTold: boolean;
  readonly outputs: readonly RecurrentOutputComparison[];
}

/** Elements of states that are computed at most, over all tokens; a column of each state is in any case. */
const mostElements = 2 ** 23;

/** Compares the elements of a result. */
class OutputComparer {
  readonly #rows = new Set<string>();
  #compared = 0;
  #withoutMeaning = 0;
  #telling = 0;
  readonly #worst: Record<'own' | 'ideal' | 'others', WorstDistance | null> = {
    own: null,
    ideal: null,
    others: null,
  };

  /** Takes an element; returns whether it has a real value. */
  count({ place, size, exact }: ExactElement, real: DoubleDouble | null): boolean {
    this.#rows.add(`${place.batch} ${place.head} ${place.row}`);
    if (real === null) this.#withoutMeaning++;
    else {
      this.#compared++;
      if (Number.isFinite(exact.high) && size > 0) this.#telling++;
    }
    return real !== null;
  }

  note(which: 'own' | 'ideal' | 'others', element: ExactElement, distance: number): void {
    const { place, column } = element;
    if (distance > (this.#worst[which]?.distance ?? -1))
      this.#worst[which] = { distance, place, column };
  }

  result(output: RecurrentOutput): RecurrentOutputComparison {
    return {
      output,
      worst: this.#worst.own,
      worstIdeal: this.#worst.ideal,
      worstOfOthers: this.#worst.others,
      rows: this.#rows.size,
      compared: this.#compared,
      withoutMeaning: this.#withoutMeaning,
      telling: this.#telling,
    };
  }
}

/**
 * Compares the real values of a kernel with a recurrence: with the constants that the real values tell, and with exact ones. All
 * tokens and heads are compared, and of the columns of a state, which never meet, as many as can be afforded.
 *
 * @param outputs the results that the kernel writes
 * @throws RequestError for tensors that do not fit together
 */
export function compareRecurrence(
  problem: RecurrentProblem,
  outputs: readonly RecurrentOutput[],
  { decisive, others }: RecurrentReals,
): RecurrentComparison {
  const shape = recurrentShape(problem);
  const { batch, tokens, valueHeads, keyDim, valueDim, sequences } = shape;
  const { fit, isGateTold } = findConstants(problem, shape, outputs, decisive);
  const ofColumn = Math.max(1, batch * tokens * valueHeads * keyDim);
  const columns = spread(valueDim, Math.max(1, Math.floor(mostElements / ofColumn)));
  const ideal = possibleConstants(problem)[0];
  const idealScale = doubleDouble(scaleOf(problem, keyDim));
  const comparers = new Map(outputs.map((output) => [output, new OutputComparer()]));
  for (let state = 0; state < sequences.length * valueHeads; state++) {
    const at = { sequence: Math.floor(state / valueHeads), head: state % valueHeads, columns };
    const own = elementsOf(problem, shape, at, fit.constants, outputs);
    const exact = elementsOf(problem, shape, at, ideal, outputs);
    own.forEach((element, i) => {
      const { output, place, column } = element;
      const comparer = comparers.get(output)!;
      const real = decisive(output, place, column);
      if (!comparer.count(element, real) || real === null) return;
      comparer.note('own', element, distanceFrom(element, real, fit.scale.value));
      comparer.note('ideal', element, distanceFrom(exact[i], real, idealScale));
      const other = others?.(output, place, column) ?? null;
      if (other !== null)
        comparer.note('others', element, distanceFrom(element, other, fit.scale.value));
    });
  }
  const { logarithm } = fit.constants;
  return {
    constants: fit.constants,
    gateError:
      logarithm && ideal.logarithm && relativeDistance(logarithm.value, ideal.logarithm.value),
    scale: outputs.includes('out') ? fit.scale : null,
    isGateTold,
    outputs: [...comparers].map(([output, comparer]) => comparer.result(output)),
  };
}
