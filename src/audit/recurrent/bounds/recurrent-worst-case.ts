import { makesGates } from '../../../../oracles/index.js';
import { decodeTensor } from '../../../formats/index.js';
import {
  recurrentFamilies,
  recurrentScale,
  recurrentShape,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentResults,
  type RecurrentShape,
} from '../../../problem/index.js';
import type { RecurrentArithmetic } from '../../../../kernels/index.js';
import { additiveChunks, deltaChunks } from './chunk-errors.js';
import type { WriterContext } from './chunk-writes.js';
import { readAgain, type BlockStart } from './gradients/block-back.js';
import { gradientBounds } from './gradients/gradient-worst-case.js';
import { inputErrors } from './input-errors.js';
import { kernelGates } from './made-gates.js';
import { chainErrors } from './mamba2/gradient-errors.js';
import { addOutputErrors } from './mamba2/output-errors.js';
import { kernelProblem } from './mamba2/step-errors.js';
import { conversion, roundingsOf } from './roundings.js';
import type { BlockBounder, StateBounds } from './state-bounds.js';
import { backFollower, type BackFollower, type Step } from './steps.js';
import { additiveTokens, deltaTokens } from './token-errors.js';
import { blockReader, type BlockReader } from './token-blocks.js';

/** Tokens that errors are followed back exactly; beyond, norms bound them. */
const followedTokens = 2048;

/** Tokens that the recurrent form is bounded for at a time. */
const recurrentBlock = 64;

/** What a run over heads keeps. */
interface Machinery {
  readonly problem: RecurrentProblem;
  readonly shape: RecurrentShape;
  readonly most: number;
  readonly context: WriterContext;
  readonly isDelta: boolean;
  readonly read: BlockReader;
  readonly bound: BlockBounder;
  readonly follow: BackFollower;
  readonly out: Float64Array;
  readonly finalState: Float64Array;
}

/** Puts the initial state and what storing it errs by into `state`. */
function beginState(
  state: StateBounds,
  machinery: Machinery,
  at: number,
  format: RecurrentArithmetic['formats']['state'],
): void {
  const { exact, errors, norms } = state;
  const { initialState } = machinery.problem;
  exact.fill(0);
  errors?.fill(0);
  norms.fill(0);
  if (!initialState) return;
  decodeTensor(initialState, at * exact.length, (at + 1) * exact.length, exact);
  const { error } = conversion(format, initialState.format);
  const columns = norms.length;
  for (let i = 0; i < exact.length; i++) {
    const lost = error(Math.abs(exact[i]));
    if (errors) errors[i] = lost;
    norms[i % columns] += lost * lost;
  }
  for (let c = 0; c < columns; c++) norms[c] = Math.sqrt(norms[c]);
}

/** Sets what a state's elements err by: its rows' errors are those of unit vectors that are followed back. */
function setElementErrors(
  errors: Float64Array,
  norms: Float64Array,
  steps: readonly Step[],
  { follow, shape: { keyDim } }: Machinery,
): void {
  const rows = new Float64Array(keyDim * keyDim);
  for (let i = 0; i < keyDim; i++) rows[i * keyDim + i] = 1;
  errors.fill(0);
  follow({ rows, count: keyDim, errors }, steps, norms);
}

/**
 * Bounds one sequence of a value head, and sets what its final state's elements err by. `keep` sees the state before each block, and behind the last.
 */
function boundHead(
  machinery: Machinery,
  state: StateBounds,
  { sequence, head }: { readonly sequence: number; readonly head: number },
  keep: () => void,
): void {
  const { shape, most, read, bound, follow, out, finalState, isDelta, context } = machinery;
  const { valueHeads, valueDim } = shape;
  const { first, end } = shape.sequences[sequence];
  const scale = Math.abs(context.scale);
  const steps: Step[] = [];
  keep();
  for (let token = first; token < end; token += most) {
    const block = read(token, Math.min(most, end - token), head);
    const { outErrors, outReads, step, normsBefore } = bound(block, state);
    const errors = outErrors.subarray(0, block.count * valueDim);
    if (outReads) follow({ rows: outReads, count: block.count, errors }, steps, normsBefore);
    for (let t = 0; t < block.count; t++) {
      const at = ((token + t) * valueHeads + head) * valueDim;
      for (let c = 0; c < valueDim; c++) out[at + c] = scale * errors[t * valueDim + c];
    }
    if (step) steps.push(step);
    if (steps.length * most > followedTokens) steps.shift();
    if (isDelta && state.errors) setElementErrors(state.errors, state.norms, steps, machinery);
    keep();
  }
  const size = state.exact.length;
  const at = (sequence * valueHeads + head) * size;
  const errors = finalState.subarray(at, at + size);
  if (state.errors) errors.set(state.errors);
  else setElementErrors(errors, state.norms, steps, machinery);
}

/** NaN and whatever fp64 does not hold are ∞. */
function close(bounds: Float64Array): void {
  for (let i = 0; i < bounds.length; i++)
    bounds[i] = bounds[i] < Infinity ? bounds[i] * closing : Infinity;
}

/** What bounds are raised by: the fp64 roundings of bounds and of what they are made of. */
const closing = 1 + 2 ** -12;

/** What bounds of a problem and an arithmetic are made of. */
function contextOf(problem: RecurrentProblem, arithmetic: RecurrentArithmetic): WriterContext {
  const roundings = roundingsOf(arithmetic);
  return {
    arithmetic,
    roundings,
    inputs: inputErrors(problem, arithmetic, roundings),
    shape: recurrentShape(problem),
    scale: recurrentScale(problem),
  };
}

/** The machinery of a problem. */
function machineryOf(problem: RecurrentProblem, context: WriterContext): Machinery {
  const { shape, arithmetic } = context;
  const { batch, tokens, valueHeads, keyDim, valueDim, sequences } = shape;
  const isChunked = arithmetic.form === 'chunked';
  const isDelta = recurrentFamilies[problem.family].write === 'delta';
  const most = isChunked ? arithmetic.chunk : recurrentBlock;
  const bounders = isChunked ? [additiveChunks, deltaChunks] : [additiveTokens, deltaTokens];
  return {
    problem,
    shape,
    most,
    context,
    isDelta,
    read: blockReader(problem, shape, most),
    bound: bounders[isDelta ? 1 : 0](context, most),
    follow: backFollower(Math.max(most, keyDim), keyDim, most),
    out: new Float64Array(batch * tokens * valueHeads * valueDim),
    finalState: new Float64Array(sequences.length * valueHeads * keyDim * valueDim),
  };
}

/**
 * The largest |kernel − exact| of any correct kernel of this arithmetic, by quantity and element, before a result is rounded into its format; ∞ where it
 * cannot be proven (docs/theory/bounds-recurrent.md).
 * @throws RequestError for tensors that do not fit together
 */
export function recurrentWorstCase(
  problem: RecurrentProblem,
  arithmetic: RecurrentArithmetic,
  options: { readonly gradientInputs?: RecurrentGradientInputs | undefined } = {},
): RecurrentResults<Float64Array> {
  const { mamba2 } = problem;
  if (mamba2) {
    const roundings = roundingsOf(arithmetic);
    const plain = kernelProblem(problem, mamba2, roundings);
    const stepped = { problem, inputs: mamba2, plain };
    const results = recurrentWorstCase(plain, arithmetic, options);
    if (results.out) addOutputErrors(results.out, stepped, roundings);
    const { gradientInputs: given } = options;
    return given ? chainErrors(results, stepped, given, roundings) : results;
  }
  if (makesGates(problem))
    return recurrentWorstCase(kernelGates(problem, roundingsOf(arithmetic)), arithmetic, options);
  const context = contextOf(problem, arithmetic);
  const machinery = machineryOf(problem, context);
  const { shape, out, finalState } = machinery;
  const { keyDim, valueDim, valueHeads, sequences } = shape;
  const size = keyDim * valueDim;
  // Token by token errors of delta writes are bounded by norms alone.
  const isByNorm = machinery.isDelta && arithmetic.form === 'recurrent';
  const state: StateBounds = {
    exact: new Float64Array(size),
    errors: isByNorm ? null : new Float64Array(size),
    norms: new Float64Array(valueDim),
  };
  const { gradientInputs } = options;
  const gradients = gradientInputs && gradientBounds({ ...machinery, inputs: gradientInputs });
  // A backward pass token by token makes the states of the whole sequence again; one in chunks reads those of the forward pass.
  const replay =
    gradients && arithmetic.form === 'recurrent'
      ? machineryOf(problem, readAgain(context))
      : undefined;
  for (let at = 0; at < sequences.length * valueHeads; at++) {
    const head = at % valueHeads;
    const sequence = (at - head) / valueHeads;
    const starts: BlockStart[] = [];
    const keep = () => {
      const errors = state.errors?.slice() ?? null;
      starts.push({ exact: state.exact.slice(), errors, norms: state.norms.slice() });
    };
    const run = (of: Machinery, keeps: boolean) => {
      beginState(state, of, at, arithmetic.formats.state);
      boundHead(of, state, { sequence, head }, keeps ? keep : () => undefined);
    };
    run(machinery, gradients !== undefined && replay === undefined);
    if (replay) run(replay, true);
    gradients?.addHead({ sequence, head, starts });
  }
  const results = { out, final_state: finalState, ...gradients?.errors };
  for (const bounds of Object.values(results)) close(bounds);
  return results;
}
