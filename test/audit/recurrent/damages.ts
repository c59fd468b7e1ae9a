import { findRecurrentFault, runRecurrence, unrounded } from '../../../kernels/index.js';
import { decodeToFloat64, formats } from '../../../src/formats/index.js';
import {
  recurrentShape,
  type RecurrentQuantityName,
  type RecurrentResults,
  type Tensor,
} from '../../../src/problem/index.js';
import { arithmeticsOf } from '../../../src/audit/recurrent/declared-arithmetics.js';
import type { CapturedRecurrence } from '../../fixtures/recurrent-captures.js';
import { tensor } from '../../setup/problems.js';

/** Damaged results of a kernel; null where they have nothing to damage so. */
export type Damage = (
  captured: CapturedRecurrence,
  results: RecurrentResults,
) => RecurrentResults | null;

/** A tensor with other values, in its own format. */
function changed(
  { format, shape, data }: Tensor,
  change: (value: number, at: number, all: Float64Array) => number,
): Tensor {
  const values = new Float64Array(data.length);
  decodeToFloat64(data, formats[format], values);
  let at = 0;
  return tensor(format, shape, () => {
    const value = change(values[at], at, values);
    at++;
    return value;
  });
}

/** The head of an element of [batch, tokens, heads, dimension]. */
const headOf = ({ shape: [, , heads, dim = 1] }: Tensor, at: number) =>
  Math.floor(at / dim) % heads;

/** The results with what a fault changes added to them: all else is as the kernel rounded it. */
function withFault(id: string): Damage {
  return ({ problem, gradientInputs }, results) => {
    const fault = findRecurrentFault(id);
    if (fault === undefined) throw new Error(`there is no fault ${id}`);
    if (!fault.appliesTo({ problem, chunk: 64, gradientInputs })) return null;
    const [arithmetic] = arithmeticsOf(problem, { form: 'chunked', chunk: 64 });
    const options = fault.isOfGradients ? { gradientInputs } : {};
    const right = runRecurrence(problem, arithmetic, unrounded, options);
    const wrong = runRecurrence(problem, arithmetic, unrounded, { ...options, fault });
    const names: readonly RecurrentQuantityName[] = fault.isOfGradients
      ? ['dg', 'dq', 'dk', 'dv', 'dbeta']
      : ['out', 'final_state'];
    const kept = names.flatMap((name) => {
      const [tensorOf, a, b] = [results[name], right[name], wrong[name]];
      if (tensorOf === undefined || a === undefined || b === undefined) return [];
      return [[name, changed(tensorOf, (x, at) => x + b[at] - a[at])] as const];
    });
    return kept.length === 0 ? null : Object.fromEntries(kept);
  };
}

const forward = ({ out, final_state }: RecurrentResults): RecurrentResults => ({
  ...(out ? { out } : {}),
  ...(final_state ? { final_state } : {}),
});

/** Damages of results, by name. */
export const damages: Readonly<Record<string, Damage>> = {
  'a scale of 0.5 % on a head': (_, results) =>
    results.out
      ? {
          ...forward(results),
          out: changed(results.out, (x, at) => (headOf(results.out!, at) === 1 ? x * 1.005 : x)),
        }
      : null,
  'a lost token': ({ problem }, results) => {
    const { out } = results;
    const [, tokens, heads, dim] = problem.v.shape;
    if (!out || tokens < 2) return null;
    const lost = Math.floor(tokens / 2);
    const size = heads * dim;
    return {
      ...forward(results),
      out: changed(out, (x, at, all) => (Math.floor(at / size) === lost ? all[at - size] : x)),
    };
  },
  'the state transposed': ({ problem }, results) => {
    const { final_state: state } = results;
    const { keyDim, valueDim } = recurrentShape(problem);
    if (!state || keyDim !== valueDim) return null;
    const size = keyDim * valueDim;
    return {
      ...forward(results),
      final_state: changed(state, (_x, at, all) => {
        const place = at % size;
        return all[at - place + (place % valueDim) * valueDim + Math.floor(place / valueDim)];
      }),
    };
  },
  'the gate of the token before': withFault('gates-of-token-before'),
  // Of the first token of each chunk.
  'β of 1': withFault('beta-one-at-chunk-start'),
  'a state that leaks across a boundary': withFault('state-not-reset'),
  'a boundary without decay': withFault('decay-missing-at-chunk-start'),
  "one chunk's dg missing": withFault('dg-of-first-chunk-missing'),
};
