import { decodeTensor } from '../../src/formats/index.js';
import {
  recurrentFamilies,
  recurrentShape,
  type RecurrentProblem,
  type RecurrentResults,
} from '../../src/problem/index.js';
import type { RecurrentArithmetic, RecurrentRounding } from './arithmetic.js';
import { chunkForward } from './chunk-forward.js';
import { lawfulOrder, type RunContext } from './context.js';
import { gateCountOf, inputReader } from './inputs.js';
import { tokenForward, tokensAtATime } from './token-forward.js';

/** The context of a run of a problem. */
function contextOf(
  problem: RecurrentProblem,
  arithmetic: RecurrentArithmetic,
  rounding: RecurrentRounding,
): RunContext {
  const shape = recurrentShape(problem);
  const { keyDim } = shape;
  return {
    problem,
    shape,
    arithmetic,
    rounding,
    scale: problem.scale ?? 1 / Math.sqrt(keyDim),
    isDelta: recurrentFamilies[problem.family].write === 'delta',
    gateCount: gateCountOf(problem, keyDim),
    order: lawfulOrder,
  };
}

/** Puts the state that a sequence and head begins with into `state`. */
function beginState({ problem }: RunContext, index: number, state: Float64Array): void {
  const size = state.length;
  if (problem.initialState)
    decodeTensor(problem.initialState, index * size, (index + 1) * size, state);
  else state.fill(0);
}

/** Outputs and final states. */
function runForward(
  context: RunContext,
): Required<Pick<RecurrentResults<Float64Array>, 'out' | 'final_state'>> {
  const { shape, arithmetic, rounding } = context;
  const { batch, tokens, valueHeads, keyDim, valueDim, sequences } = shape;
  const size = keyDim * valueDim;
  const states = sequences.length * valueHeads;
  const out = new Float64Array(batch * tokens * valueHeads * valueDim);
  const final = new Float64Array(states * size);
  const isChunked = arithmetic.form === 'chunked';
  const most = isChunked ? arithmetic.chunk : tokensAtATime;
  const read = inputReader(context.problem, shape, most, rounding);
  const pass = (isChunked ? chunkForward : tokenForward)(context, read);
  for (let index = 0; index < states; index++) {
    const head = index % valueHeads;
    const state = final.subarray(index * size, (index + 1) * size);
    beginState(context, index, state);
    pass((index - head) / valueHeads, head, state, (token, row) => {
      const at = (token * valueHeads + head) * valueDim;
      out.set(row, at);
      rounding.output('out', out, at, at + valueDim);
    });
  }
  rounding.output('final_state', final, 0, final.length);
  return { out, final_state: final };
}

/**
 * What a kernel of such an arithmetic computes, in fp64 with `rounding` where the kernel rounds: outputs and final states. Memory beside results is
 * that of a chunk and of one state.
 * @throws RequestError for tensors that do not fit together
 */
export function runRecurrence(
  problem: RecurrentProblem,
  arithmetic: RecurrentArithmetic,
  rounding: RecurrentRounding,
): RecurrentResults<Float64Array> {
  return runForward(contextOf(problem, arithmetic, rounding));
}
