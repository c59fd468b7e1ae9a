import { lazily } from '../lazily.js';
import type { ArrayFunction } from '../simd/index.js';
import type { CapturedTable, ResultPairs } from './capture.js';

/** An input with the silicon's result and the model's, as bit patterns. */
export interface ResultMismatch {
  readonly input: number;
  readonly silicon: number;
  readonly model: number;
}

/** How single results compare. */
export interface ResultComparison {
  readonly checked: number;
  readonly mismatching: number;
  /** The first of them in the captured order. */
  readonly first: ResultMismatch | null;
}

const nan = 0x7fffffff;

/** Every NaN counts as 0x7fffffff, as in the fingerprint. */
function canonical(bits: number): number {
  return (bits & 0x7fffffff) > 0x7f800000 ? nan : bits;
}

function compare(
  inputs: (index: number) => number,
  silicon: Uint32Array,
  model: (index: number) => number,
): ResultComparison {
  let mismatching = 0;
  let first: ResultMismatch | null = null;
  silicon.forEach((expected, i) => {
    if (model(i) === expected) return;
    mismatching++;
    first ??= { input: inputs(i), silicon: expected, model: model(i) };
  });
  return { checked: silicon.length, mismatching, first };
}

/** The model on every pair captured; it is made only if there are some. */
export function comparePairs(
  createModel: () => ArrayFunction,
  pairs: readonly ResultPairs[],
): ResultComparison {
  const model = lazily(createModel);
  const comparisons = pairs.map(({ inputs, results }) => {
    const modelled = new Uint32Array(inputs.length);
    model()(inputs, modelled);
    return compare(
      (i) => inputs[i],
      results.map(canonical),
      (i) => canonical(modelled[i]),
    );
  });
  return {
    checked: comparisons.reduce((sum, { checked }) => sum + checked, 0),
    mismatching: comparisons.reduce((sum, { mismatching }) => sum + mismatching, 0),
    first: comparisons.find(({ first }) => first !== null)?.first ?? null,
  };
}

/** The model on every input of a table. */
export function compareTable({ target, results }: CapturedTable): ResultComparison {
  return compare(
    (i) => i,
    results,
    (i) => target.evaluate(i),
  );
}
