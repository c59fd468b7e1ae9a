import { decodeTensor } from '../../src/formats/index.js';
import {
  recurrentFamilies,
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentScale,
  recurrentShape,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentQuantityName,
  type RecurrentResults,
} from '../../src/problem/index.js';
import type { RecurrentArithmetic, RecurrentRounding } from './arithmetic.js';
import { chunkBackward } from './chunk-backward.js';
import { chunkForward } from './chunk-forward.js';
import { lawfulOrder, stretchesOf, type RunContext } from './context.js';
import { gradientResults, outputGradientReader } from './gradient-results.js';
import type { BackwardPass } from './gradient-rows.js';
import {
  recurrentFaults,
  type Execute,
  type FaultSetting,
  type FaultyRun,
  type RecurrentFault,
} from './faults/index.js';
import { madeGateFaults } from './gates/faults.js';
import { withMadeGates } from './gates/make-gates.js';
import { gateCountOf, inputReader, type InputReader } from './inputs.js';
import { productsOf } from './matrix/matrices.js';
import { mamba2Faults } from './mamba2/faults.js';
import { chainGradients } from './mamba2/gradients.js';
import { finishOutputs } from './mamba2/outputs.js';
import { kernelRecurrence } from './mamba2/steps.js';
import { roundedBefore, unrounded } from './rounding.js';
import { tokenBackward } from './token-backward.js';
import { tokenForward, tokensAtATime, type SequencePass } from './token-forward.js';

/** Options of {@link runRecurrence}. */
export interface RecurrentRunOptions {
  /** What gradients begin with; default: none are computed. */
  readonly gradientInputs?: RecurrentGradientInputs | undefined;
  /** A fault of the kernel; default: none. */
  readonly fault?: RecurrentFault | undefined;
}

/** The context of a run of a problem. */
function contextOf(
  problem: RecurrentProblem,
  arithmetic: RecurrentArithmetic,
  rounding: RecurrentRounding,
  { order = lawfulOrder, change, changeGradients }: FaultyRun,
): RunContext {
  const shape = recurrentShape(problem);
  const { keyDim } = shape;
  return {
    problem,
    shape,
    arithmetic,
    rounding,
    products: productsOf(arithmetic),
    scale: recurrentScale(problem),
    isDelta: recurrentFamilies[problem.family].write === 'delta',
    gateCount: gateCountOf(problem, keyDim),
    order,
    change,
    changeGradients,
  };
}

/** The passes of a form, and the tokens that they take at a time. */
function passesOf(
  context: RunContext,
  gradientInputs: RecurrentGradientInputs | undefined,
): { readonly most: number; readonly forward: SequencePass; readonly backward?: BackwardPass } {
  const { problem, shape, rounding, arithmetic } = context;
  const isChunked = arithmetic.form === 'chunked';
  const most = isChunked ? arithmetic.chunk : tokensAtATime;
  const read: InputReader = inputReader(problem, shape, most, rounding);
  const forward = (isChunked ? chunkForward : tokenForward)(context, read);
  if (gradientInputs === undefined) return { most, forward };
  const readOutputGradient = outputGradientReader(gradientInputs, shape, most);
  const backward = (isChunked ? chunkBackward : tokenBackward)(context, read, readOutputGradient);
  return { most, forward, backward };
}

/** Copies of the states before the stretches of the longest sequence. */
function stateCopies({ shape }: RunContext, most: number): readonly Float64Array[] {
  const { sequences, keyDim, valueDim } = shape;
  const longest = Math.max(0, ...sequences.map(({ first, end }) => end - first));
  const stretches = stretchesOf({ first: 0, end: longest }, most);
  return stretches.map(() => new Float64Array(keyDim * valueDim));
}

/** Puts a state of a tensor, or zeros, into `state`. */
function setState(
  tensor: RecurrentProblem['initialState'],
  index: number,
  state: Float64Array,
): void {
  const size = state.length;
  if (tensor) decodeTensor(tensor, index * size, (index + 1) * size, state);
  else state.fill(0);
}

/** Those of the results of a changed problem that are results of the problem itself. */
function ofProblem(
  problem: RecurrentProblem,
  results: RecurrentResults<Float64Array>,
): RecurrentResults<Float64Array> {
  const shape = recurrentShape(problem);
  const kept: Partial<Record<RecurrentQuantityName, Float64Array>> = {};
  for (const name of recurrentQuantityNames) {
    const sizes = recurrentQuantityShape(name, problem, shape);
    const values = results[name];
    if (values && sizes?.reduce((a, b) => a * b, 1) === values.length) kept[name] = values;
  }
  return kept;
}

/** Runs a problem by a kernel, with what a fault changes of the run. */
function runOnce(
  problem: RecurrentProblem,
  arithmetic: RecurrentArithmetic,
  rounding: RecurrentRounding,
  given: RecurrentGradientInputs | undefined,
  run: FaultyRun,
): RecurrentResults<Float64Array> {
  const { form = arithmetic.form, gradientInputs = given } = run;
  // A recurrent kernel has no chunks of its own.
  const chunk = chunkOf(arithmetic);
  const changed = { ...arithmetic, form, chunk };
  const context = contextOf(problem, changed, rounding, run);
  const { batch, tokens, valueHeads, keyDim, valueDim, sequences } = context.shape;
  const size = keyDim * valueDim;
  const states = sequences.length * valueHeads;
  const out = new Float64Array(batch * tokens * valueHeads * valueDim);
  const final = new Float64Array(states * size);
  const { most, forward, backward } = passesOf(context, gradientInputs);
  const starts = backward ? stateCopies(context, most) : [];
  const gradients = backward ? gradientResults(context) : undefined;
  const stateGradient = new Float64Array(size);
  for (let index = 0; index < states; index++) {
    const head = index % valueHeads;
    const sequence = (index - head) / valueHeads;
    const state = final.subarray(index * size, (index + 1) * size);
    setState(problem.initialState, index, state);
    const keep = (stretch: number) => starts[stretch]?.set(state);
    const receive = (token: number, row: Float64Array) => {
      const at = (token * valueHeads + head) * valueDim;
      out.set(row, at);
      rounding.output('out', out, at, at + valueDim);
    };
    forward(sequence, head, state, receive, keep);
    if (!backward || !gradients) continue;
    setState(gradientInputs?.dfinalState, index, stateGradient);
    backward(sequence, head, starts, stateGradient, gradients.receiverOf(head));
    gradients.setInitial(index, stateGradient);
  }
  rounding.output('final_state', final, 0, final.length);
  return { out, final_state: final, ...gradients?.finish() };
}

/** Runs a problem's recurrence with what a kernel does around it: it makes gates, or it is Mamba-2's, whose steps are before and behind. */
function runAround(
  problem: RecurrentProblem,
  arithmetic: RecurrentArithmetic,
  rounding: RecurrentRounding,
  { mamba2: change, gates, gradientInputs, form = arithmetic.form }: FaultyRun,
  runPlain: (plain: RecurrentProblem, kept: RecurrentRounding) => RecurrentResults<Float64Array>,
): RecurrentResults<Float64Array> {
  const { mamba2 } = problem;
  if (!mamba2) return runPlain(withMadeGates(problem, rounding, gates), rounding);
  const output: RecurrentRounding['output'] = (name, values, first, end) => {
    // Outputs are rounded behind D and z, and dv and dg are no results.
    if (!['out', 'dv', 'dg'].includes(name)) rounding.output(name, values, first, end);
  };
  const { formats } = arithmetic;
  const steps = { rounding, change, arithmetic: { form, formats } };
  const plain = kernelRecurrence(problem, mamba2, steps);
  const results = runPlain(plain, { ...rounding, output });
  if (results.out) finishOutputs(results.out, problem, mamba2, rounding, change);
  if (!gradientInputs || mamba2.z) return results;
  return chainGradients(problem, mamba2, results, gradientInputs, { rounding, change });
}

/** The tokens of a kernel's chunks; 64 where it has none. */
const chunkOf = ({ form, chunk }: RecurrentArithmetic) => (form === 'chunked' ? chunk : 64);

/**
 * What a kernel of such an arithmetic computes, in fp64 with `rounding` where the kernel rounds: outputs, final states, and gradients where they are
 * asked for. With a fault, what a kernel with it computes; it leaves out what is not known. Memory beside results is that of a chunk and of one state; for gradients, of one at the beginning of each of a sequence's chunks too.
 * @throws RequestError for tensors that do not fit together
 */
export function runRecurrence(
  problem: RecurrentProblem,
  arithmetic: RecurrentArithmetic,
  rounding: RecurrentRounding,
  { gradientInputs, fault }: RecurrentRunOptions = {},
): RecurrentResults<Float64Array> {
  const executeWith =
    (by: RecurrentRounding): Execute =>
    (one, run = {}) => {
      const kept = run.formats ? roundedBefore(run.formats, by) : by;
      const given = { ...(gradientInputs && { gradientInputs }), ...run };
      return runAround(one, arithmetic, kept, given, (plain, inner) =>
        runOnce(plain, arithmetic, inner, gradientInputs, run),
      );
    };
  const execute = executeWith(rounding);
  if (fault === undefined) return execute(problem);
  const chunk = chunkOf(arithmetic);
  const runFaulty = (one: RecurrentProblem, by: Execute) =>
    ofProblem(one, fault.run({ problem: one, chunk, gradientInputs }, by));
  if (fault.isOutside === true) return runFaulty(problem, execute);
  const given = gradientInputs ? { gradientInputs } : {};
  return runAround(problem, arithmetic, rounding, given, (plain, inner) =>
    runFaulty(plain, executeWith(inner)),
  );
}

/** What faults of recurrences see of a problem: the recurrence alone, with gates as they are made. */
function plainSetting(setting: FaultSetting): FaultSetting {
  const { problem } = setting;
  const { mamba2 } = problem;
  return mamba2
    ? { ...setting, problem: kernelRecurrence(problem, mamba2, { rounding: unrounded }) }
    : { ...setting, problem: withMadeGates(problem, unrounded) };
}

/** Whether a kernel may have a fault on such a problem. */
export function faultApplies(fault: RecurrentFault, setting: FaultSetting): boolean {
  return fault.appliesTo(fault.isOutside === true ? setting : plainSetting(setting));
}

/** The faults that a kernel may have on such a problem; those of recurrences see the recurrence alone, with gates as they are made. */
export function applicableFaults(setting: FaultSetting): readonly RecurrentFault[] {
  const plain = plainSetting(setting);
  return [
    ...recurrentFaults.filter((fault) => fault.appliesTo(plain)),
    ...[...mamba2Faults, ...madeGateFaults].filter((fault) => fault.appliesTo(setting)),
  ];
}
