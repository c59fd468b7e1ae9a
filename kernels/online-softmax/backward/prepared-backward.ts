import type { FormatName, Tensor } from '../../../src/formats/index.js';
import { lazily } from '../../../src/reuse.js';
import type { Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import type { ForwardOutputs, PreparedBackward } from '../../backward/model.js';
import { createBackward } from './backward.js';
import { matchOrders } from './order-match.js';
import type { BackwardRecipe } from './recipe.js';

/** @throws RequestError for an O or an LSE that the kernel's forward does not store */
export function checkStoredForward(
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
  readonly recipe: BackwardRecipe;
  /** Whether the order of all additions is fixed. */
  readonly deterministic: boolean;
  /** The forward's outputs, given or computed; called when the first piece runs. */
  readonly forward: () => ForwardOutputs;
  /** See `createBackward`; default true. */
  readonly diagonal?: boolean;
}

/** The pieces of a recipe's backward on a problem: one for each key/value head. */
export function preparedBackward(
  problem: Problem,
  dout: Tensor,
  kernel: BackwardOfProblem,
): PreparedBackward {
  const {
    shape,
    format,
    settings,
    evidence,
    recipe,
    deterministic,
    forward,
    diagonal = true,
  } = kernel;
  const backward = lazily(() =>
    createBackward(problem, shape, recipe, { dout, ...forward() }, { diagonal }),
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
