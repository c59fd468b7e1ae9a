import type { Mamba2Inputs, RecurrentProblem } from '../../../src/problem/index.js';
import { gradientFault, type FaultSetting, type RecurrentFault } from '../faults/fault.js';
import { ofNext } from '../faults/tensors.js';
import type { Mamba2Change } from './change.js';

type Condition = (inputs: Mamba2Inputs, problem: RecurrentProblem) => boolean;

/** A fault of a Mamba-2 kernel: it changes the inputs, or the steps around the recurrence. */
function mamba2Fault(
  id: string,
  sentence: string,
  condition: Condition,
  change: {
    readonly inputs?: (inputs: Mamba2Inputs) => Partial<Mamba2Inputs>;
    readonly steps?: Mamba2Change;
    readonly problem?: (problem: RecurrentProblem) => Partial<RecurrentProblem>;
  },
): RecurrentFault {
  return {
    id,
    sentence,
    isOfGradients: false,
    isOutside: true,
    appliesTo: ({ problem }: FaultSetting) =>
      problem.mamba2 !== undefined && condition(problem.mamba2, problem),
    run({ problem }, execute) {
      const { mamba2 } = problem;
      if (mamba2 === undefined) return execute(problem);
      const changed = {
        ...problem,
        ...change.problem?.(problem),
        mamba2: { ...mamba2, ...change.inputs?.(mamba2) },
      };
      return execute(changed, change.steps && { mamba2: change.steps });
    },
  };
}

const always: Condition = () => true;
const hasHeads: Condition = (_, { v }) => v.shape[2] > 1;
const hasSoftplus: Condition = ({ dtSoftplus }) => dtSoftplus;
const hasBias: Condition = ({ dtBias }) => dtBias !== undefined;
const hasSkip: Condition = ({ d }) => d !== undefined;
const isGated: Condition = ({ z }) => z !== undefined;

/** Faults of Δ: of the softplus, the bias and the limits. */
const stepFaults: readonly RecurrentFault[] = [
  mamba2Fault('softplus-missing', 'the softplus of dt is left out', hasSoftplus, {
    inputs: () => ({ dtSoftplus: false }),
  }),
  mamba2Fault(
    'softplus-twice',
    'dt goes through a softplus that it had before',
    (inputs) => !inputs.dtSoftplus,
    {
      inputs: () => ({ dtSoftplus: true }),
    },
  ),
  mamba2Fault('softplus-threshold-2', 'the softplus is its argument from 2 on', hasSoftplus, {
    steps: { threshold: 2 },
  }),
  mamba2Fault('dt-bias-missing', 'dt_bias is left out', hasBias, {
    inputs: () => ({ dtBias: undefined }),
  }),
  mamba2Fault(
    'dt-bias-behind-softplus',
    'dt_bias is added behind the softplus',
    ({ dtBias, dtSoftplus }) => dtBias !== undefined && dtSoftplus,
    { steps: { addsBiasBehind: true } },
  ),
  mamba2Fault(
    'dt-bias-of-other-head',
    'each head has the dt_bias of the next',
    (inputs, problem) => hasBias(inputs, problem) && hasHeads(inputs, problem),
    { inputs: ({ dtBias }) => ({ dtBias: dtBias && ofNext(dtBias, 0) }) },
  ),
  mamba2Fault('dt-of-other-head', 'each head has the dt of the next', hasHeads, {
    inputs: ({ dt }) => ({ dt: ofNext(dt, 2) }),
  }),
  mamba2Fault(
    'dt-limit-ignored',
    'the limits of dt are ignored',
    ({ dtLimit: [least, most] }) => least > -Infinity || most < Infinity,
    { inputs: () => ({ dtLimit: [-Number.MAX_VALUE, Infinity] }) },
  ),
];

/** Faults of what Δ multiplies. */
const useFaults: readonly RecurrentFault[] = [
  mamba2Fault('dt-missing-in-values', 'x is not multiplied by dt', always, {
    steps: { value: (x) => x },
  }),
  mamba2Fault('dt-twice-in-values', 'x is multiplied by dt twice', always, {
    steps: { value: (x, step) => x * step * step },
  }),
  mamba2Fault('a-of-other-head', 'each head has the A of the next', hasHeads, {
    inputs: ({ a }) => ({ a: ofNext(a, 0) }),
  }),
  mamba2Fault(
    'scale-of-attention',
    'outputs of the state are scaled by 1/√(state dimension)',
    always,
    {
      problem: ({ q }) => ({ scale: 1 / Math.sqrt(q.shape[3]) }),
    },
  ),
];

/** Faults of D and of the gate. */
const outputFaults: readonly RecurrentFault[] = [
  mamba2Fault('d-missing', 'D x is left out', hasSkip, { inputs: () => ({ d: undefined }) }),
  mamba2Fault(
    'd-of-other-head',
    'each head has the D of the next',
    (inputs, problem) => hasSkip(inputs, problem) && hasHeads(inputs, problem),
    { inputs: ({ d }) => ({ d: d && ofNext(d, 0) }) },
  ),
  mamba2Fault(
    'd-behind-gate',
    'D x is added behind the gate',
    ({ d, z }) => d !== undefined && z !== undefined,
    { steps: { addsBehindGate: true } },
  ),
  mamba2Fault('gate-missing', 'the gate z is left out', isGated, {
    inputs: () => ({ z: undefined }),
  }),
  mamba2Fault('gate-without-sigmoid', 'outputs are multiplied by z without its sigmoid', isGated, {
    steps: { gate: (z) => z },
  }),
  mamba2Fault('gate-is-sigmoid', 'outputs are multiplied by the sigmoid of z alone', isGated, {
    steps: { gate: (z) => 1 / (1 + Math.exp(-z)) },
  }),
];

/** Faults of what lies behind the gradients of the recurrence. */
const chainFaults: readonly RecurrentFault[] = [
  mamba2Fault(
    'ddt-without-slope',
    'ddt lacks the slope of the softplus and the limits',
    hasSoftplus,
    {
      steps: { lacksSlope: true },
    },
  ),
  mamba2Fault('ddt-with-a-of-other-head', 'ddt takes the A of the next head', hasHeads, {
    steps: { takesNextRate: true },
  }),
  mamba2Fault('dx-without-d', 'dx lacks what D x gives', hasSkip, {
    steps: { skipsGradient: true },
  }),
].map(gradientFault);

/** Faults that Mamba-2 kernels may have in what lies around their recurrence. */
export const mamba2Faults: readonly RecurrentFault[] = [
  ...stepFaults,
  ...useFaults,
  ...outputFaults,
  ...chainFaults,
];
