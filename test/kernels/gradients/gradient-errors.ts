import { attentionGradients, type AttentionGradients } from '../../../oracles/index.js';
import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { normalTensor, type seededRandom } from '../features/index.js';
import type { GradientOf, SharedOf } from './backward-steps.js';

export const gradientsOf = ['dq', 'dk', 'dv'] as const satisfies readonly GradientOf[];

/** Those of a bias and of sinks. */
export const sharedOf = ['dbias', 'dsink'] as const satisfies readonly SharedOf[];

/** A normal gradient of a problem's output, bf16 for 8 bits. */
export function drawDout(random: ReturnType<typeof seededRandom>, problem: Problem): Tensor {
  const { batch, heads, queries, vDim } = problemShape(problem);
  const { format } = problem.q;
  const isShort = format === 'e4m3' || format === 'e5m2';
  return normalTensor(random, isShort ? 'bf16' : format, [batch, heads, queries, vDim]);
}

/** The exact gradients as an audit wants them. */
export function exactGradients(problem: Problem, dout: Tensor): AttentionGradients {
  const accuracy = { outputFormat: 'bf16', ulpFraction: 0, magnitudeFraction: 2 ** -40 } as const;
  return attentionGradients(problem, dout, { accuracy });
}

/**
 * The root mean square of a gradient's errors over that of its magnitudes, Σ of the sizes of what an element is made of:
 * a few roundings of the input's format of a correct kernel. Infinite where an element is no number.
 */
export function gradientError(
  given: Tensor,
  exact: AttentionGradients,
  of: GradientOf | SharedOf,
): number {
  const gradient = exact[of];
  if (gradient === null) throw new Error(`there is no exact ${of}`);
  let [ofErrors, ofMagnitudes] = [0, 0];
  decodeTensor(given).forEach((value, i) => {
    ofErrors += (value - gradient.values[i]) ** 2;
    ofMagnitudes += gradient.magnitude[i] ** 2;
  });
  const error = Math.sqrt(ofErrors / ofMagnitudes);
  return Number.isNaN(error) ? Infinity : error;
}
