import type { GateInputs, RecurrentProblem } from '../../../src/problem/index.js';
import type { RecurrentFault } from '../faults/fault.js';
import { ofNext } from '../faults/tensors.js';
import type { GateChange } from './change.js';

type Condition = (problem: RecurrentProblem) => boolean;

const makesGates: Condition = ({ gateInputs }) => gateInputs !== undefined;
const hasBias: Condition = ({ gateInputs }) => gateInputs?.dtBias !== undefined;
const hasHeads: Condition = (problem) => makesGates(problem) && problem.v.shape[2] > 1;

/** A fault of a kernel in what it makes gates or write strengths of, or in how. */
function madeFault(
  id: string,
  sentence: string,
  appliesTo: Condition,
  change: {
    readonly inputs?: (inputs: GateInputs) => Partial<GateInputs>;
    readonly gates?: GateChange;
  },
): RecurrentFault {
  return {
    id,
    sentence,
    isOfGradients: false,
    isOutside: true,
    appliesTo: ({ problem }) => appliesTo(problem),
    run({ problem }, execute) {
      const { gateInputs, ...rest } = problem;
      if (!gateInputs || !change.inputs) return execute(problem, { gates: change.gates });
      return execute({ ...rest, gateInputs: { ...gateInputs, ...change.inputs(gateInputs) } });
    },
  };
}

/** Faults that kernels may have in gates and write strengths that they make. */
export const madeGateFaults: readonly RecurrentFault[] = [
  madeFault('gate-softplus-missing', 'the softplus of a + dt_bias is left out', makesGates, {
    gates: { threshold: -Infinity },
  }),
  madeFault('gate-softplus-threshold-2', 'the softplus is its argument from 2 on', makesGates, {
    gates: { threshold: 2 },
  }),
  madeFault('gate-bias-missing', 'dt_bias is left out', hasBias, {
    inputs: () => ({ dtBias: undefined }),
  }),
  madeFault('gate-bias-behind-softplus', 'dt_bias is added behind the softplus', hasBias, {
    gates: { addsBiasBehind: true },
  }),
  madeFault(
    'gate-bias-of-other-head',
    'each head has the dt_bias of the next',
    (problem) => hasBias(problem) && hasHeads(problem),
    { inputs: ({ dtBias }) => ({ dtBias: dtBias && ofNext(dtBias, 0) }) },
  ),
  madeFault('a-of-other-head', 'each head has the a of the next', hasHeads, {
    inputs: ({ a }) => ({ a: ofNext(a, 2) }),
  }),
  madeFault('a-log-of-other-head', 'each head has the A_log of the next', hasHeads, {
    inputs: ({ aLog }) => ({ aLog: ofNext(aLog, 0) }),
  }),
  madeFault('a-log-negated', 'the rate is exp(−A_log)', makesGates, {
    gates: { rate: (logarithm) => Math.exp(-logarithm) },
  }),
  madeFault('a-log-without-exp', 'the rate is A_log, without its exponential', makesGates, {
    gates: { rate: (logarithm) => logarithm },
  }),
  madeFault('gate-sign', 'the sign of the gates is left out', makesGates, { gates: { sign: 1 } }),
  madeFault(
    'sigmoid-missing',
    'β is b, without its sigmoid',
    ({ strengthLogits }) => strengthLogits !== undefined,
    { gates: { strength: (logit) => logit } },
  ),
];
