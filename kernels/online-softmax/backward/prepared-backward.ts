import type { FormatName } from '../../../src/formats/index.js';
import { lazily } from '../../../src/reuse.js';
import type { Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import type { BackwardInputs, ForwardOutputs, PreparedBackward } from '../../backward/model.js';
import { createBackward } from './backward.js';
import { matchOrders } from './order-match.js';
import type { BackwardRecipe } from './recipe.js';

/** @throws RequestError for an O or an LSE that the kernel's forward does not store */
function checkStoredForward(
  kernel: string,
  format: FormatName,
  { out, lse }: ForwardOutputs,
): void {
  if (out.format !== format)
    throw new RequestError(
      `out is ${out.format}; the backward of ${kernel} reads ${format}, as q is`,
    );
  if (lse.format !== 'fp32')
    throw new RequestError(`lse is ${lse.format}; the backward of ${kernel} reads fp32`);
}

/** A kernel's recipe for a problem's backward, and what it says of it. */
interface BackwardOfProblem extends Pick<
  PreparedBackward,
  'shape' | 'format' | 'settings' | 'evidence'
> {
  /** The name of the kernel's model. */
  readonly kernel: string;
  readonly recipe: BackwardRecipe;
  /** Whether the order of all additions is fixed. */
  readonly deterministic: boolean;
  /** Computes the forward's outputs; called when the first piece runs, unless they are given. */
  readonly forward: () => ForwardOutputs;
  /** See `createBackward`; default true. */
  readonly diagonal?: boolean;
}

/**
 * The pieces of a recipe's backward on a problem: one for each key/value head.
 * @throws RequestError for outputs of a forward that are not stored as the kernel reads them
 */
export function preparedBackward(
  problem: Problem,
  { dout, forward: given }: BackwardInputs,
  of: BackwardOfProblem,
): PreparedBackward {
  const {
    kernel,
    shape,
    format,
    settings,
    evidence,
    recipe,
    deterministic,
    forward,
    diagonal = true,
  } = of;
  if (given !== null) checkStoredForward(kernel, format, given);
  const backward = lazily(() =>
    createBackward(problem, shape, recipe, { dout, ...(given ?? forward()) }, { diagonal }),
  );
  return {
    shape,
    format,
    pieces: shape.batch * shape.kvHeads,
    settings,
    evidence,
    run: (kvHead) => {
      const { passes, run } = backward();
      return { kvHead, ...run(kvHead), counters: { blockPairs: shape.groupSize * passes.pairs } };
    },
    someOrder: deterministic
      ? null
      : (kvHead, patterns) => matchOrders(backward(), kvHead, patterns),
  };
}
