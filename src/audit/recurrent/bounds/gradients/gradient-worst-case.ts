import { decodeTensor } from '../../../../formats/index.js';
import {
  recurrentQuantities,
  recurrentQuantityNames,
  recurrentQuantityShape,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentQuantityName,
  type RecurrentShape,
} from '../../../../problem/index.js';
import type { WriterContext } from '../chunk-writes.js';
import { conversion } from '../roundings.js';
import { largestOf, lostByUnderflow } from '../state-bounds.js';
import type { BlockReader, TokenBlock } from '../token-blocks.js';
import { blockBack, type BlockStart } from './block-back.js';
import {
  blockGradients,
  coverSummedGates,
  type BlockGradients,
  type Errored,
  type StateGradient,
} from './gradient-rows.js';

/** What gradients of one sequence and value head are made of. */
export interface HeadBack {
  readonly sequence: number;
  readonly head: number;
  /** The state before each block, and behind the last. */
  readonly starts: readonly BlockStart[];
}

/** Bounds of gradients, head after head. */
export interface GradientBounds {
  readonly addHead: (head: HeadBack) => void;
  readonly errors: Readonly<Partial<Record<RecurrentQuantityName, Float64Array>>>;
}

/** What a run over heads has. */
interface Run {
  readonly problem: RecurrentProblem;
  readonly shape: RecurrentShape;
  readonly context: WriterContext;
  readonly read: BlockReader;
  readonly most: number;
  readonly isDelta: boolean;
  readonly inputs: RecurrentGradientInputs;
}

/** Adds a head's share of a row to the sum over the value heads of a key head, which rounds. */
function addShare(
  to: Float64Array,
  at: number,
  { value, error }: Errored,
  from: number,
  { dim, addition }: { readonly dim: number; readonly addition: number },
): void {
  for (let i = 0; i < dim; i++) {
    const size = Math.abs(value[from + i]) + error[from + i];
    to[at + i] += error[from + i] + addition * size;
  }
}

/** Takes a row of dq or dk through the normalisation of its vector x: (y − x (x·y)) / √(Σx² + ε). */
function throughNormalisation(
  { value, error }: Errored,
  x: Float64Array,
  first: number,
  { dim, factor, share }: { readonly dim: number; readonly factor: number; readonly share: number },
): void {
  let [along, sizes, errors] = [0, 0, 0];
  for (let i = first; i < first + dim; i++) {
    along += x[i] * value[i];
    sizes += Math.abs(x[i] * value[i]);
    errors += Math.abs(x[i]) * error[i];
  }
  for (let i = first; i < first + dim; i++) {
    const size = Math.abs(value[i]) + Math.abs(x[i]) * sizes;
    const moved = error[i] + Math.abs(x[i]) * errors;
    value[i] = (value[i] - x[i] * along) * factor;
    error[i] = (moved + share * (size + moved)) * factor;
  }
}

/** What the state and its gradient at a block's end err by in S ∘ dS, by key dimension, at most. */
function raiseCarry(
  carry: Float64Array,
  { exact, errors, norms }: BlockStart,
  gradient: StateGradient,
  share: number,
): void {
  const columns = norms.length;
  for (let i = 0; i < carry.length; i++) {
    let sum = 0;
    for (let c = 0; c < columns; c++) {
      const at = i * columns + c;
      const [s, g] = [Math.abs(exact[at]), Math.abs(gradient.exact[at])];
      const ofState = errors ? errors[at] : norms[c];
      sum += ofState * g + (s + ofState) * (gradient.norms[c] + share * (g + gradient.norms[c]));
    }
    carry[i] = Math.max(carry[i], sum);
  }
}

/** Zeros for each gradient that the problem has. */
function zeros(problem: RecurrentProblem, shape: RecurrentShape): GradientBounds['errors'] {
  return Object.fromEntries(
    recurrentQuantityNames.flatMap((name) => {
      const sizes = recurrentQuantityShape(name, problem, shape);
      if (sizes === null || !recurrentQuantities[name].isGradient) return [];
      return [[name, new Float64Array(sizes.reduce((a, b) => a * b, 1))]];
    }),
  );
}

/** Adds what storing shares of a row of dq or dk errs by, and what storing the row does. */
function addStored(
  { value, error, stored }: BlockGradients['dq'],
  first: number,
  dim: number,
  rounded: (magnitude: number) => number,
): void {
  for (let i = first; i < first + dim; i++) {
    error[i] += stored[i];
    error[i] += rounded(Math.abs(value[i]) + error[i]);
  }
}

/**
 * Adds what numbers that underflow make of a block's gradients, and of the state's: results are products of two of what is read, written
 * and given.
 */
function addUnderflow(
  rows: BlockGradients,
  block: TokenBlock,
  {
    state,
    gradient,
    outputs,
  }: {
    readonly state: Float64Array;
    readonly gradient: StateGradient;
    readonly outputs: Float64Array;
  },
  least: number,
): void {
  const largest = (values: Float64Array) => largestOf(values, values.length);
  const others = largest(outputs) + largest(gradient.exact);
  const size = 1 + others + largest(state) + largest(block.v);
  const lost = lostByUnderflow(block, state, others, least) * size;
  for (const { error } of [rows.dq, rows.dk, rows.dv, rows.dbeta, rows.dg])
    for (let i = 0; i < error.length; i++) error[i] += lost;
  for (let c = 0; c < gradient.norms.length; c++)
    gradient.norms[c] += lost * Math.sqrt(gradient.exact.length / gradient.norms.length);
}

/** Writes a block's gradients' errors. */
function storeRows(
  run: Run,
  rows: BlockGradients,
  block: TokenBlock,
  head: number,
  errors: GradientBounds['errors'],
): void {
  const { shape, context, problem } = run;
  const { keyHeads, valueHeads, keyDim, valueDim } = shape;
  const { arithmetic, roundings } = context;
  const { operation, of } = roundings;
  const group = valueHeads / keyHeads;
  const addition = group > 1 ? group * operation : 0;
  // What heads share, or what normalisation reads, may be stored before it is read again: as results are, or as operands.
  const isStored = group > 1 || problem.normalisation !== undefined;
  const share = 4 * context.inputs.normalised + roundings.sum(keyDim + 4);
  for (let t = 0; t < block.count; t++) {
    const token = block.first + t;
    const [ofKey, ofValue] = [
      (token * keyHeads + Math.floor(head / group)) * keyDim,
      token * valueHeads + head,
    ];
    for (const [name, x, factors] of [
      ['dq', block.q, block.queryFactors],
      ['dk', block.k, block.keyFactors],
    ] as const) {
      const to = errors[name];
      const asResult = conversion(
        problem[name === 'dq' ? 'q' : 'k'].format,
        arithmetic.formats.sum,
      );
      addStored(rows[name], t * keyDim, keyDim, (magnitude) =>
        isStored ? Math.max(asResult.error(magnitude), of.operand.error(magnitude)) : 0,
      );
      if (problem.normalisation)
        throughNormalisation(rows[name], x, t * keyDim, { dim: keyDim, factor: factors[t], share });
      if (to) addShare(to, ofKey, rows[name], t * keyDim, { dim: keyDim, addition });
    }
    errors.dv?.set(rows.dv.error.subarray(t * valueDim, (t + 1) * valueDim), ofValue * valueDim);
    errors.dbeta?.set(rows.dbeta.error.subarray(t, t + 1), ofValue);
    const gates = rows.dg.error.subarray(t * keyDim, (t + 1) * keyDim);
    const isByKey = context.inputs.decay === 'by-key-dimension';
    if (isByKey) errors.dg?.set(gates, ofValue * keyDim);
    else if (errors.dg) errors.dg[ofValue] = gates.reduce((a, b) => a + b, 0);
  }
}

/** Bounds of the gradients of a problem. */
export function gradientBounds(run: Run): GradientBounds {
  const { problem, shape, context, read, most, isDelta, inputs } = run;
  const { keyDim, valueDim, valueHeads, sequences } = shape;
  const back = blockBack(context, most, isDelta);
  const errors = zeros(problem, shape);
  const size = keyDim * valueDim;
  const gradient: StateGradient = {
    exact: new Float64Array(size),
    norms: new Float64Array(valueDim),
  };
  const rows = blockGradients(most, shape);
  const outputs = new Float64Array(most * valueDim);
  const carry = new Float64Array(keyDim);
  const { roundings } = context;
  return {
    errors,
    addHead: ({ sequence, head, starts }) => {
      const { first, end } = sequences[sequence];
      const state = sequence * valueHeads + head;
      gradient.exact.fill(0);
      gradient.norms.fill(0);
      carry.fill(0);
      const { dout, dfinalState } = inputs;
      if (dfinalState) decodeTensor(dfinalState, state * size, (state + 1) * size, gradient.exact);
      const addition = roundings.sum(end - first + keyDim + 4);
      const share = roundings.sum(valueDim) + 2 * roundings.of['state-gradient'].unit;
      for (let b = starts.length - 2; b >= 0; b--) {
        const block = read(first + b * most, Math.min(most, end - first - b * most), head);
        for (let t = 0; t < block.count; t++) {
          const at = ((block.first + t) * valueHeads + head) * valueDim;
          decodeTensor(dout, at, at + valueDim, outputs.subarray(t * valueDim, (t + 1) * valueDim));
        }
        raiseCarry(carry, starts[b + 1], gradient, share);
        back(block, starts[b], gradient, outputs, rows);
        addUnderflow(rows, block, { state: starts[b].exact, gradient, outputs }, roundings.least);
        coverSummedGates(rows, block, carry, addition);
        storeRows(run, rows, block, head, errors);
      }
      for (let i = 0; i < size && errors.dinitial_state; i++)
        errors.dinitial_state[state * size + i] = gradient.norms[i % valueDim];
    },
  };
}
