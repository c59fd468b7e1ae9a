import type { Tensor } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import type { Law, LawCase, LawTools } from '../law.js';

/** A case of a law of gradients. */
export interface GradientCase extends LawCase {
  readonly problem: Problem;
  /** The gradient of the output. */
  readonly dout: Tensor;
}

/** A law of gradients, without the members that all of these share. */
interface GradientLaw extends Omit<Law, 'ofGradients' | 'problems' | 'violation'> {
  readonly violation: (lawCase: GradientCase, tools: LawTools) => Promise<string | null>;
}

/**
 * A law of dQ, dK and dV: its cases have a gradient of the output, and kernels promise it with `gradients`. Sequences of
 * their own lengths are packed one behind the other.
 */
export function gradientLaw({ without = [], violation, ...law }: GradientLaw): Law {
  return {
    ...law,
    ofGradients: true,
    without: [...without, 'padded', 'paged'],
    violation: async ({ dout, ...lawCase }, tools) => {
      if (dout === undefined)
        throw new RequestError(
          'a law of gradients is tried on a problem with the gradient of its output; give dout beside q, k and v',
        );
      return violation({ ...lawCase, dout }, tools);
    },
  };
}
