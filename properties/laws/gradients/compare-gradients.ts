import {
  describePlace,
  gradientQuantities,
  placeOf,
  type GradientQuantityName,
} from '../../../src/audit/index.js';
import { problemShape, rowElements, type ProblemShape } from '../../../src/problem/index.js';
import { formatNumber } from '../../../src/words/index.js';
import { NotApplicable, type GradientRun, type LawTools } from '../law.js';
import { arrangeGradients, mapGradients, type GradientValues } from './arrange-gradients.js';
import type { Arrangement } from '../transform-problem.js';

/** Gradients, and the most that each element may be off by; compared to the bit where errors are null. */
export interface ErringGradients {
  readonly values: GradientValues;
  /** Infinite where nothing is known. */
  readonly errors: GradientValues | null;
}

/** Gradients with errors in any case. */
export type BoundedGradients = ErringGradients & { readonly errors: GradientValues };

/** The parts of two gradients to compare, and their names in messages. */
export interface GradientComparison {
  /** The shape of the problem that both have the rows of. */
  readonly shape: ProblemShape;
  /** Selects rows of a gradient; default all. Rows are counted over the canonical shape. */
  readonly rows?: (name: GradientQuantityName, row: number) => boolean;
  /** Selects elements of those rows; default all. */
  readonly elements?: (name: GradientQuantityName, index: number) => boolean;
  /** Words for the expected gradients, as in `alone`, and for the others, as in `with the keys permuted`. */
  readonly usual: string;
  readonly changed: string;
}

/** Whether two numbers agree to within their errors; to the bit, but for signs of zeros, where they have none. */
function agree(expected: number, found: number, error: number | null): boolean {
  if (expected === found || (Number.isNaN(expected) && Number.isNaN(found))) return true;
  return error !== null && Math.abs(expected - found) <= error;
}

/**
 * The first element in which gradients differ by more than they may, in a sentence without its full stop; null for none.
 * @throws NotApplicable where nothing can be compared
 */
export function gradientDifference(
  expected: ErringGradients,
  found: ErringGradients,
  { shape, rows = () => true, elements = () => true, usual, changed }: GradientComparison,
): string | null {
  let compared = 0;
  for (const quantity of gradientQuantities) {
    const { name, prose } = quantity;
    const columns = rowElements(quantity, shape);
    const [wanted, got] = [expected.values[name], found.values[name]];
    const errors = [expected.errors?.[name], found.errors?.[name]];
    let first: { readonly index: number; readonly error: number | null } | null = null;
    let [differing, ofQuantity] = [0, 0];
    for (let index = 0; index < wanted.length; index++) {
      if (!rows(name, Math.floor(index / columns)) || !elements(name, index)) continue;
      const error =
        errors[0] === undefined && errors[1] === undefined
          ? null
          : (errors[0]?.[index] ?? 0) + (errors[1]?.[index] ?? 0);
      // Nothing is known of it.
      if (error !== null && !Number.isFinite(error)) continue;
      ofQuantity++;
      if (agree(wanted[index], got[index], error)) continue;
      first ??= { index, error };
      differing++;
    }
    compared += ofQuantity;
    if (first === null) continue;
    const { index, error } = first;
    const at = describePlace(placeOf(quantity, shape, index));
    const others = differing === 1 ? '' : ` (${differing} of ${ofQuantity} elements differ)`;
    const explained = error === null ? '' : `; rounding explains ${formatNumber(error)}`;
    return `${prose} at ${at} is ${wanted[index]} ${usual} but ${got[index]} ${changed}${explained}${others}`;
  }
  if (compared === 0) throw new NotApplicable('no gradient of the problem can be compared');
  return null;
}

/** The gradients of a run with the largest errors of a correct kernel. */
export function erring(
  run: GradientRun,
  tools: Pick<LawTools, 'measureGradients'>,
): BoundedGradients {
  const { gradients } = tools.measureGradients(run);
  return { values: run.gradients, errors: mapGradients((name) => gradients[name].bound.total) };
}

/** The gradients of a run, with errors where the law is promised within the bound. */
function asPromised(run: GradientRun, tools: LawTools): ErringGradients {
  return tools.strength === 'bits' ? { values: run.gradients, errors: null } : erring(run, tools);
}

/** Gradients with their rows as arranged. */
export function arrangeErring(
  { values, errors }: ErringGradients,
  shape: ProblemShape,
  arrangement: Arrangement,
): ErringGradients {
  return {
    values: arrangeGradients(values, shape, arrangement),
    errors: errors && arrangeGradients(errors, shape, arrangement),
  };
}

/** Gradients times a number, and their errors with them. */
export function timesGradients(
  { values, errors }: ErringGradients,
  factor: number,
): ErringGradients {
  const times = (of: GradientValues, by: number) =>
    mapGradients((name) => of[name].map((x) => x * by));
  return { values: times(values, factor), errors: errors && times(errors, Math.abs(factor)) };
}

/** Two runs; the rows of one are rows of the other. */
export interface ArrangedRuns {
  readonly usual: GradientRun;
  readonly changed: GradientRun;
  /** The rows of the usual run that the other has. */
  readonly arrangement?: Arrangement;
  readonly words: string;
  readonly rows?: GradientComparison['rows'];
}

/** Whether the gradients of one run are rows of another's: to the bit or within the bounds of both, as it is promised. */
export function arrangedDifference(
  { usual, changed, arrangement = {}, words, rows }: ArrangedRuns,
  tools: LawTools,
): string | null {
  const before = arrangeErring(asPromised(usual, tools), usual.shape, arrangement);
  return gradientDifference(before, asPromised(changed, tools), {
    shape: problemShape(changed.problem),
    usual: 'at first',
    changed: words,
    ...(rows === undefined ? {} : { rows }),
  });
}
