import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import {
  recurrentShape,
  type RecurrentQuantityName,
  type RecurrentResults,
} from '../../../src/problem/index.js';
import type { ChunkGradients, GradientChange } from '../chunk-gradients.js';
import {
  gradientFault,
  problemFault,
  resultFault,
  runFault,
  without,
  type FaultSetting,
  type RecurrentFault,
} from './fault.js';
import { withKeyHeads } from './input-faults.js';
import { gatesOf, isDelta, ofLaterToken, tokenOf } from './tensors.js';

const always = () => true;
const hasGates = ({ problem }: FaultSetting) => problem.g !== undefined;
const scaleOf = ({ problem: { scale, q } }: FaultSetting) => scale ?? 1 / Math.sqrt(q.shape[3]);

/** A fault that changes a chunk's gradients. */
const chunkFault = (
  id: string,
  sentence: string,
  appliesTo: (setting: FaultSetting) => boolean,
  changeGradients: GradientChange,
) => gradientFault(runFault(id, sentence, appliesTo, () => ({ form: 'chunked', changeGradients })));

/** A fault that changes one gradient's elements. */
function elementFault(
  id: string,
  sentence: string,
  [name, appliesTo]: readonly [RecurrentQuantityName, (setting: FaultSetting) => boolean],
  change: (setting: FaultSetting, values: Float64Array) => (value: number, index: number) => number,
): RecurrentFault {
  return gradientFault(
    resultFault(id, sentence, appliesTo, (results, setting): RecurrentResults<Float64Array> => {
      const values = results[name];
      if (values === undefined) return results;
      return { ...results, [name]: values.map(change(setting, values)) };
    }),
  );
}

/** Gates' gradients as those of their own token's sum alone, with what follows the chunk at its end. */
function leaveSumsOut({ gateSums, gateCarry }: ChunkGradients, count: number): void {
  const size = gateCarry.length;
  for (let i = 0; i < (count - 1) * size; i++) gateSums[i] -= gateSums[i + size];
  for (let i = 0; i < size; i++) gateSums[(count - 2) * size + i] -= gateCarry[i];
}

/** Faults of gates' gradients. */
const gateGradientFaults: readonly RecurrentFault[] = [
  chunkFault(
    'dg-not-summed',
    'the gradients of gates are not summed over later tokens of their chunk',
    hasGates,
    (gradients, _, { inputs }) => leaveSumsOut(gradients, inputs.count),
  ),
  chunkFault(
    'dg-without-later-chunks',
    'the gradients of gates lack what flows in from behind their chunk',
    hasGates,
    ({ gateCarry }) => gateCarry.fill(0),
  ),
  elementFault(
    'dg-of-first-chunk-missing',
    'the gradients of the gates of the first chunk are missing',
    ['dg', hasGates],
    ({ problem, chunk }) => {
      const gates = gatesOf(problem);
      const first = new Set(
        recurrentShape(problem).sequences.flatMap(({ first, end }) =>
          Array.from({ length: Math.min(chunk, end - first) }, (_, i) => first + i),
        ),
      );
      return (x, i) => (first.has(tokenOf(gates, i)) ? 0 : x);
    },
  ),
  elementFault(
    'dg-of-later-tokens',
    'the gradients of gates lack their own token',
    ['dg', hasGates],
    ({ problem }, values) => {
      const dg: Tensor = { format: 'fp64', shape: gatesOf(problem).shape, data: values };
      const later = decodeTensor(ofLaterToken(problem, dg, 1));
      return (_, i) => later[i];
    },
  ),
  elementFault(
    'dg-of-base-2',
    'the gradients are those of exponents of 2',
    ['dg', hasGates],
    () => (x) => x * Math.LN2,
  ),
  elementFault(
    'dg-negated',
    'the gradients of gates have the wrong sign',
    ['dg', hasGates],
    () => (x) => -x,
  ),
];

/** Faults of the gradients of write strengths, values, queries and keys. */
const inputGradientFaults: readonly RecurrentFault[] = [
  chunkFault(
    'dbeta-without-triangle',
    'the gradients of write strengths lack their part in the triangle',
    isDelta,
    ({ strengthOfTriangle }) => strengthOfTriangle.fill(0),
  ),
  chunkFault(
    'dk-without-reads',
    'the gradients of keys lack those of reading at them',
    isDelta,
    ({ read }) => read.fill(0),
  ),
  chunkFault(
    'dk-without-triangle',
    'the gradients of keys lack those of the triangle',
    isDelta,
    ({ read, triangleRows, triangleColumns }, _, { inputs }) => {
      const dim = inputs.k.length / inputs.beta.length;
      for (let i = 0; i < inputs.count * dim; i++)
        read[i] -= inputs.beta[Math.floor(i / dim)] * triangleRows[i];
      triangleColumns.fill(0);
    },
  ),
  elementFault(
    'dq-not-scaled',
    'the gradients of queries are not scaled',
    ['dq', always],
    (setting) => (x) => x / scaleOf(setting),
  ),
  elementFault(
    'dq-scaled-twice',
    'the gradients of queries are scaled twice',
    ['dq', always],
    (setting) => (x) => x * scaleOf(setting),
  ),
  elementFault(
    'dk-scaled-twice',
    'the gradients of keys are scaled twice',
    ['dk', always],
    (setting) => (x) => x * scaleOf(setting),
  ),
  elementFault(
    'dk-negated',
    'the gradients of keys have the wrong sign',
    ['dk', always],
    () => (x) => -x,
  ),
  elementFault(
    'dv-without-beta',
    'the gradients of values lack the write strength',
    [
      'dv',
      ({ problem }) =>
        problem.beta !== undefined && decodeTensor(problem.beta).every((b) => b !== 0),
    ],
    ({ problem }) => {
      const strengths = problem.beta ? decodeTensor(problem.beta) : new Float64Array(0);
      return (x, i) => x / strengths[Math.floor(i / problem.v.shape[3])];
    },
  ),
  gradientFault({
    id: 'dq-dk-of-one-head',
    sentence:
      'the gradients of queries and keys are those of the first value head that shares them',
    isOfGradients: true,
    appliesTo: ({ problem }) => problem.v.shape[2] > problem.q.shape[2],
    run({ problem }, execute) {
      const { valueHeads, keyHeads, keyDim } = recurrentShape(problem);
      const group = valueHeads / keyHeads;
      const results = execute(withKeyHeads(problem, (head) => Math.floor(head / group)));
      const { dq, dk } = results;
      const first = (values: Float64Array) =>
        values.filter((_, i) => (Math.floor(i / keyDim) % valueHeads) % group === 0);
      return { ...results, ...(dq && { dq: first(dq) }), ...(dk && { dk: first(dk) }) };
    },
  }),
];

/** Faults of the gradients of states. */
const stateGradientFaults: readonly RecurrentFault[] = [
  elementFault(
    'dinitial-state-missing',
    'the gradient of the initial state is 0',
    ['dinitial_state', ({ problem }) => problem.initialState !== undefined],
    () => () => 0,
  ),
  elementFault(
    'dinitial-state-not-decayed',
    'the gradient of the initial state lacks the decay of the first token',
    [
      'dinitial_state',
      (setting) => setting.problem.initialState !== undefined && hasOpenGates(setting),
    ],
    ({ problem }) => {
      const { sequences, valueHeads, keyDim, valueDim } = recurrentShape(problem);
      const gates = gatesOf(problem);
      const values = decodeTensor(gates);
      const count = gates.shape.slice(3).reduce((a, b) => a * b, 1);
      return (x, i) => {
        const state = Math.floor(i / (keyDim * valueDim));
        const { first, end } = sequences[Math.floor(state / valueHeads)];
        if (first === end) return x;
        const row = (first * valueHeads + (state % valueHeads)) * count;
        return x / Math.exp(values[row + (count > 1 ? Math.floor(i / valueDim) % keyDim : 0)]);
      };
    },
  ),
  gradientFault(
    runFault(
      'dfinal-state-ignored',
      'the gradient of the final state is ignored',
      ({ gradientInputs }) => gradientInputs?.dfinalState !== undefined,
      ({ gradientInputs }) => ({
        ...(gradientInputs && { gradientInputs: { dout: gradientInputs.dout } }),
      }),
    ),
  ),
  gradientFault(
    problemFault(
      'gradients-without-initial-state',
      'gradients are those of an initial state of zeros',
      ({ problem }) => problem.initialState !== undefined,
      ({ problem }) => without(problem, 'initialState'),
    ),
  ),
];

/** Whether there are gates, and all of their decays can be divided by. */
function hasOpenGates({ problem }: FaultSetting): boolean {
  return problem.g !== undefined && decodeTensor(problem.g).every((g) => g > -20);
}

/** Faults of gradients alone. */
export const gradientFaults: readonly RecurrentFault[] = [
  ...gateGradientFaults,
  ...inputGradientFaults,
  ...stateGradientFaults,
];
