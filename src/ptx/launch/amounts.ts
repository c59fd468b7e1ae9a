import { problemShape, type Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { plainText } from '../../words/index.js';
import { evaluate, type Variables } from './expression.js';
import type { Amount } from './launch-file.js';

/**
 * The numbers of a problem by their names in expressions of a template: `batch`, `heads`, `kvHeads`, `sq`, `sk`, `d`, `dv`,
 * `scale`, `causal` (1 or 0), `softcap` (0 for none), `windowLeft` and `windowRight` (-1 for no limit).
 *
 * @throws RequestError for a problem whose tensors do not fit together
 */
export function problemVariables(problem: Problem): Variables {
  const { batch, heads, kvHeads, queries, keys, qkDim, vDim } = problemShape(problem);
  const { scale, causal, softcap, window } = problem;
  return {
    batch,
    heads,
    kvHeads,
    sq: queries,
    sk: keys,
    d: qkDim,
    dv: vDim,
    scale,
    causal: causal ? 1 : 0,
    softcap: softcap ?? 0,
    windowLeft: window?.left ?? -1,
    windowRight: window?.right ?? -1,
  };
}

/** Settings for the evaluation of amounts. */
export interface Evaluation {
  readonly variables: Variables;
}

/** The value of an amount. @throws RequestError that repeats an expression without a value */
export function amountOf({ variables }: Evaluation, amount: Amount): number {
  if (typeof amount === 'number') return amount;
  try {
    return evaluate(amount, variables);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    throw new RequestError(`"${plainText(amount.slice(0, 80))}": ${error.message}`);
  }
}

/**
 * The integer value of an amount, in the range of its type. Amounts written as digits alone are exact.
 *
 * @param type `s32`, `u64`, …
 * @throws RequestError for a number that is not an integer, that is outside of the type's range, or that JSON may have
 * rounded
 */
export function integerOf(evaluation: Evaluation, amount: Amount, type: string): bigint {
  const bits = BigInt(type.slice(1));
  const least = type.startsWith('s') ? -(1n << (bits - 1n)) : 0n;
  const most = (1n << (type.startsWith('s') ? bits - 1n : bits)) - 1n;
  const isLiteral =
    typeof amount === 'string' && /^\s*(-?\d{1,20}|0x[\da-fA-F]{1,16})\s*$/.test(amount);
  const number = isLiteral ? 0 : amountOf(evaluation, amount);
  if (!Number.isInteger(number))
    throw new RequestError(`is ${number}; a ${type} is a whole number, so round it (floor, ceil)`);
  if (!isLiteral && !Number.isSafeInteger(number))
    throw new RequestError(
      `is ${number}, which JSON may have rounded; write it as a text of digits`,
    );
  const value = isLiteral ? BigInt(amount) : BigInt(number);
  if (value >= least && value <= most) return value;
  throw new RequestError(`is ${value}; a ${type} goes from ${least} to ${most}`);
}
