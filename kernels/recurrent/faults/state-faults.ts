import { decodeTensor, formats, round, type Tensor } from '../../../src/formats/index.js';
import {
  recurrentShape,
  type RecurrentProblem,
  type RecurrentShape,
} from '../../../src/problem/index.js';
import {
  problemFault,
  resultFault,
  runFault,
  without,
  type FaultSetting,
  type RecurrentFault,
} from './fault.js';
import { mapped, ofNext, raggedTails, withoutTokens } from './tensors.js';

const hasState = ({ problem }: FaultSetting) => problem.initialState !== undefined;
const isSquare = ({ problem }: FaultSetting) => problem.q.shape[3] === problem.v.shape[3];
const sequencesOf = ({ problem }: FaultSetting) => recurrentShape(problem).sequences.length;
const isPacked = (setting: FaultSetting) =>
  setting.problem.cuSeqlens !== undefined && sequencesOf(setting) > 1;

/** States as tensors of a problem. */
function states(
  values: Float64Array,
  { sequences, valueHeads, keyDim, valueDim }: RecurrentShape,
): Tensor {
  return {
    format: 'fp64',
    shape: [sequences.length, valueHeads, keyDim, valueDim],
    data: values,
  };
}

/** Each of a tensor's states transposed. */
function transposed(tensor: Tensor): Tensor {
  const dim = tensor.shape[3];
  const data = mapped(tensor, (x) => x).data as Float64Array;
  return mapped(tensor, (_, i) => {
    const at = i % (dim * dim);
    return data[i - at + (at % dim) * dim + Math.floor(at / dim)];
  });
}

/** A fault of the initial state. */
function initialFault(
  id: string,
  sentence: string,
  change: (state: Tensor) => Tensor,
  appliesTo: (setting: FaultSetting) => boolean = () => true,
): RecurrentFault {
  return problemFault(
    id,
    sentence,
    (setting) => hasState(setting) && appliesTo(setting),
    ({ problem }) => ({
      ...problem,
      ...(problem.initialState && { initialState: change(problem.initialState) }),
    }),
  );
}

/** A fault of the final state, from the one that is right. */
function finalFault(
  id: string,
  sentence: string,
  change: (state: Tensor) => Tensor,
  appliesTo: (setting: FaultSetting) => boolean = () => true,
): RecurrentFault {
  return resultFault(id, sentence, appliesTo, (results, { problem }) => {
    if (results.final_state === undefined) return results;
    const right = states(results.final_state, recurrentShape(problem));
    return { ...results, final_state: mapped(change(right), (x) => x).data as Float64Array };
  });
}

/** A fault of a final state that lacks some tokens, while outputs are right. */
function lackingFault(
  id: string,
  sentence: string,
  tokensOf: (setting: FaultSetting) => ReadonlySet<number>,
): RecurrentFault {
  return {
    id,
    sentence,
    isOfGradients: false,
    appliesTo: (setting) => tokensOf(setting).size > 0,
    run(setting, execute) {
      const { final_state } = execute(withoutTokens(setting.problem, tokensOf(setting)));
      return { ...execute(setting.problem), ...(final_state && { final_state }) };
    },
  };
}

const lastTokens = ({ problem }: FaultSetting) =>
  new Set(
    recurrentShape(problem).sequences.flatMap(({ first, end }) => (end > first ? [end - 1] : [])),
  );

/** The packed sequences with their inner ends a token later. */
function withLaterEnds(problem: RecurrentProblem): RecurrentProblem {
  const { cuSeqlens, q } = problem;
  const tokens = q.shape[1];
  return {
    ...problem,
    ...(cuSeqlens && {
      cuSeqlens: cuSeqlens.map((end, i) => (i === 0 ? 0 : Math.min(end + 1, tokens))),
    }),
  };
}

/** Faults of states, and of where sequences begin and end. */
export const stateFaults: readonly RecurrentFault[] = [
  initialFault('initial-state-ignored', 'the initial state is ignored', (state) =>
    mapped(state, () => 0),
  ),
  initialFault(
    'initial-state-of-other-sequence',
    'each sequence begins with the initial state of the next',
    (state) => ofNext(state, 0),
    (setting) => sequencesOf(setting) > 1,
  ),
  initialFault(
    'initial-state-of-other-head',
    'each head begins with the initial state of the next',
    (state) => ofNext(state, 1),
    ({ problem }) => problem.v.shape[2] > 1,
  ),
  initialFault('initial-state-transposed', 'the initial state is transposed', transposed, isSquare),
  initialFault('initial-state-bf16', 'the initial state is read in bf16', (state) =>
    mapped(state, (x) => round(formats.bf16, x)),
  ),
  initialFault('initial-state-e4m3', 'the initial state is read in e4m3', (state) =>
    mapped(state, (x) => round(formats.e4m3, x)),
  ),
  finalFault('final-state-transposed', 'the final state is transposed', transposed, isSquare),
  finalFault(
    'final-state-of-other-sequence',
    'each sequence has the final state of the next',
    (state) => ofNext(state, 0),
    (setting) => sequencesOf(setting) > 1,
  ),
  finalFault(
    'final-state-of-other-head',
    'each head has the final state of the next',
    (state) => ofNext(state, 1),
    ({ problem }) => problem.v.shape[2] > 1,
  ),
  finalFault('final-state-bf16', 'the final state is stored in bf16', (state) =>
    mapped(state, (x) => round(formats.bf16, x)),
  ),
  lackingFault(
    'final-state-without-last-token',
    'the final state lacks the last token',
    lastTokens,
  ),
  lackingFault(
    'final-state-without-tail',
    'the final state lacks the tokens behind the last whole chunk',
    ({ problem, chunk }) => raggedTails(problem, chunk),
  ),
  problemFault(
    'last-token-of-tail-lost',
    'the last token of a chunk that is not whole is lost',
    ({ problem, chunk }) => raggedTails(problem, chunk).size > 0,
    ({ problem, chunk }) => {
      const tails = raggedTails(problem, chunk);
      const last = [...lastTokens({ problem, chunk })].filter((token) => tails.has(token));
      return withoutTokens(problem, new Set(last));
    },
  ),
  problemFault('sequence-ends-late', 'packed sequences end a token late', isPacked, ({ problem }) =>
    withLaterEnds(problem),
  ),
  {
    id: 'state-not-reset',
    sentence: 'the state is carried over from a packed sequence to the next',
    isOfGradients: false,
    appliesTo: isPacked,
    run(setting, execute) {
      const { initialState, ...rest } = without(setting.problem, 'cuSeqlens');
      const { valueHeads, keyDim, valueDim } = recurrentShape(setting.problem);
      const size = valueHeads * keyDim * valueDim;
      const shape = [1, valueHeads, keyDim, valueDim];
      const first = initialState && decodeTensor(initialState, 0, size);
      const given = setting.gradientInputs;
      const results = execute(
        { ...rest, ...(first && { initialState: { format: 'fp64', shape, data: first } }) },
        given && { gradientInputs: { dout: given.dout } },
      );
      // The states and gradients of states are fewer than those of the problem, and are not known.
      return given?.dfinalState ? { ...(results.out && { out: results.out }) } : results;
    },
  },
  runFault(
    'state-bf16',
    'the state is kept in bf16',
    () => true,
    () => ({ formats: { state: 'bf16' } }),
  ),
  runFault(
    'state-fp16',
    'the state is kept in fp16',
    () => true,
    () => ({ formats: { state: 'fp16' } }),
  ),
];
