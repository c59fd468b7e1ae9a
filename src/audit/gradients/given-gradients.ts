import { listed } from '../../words/index.js';
import { formats, type FormatName } from '../../formats/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { decodeQuantity } from '../kernel-outputs.js';
import type { GradientTensors } from './gradient-tensors.js';
import { gradientQuantities, judgedGradients, sharedQuantities } from './gradient-quantities.js';
import type { GivenGradient, GivenJudged } from './judge-gradient.js';
import { decodeShared, gradientSource } from './shared-gradients.js';

/**
 * The gradients that were given, decoded.
 * @throws RequestError where there are none, or one does not fit the problem
 */
export function givenGradients(problem: Problem, tensors: GradientTensors): readonly GivenJudged[] {
  const shape = problemShape(problem);
  const given = gradientQuantities.flatMap((quantity) => {
    const tensor = tensors[quantity.name];
    return tensor ? [{ ...decodeQuantity(quantity, tensor, shape), quantity }] : [];
  });
  const shared = sharedQuantities.flatMap((quantity) => {
    const tensor = tensors[quantity.name];
    return tensor ? [decodeShared(quantity, tensor, problem, shape)] : [];
  });
  const first = given.at(0);
  const other = given.find(({ format }) => format !== first?.format);
  if (first !== undefined && other !== undefined)
    throw new RequestError(
      `${first.quantity.prose} is stored in ${first.format} and ${other.quantity.prose} in ${other.format}; judge gradients of one format at a time`,
    );
  const all = [...given, ...shared];
  if (all.length === 0)
    throw new RequestError(
      'there is no gradient to judge; give dq, dk, dv, dbias or dsink beside dout',
    );
  return all;
}

/** The format of dQ, dK and dV; where none of them was given, that of the inputs, or the output format of 8-bit inputs. */
export function gradientFormat({ q }: Problem, given: readonly GivenJudged[]): FormatName {
  const named = given.find(isOfTensors);
  return named?.format ?? (formats[q.format].storageBits > 8 ? q.format : 'bf16');
}

/** Parts of the gradients that the verdict does not cover. */
export function unjudged(problem: Problem, given: readonly GivenJudged[]): string[] {
  const possible = judgedGradients.filter(
    ({ name }) => (name !== 'dbias' && name !== 'dsink') || gradientSource(problem, name) !== null,
  );
  const missing = possible.filter(
    ({ name }) => !given.some(({ quantity }) => quantity.name === name),
  );
  return missing.length === 0
    ? []
    : [`${listed(missing.map(({ prose }) => prose))}, since none was given`];
}

/** A gradient of Q, K or V. */
export function isOfTensors(one: GivenJudged): one is GivenGradient {
  return one.quantity.name !== 'dbias' && one.quantity.name !== 'dsink';
}
