import { lawfulOrder, type RunContext, type TokenOperation } from './context.js';
import type { GradientRows } from './gradient-rows.js';
import type { TokenInputs } from './inputs.js';
import { decayRows } from './matrix/matrices.js';
import type { TokenSteps } from './token-steps.js';

/** What a step back needs beside the state. */
export interface StepBack {
  readonly inputs: TokenInputs;
  readonly t: number;
  /** dO of the inputs' tokens, a row each. */
  readonly outputGradient: Float64Array;
  readonly stateGradient: Float64Array;
  readonly rows: GradientRows;
}

/** What all steps back share. */
interface Undoing {
  readonly context: RunContext;
  /** With the decay, the lack and the write of the token. */
  readonly steps: TokenSteps;
  /** Gradients of the gates of additive writes, as sums over all later tokens. */
  readonly gateSums: Float64Array;
  readonly ofWrite: Float64Array;
  readonly ofRead: Float64Array;
  readonly ofKey: Float64Array;
}

const row = (rows: Float64Array, t: number, dim: number) => rows.subarray(t * dim, (t + 1) * dim);

/** The value dimensions that a program takes: ranges of them, with a rounding of what each stores of a result. */
function eachValueBlock(
  { arithmetic, shape, rounding }: RunContext,
  name: string,
  part: Float64Array,
  take: (first: number, count: number) => void,
): void {
  const { valueDim } = shape;
  const block = arithmetic.valueBlock ?? valueDim;
  for (let first = 0; first < valueDim; first += block) {
    take(first, Math.min(block, valueDim - first));
    rounding.value('sum', part, 0, part.length);
    if (block < valueDim) rounding.output(name, part, 0, part.length);
  }
}

/** Adds S x to a row of dQ or dK. */
function addProduct(
  { context, ofKey }: Undoing,
  name: 'dq' | 'dk',
  to: Float64Array,
  state: Float64Array,
  x: Float64Array,
): void {
  const { products, shape } = context;
  const { keyDim, valueDim } = shape;
  eachValueBlock(context, name, ofKey, (first, count) => {
    if (first > 0) for (let i = 0; i < keyDim; i++) to[i] += ofKey[i];
    for (let i = 0; i < keyDim; i++)
      ofKey[i] = products.dot(x, first, state, i * valueDim + first, count);
  });
  for (let i = 0; i < keyDim; i++) to[i] += ofKey[i];
}

function undoOutput(undoing: Undoing, state: Float64Array, step: StepBack): void {
  const { products, scale, shape, rounding } = undoing.context;
  const { keyDim, valueDim } = shape;
  const { inputs, t, stateGradient } = step;
  const scaled = row(step.outputGradient, t, valueDim).map((x) => x * scale);
  addProduct(undoing, 'dq', row(step.rows.dq, t, keyDim), state, scaled);
  products.product(stateGradient, row(inputs.q, t, keyDim), scaled, [keyDim, 1, valueDim], true);
  rounding.value('state', stateGradient, 0, stateGradient.length);
}

function undoWrite(undoing: Undoing, { inputs, t, rows, stateGradient }: StepBack): void {
  const { context, steps, ofWrite, ofRead } = undoing;
  const { products, rounding, shape, isDelta } = context;
  const { keyDim, valueDim } = shape;
  products.product(ofWrite, row(inputs.k, t, keyDim), stateGradient, [1, keyDim, valueDim]);
  rounding.value('sum', ofWrite, 0, valueDim);
  rounding.value('write-gradient', ofWrite, 0, valueDim);
  addProduct(undoing, 'dk', row(rows.dk, t, keyDim), stateGradient, steps.write);
  const dv = row(rows.dv, t, valueDim);
  for (let c = 0; c < valueDim; c++) {
    dv[c] = inputs.beta[t] * ofWrite[c];
    ofRead[c] = -dv[c];
  }
  if (!isDelta) return;
  const part = new Float64Array(1);
  rows.dbeta[t] = 0;
  eachValueBlock(context, 'dbeta', part, (first, count) => {
    rows.dbeta[t] += part[0];
    part[0] = products.dot(ofWrite, first, steps.lack, first, count);
  });
  rows.dbeta[t] += part[0];
}

function undoRead(undoing: Undoing, state: Float64Array, step: StepBack): void {
  const { products, rounding, shape, isDelta, arithmetic } = undoing.context;
  const { inputs, t, rows, stateGradient } = step;
  const { keyDim, valueDim } = shape;
  if (!isDelta) return;
  addProduct(undoing, 'dk', row(rows.dk, t, keyDim), state, undoing.ofRead);
  products.product(
    stateGradient,
    row(inputs.k, t, keyDim),
    undoing.ofRead,
    [keyDim, 1, valueDim],
    true,
  );
  rounding.value('state', stateGradient, 0, stateGradient.length);
  // A program's share of dK is stored without what is read, and then with it.
  if ((arithmetic.valueBlock ?? valueDim) >= valueDim) return;
  const dk = row(rows.dk, t, keyDim);
  rounding.output('dk', dk, 0, keyDim);
}

/** Adds Σ (q ⊙ dQ − k ⊙ dK) of a token to the sums of all later ones, which are its gates' gradients. */
function addToGateSums({ context, gateSums }: Undoing, { inputs, t, rows }: StepBack): void {
  const { rounding, gateCount, shape } = context;
  const { keyDim } = shape;
  const dg = row(rows.dg, t, gateCount).fill(0);
  for (let i = t * keyDim; i < (t + 1) * keyDim; i++)
    dg[gateCount === 1 ? 0 : i - t * keyDim] += inputs.q[i] * rows.dq[i] - inputs.k[i] * rows.dk[i];
  rounding.value('sum', dg, 0, gateCount);
  for (let i = 0; i < gateCount; i++) gateSums[i] += dg[i];
  rounding.value('sum', gateSums, 0, gateCount);
  dg.set(gateSums);
}

function undoDecay(undoing: Undoing, state: Float64Array, step: StepBack): void {
  const { products, rounding, gateCount, isDelta, order, shape } = undoing.context;
  const { t, rows, stateGradient } = step;
  if (gateCount === 0) return;
  // Of additive writes kernels sum over tokens, which only the law's own order allows.
  if (isDelta || order !== lawfulOrder) {
    const dg = row(rows.dg, t, gateCount);
    products.dotRows(dg, state, stateGradient);
    rounding.value('sum', dg, 0, gateCount);
  } else addToGateSums(undoing, step);
  decayRows(stateGradient, undoing.steps.decay, shape.valueDim);
  rounding.value('state', stateGradient, 0, stateGradient.length);
}

/** Undoes an operation of a token, whose vectors the steps have; `state` is that right behind it. */
export type BackwardSteps = (
  operation: TokenOperation,
  state: Float64Array,
  step: StepBack,
) => void;

/** The gradients of a token's operations, one at a time and in reverse. `gateSums` is Σ S_T ⊙ dS_T by gate at first. */
export function backwardSteps(
  context: RunContext,
  steps: TokenSteps,
  gateSums: Float64Array,
): BackwardSteps {
  const { keyDim, valueDim } = context.shape;
  const column = () => new Float64Array(valueDim);
  const ofKey = new Float64Array(keyDim);
  const undoing = { context, steps, gateSums, ofWrite: column(), ofRead: column(), ofKey };
  return (operation, state, step) => {
    if (operation === 'output') undoOutput(undoing, state, step);
    else if (operation === 'write') undoWrite(undoing, step);
    else if (operation === 'read') undoRead(undoing, state, step);
    else undoDecay(undoing, state, step);
  };
}
