import type { Tensor } from '../../formats/index.js';
import { recurrentFamilies, type RecurrentFamily, type RecurrentLaw } from './families.js';
import { checkShape } from './made-gates.js';
import type { RecurrentProblem, RecurrentShape } from './recurrent-problem.js';

/** The gradients that a backward pass of a recurrence begins with; a final state without one counts as unused. */
export interface RecurrentGradientInputs {
  /** dO, [batch, tokens, value heads, value dimension]. */
  readonly dout: Tensor;
  /** dS_T, [sequences, value heads, key dimension, value dimension]. */
  readonly dfinalState?: Tensor | undefined;
}

/**
 * Checks what gradients begin with against a problem.
 * @throws RequestError for shapes that are not those of its output and final state
 */
export function checkRecurrentGradientInputs(
  { dout, dfinalState }: RecurrentGradientInputs,
  { batch, tokens, valueHeads, keyDim, valueDim, sequences }: RecurrentShape,
): void {
  checkShape('dout', dout, [batch, tokens, valueHeads, valueDim]);
  if (dfinalState)
    checkShape('dfinal_state', dfinalState, [sequences.length, valueHeads, keyDim, valueDim]);
}

/** A named result of a kernel of linear attention. */
export interface RecurrentQuantity {
  /** Its words in sentences, in tables, and for its elements. */
  readonly prose: string;
  readonly label: string;
  readonly parts: string;
  /** `tokens`: [batch, tokens, heads, …]; `states`: [sequences, value heads, key dimension, value dimension]; `heads`: [value heads, …]. */
  readonly of: 'tokens' | 'states' | 'heads';
  /** Whether it is made by a backward pass. */
  readonly isGradient: boolean;
  /** The command line's option for the file that it is in, in camel case. */
  readonly option: string;
}

/** The results of kernels of linear attention by the names of their tensors, in the order of reports. */
export const recurrentQuantities = {
  out: {
    prose: 'the output',
    label: 'output',
    parts: 'elements',
    of: 'tokens',
    isGradient: false,
    option: 'output',
  },
  final_state: {
    prose: 'the final state',
    label: 'final state',
    parts: 'elements of the final state',
    of: 'states',
    isGradient: false,
    option: 'finalState',
  },
  dq: {
    prose: 'dQ',
    label: 'dQ',
    parts: 'elements of dQ',
    of: 'tokens',
    isGradient: true,
    option: 'dq',
  },
  dk: {
    prose: 'dK',
    label: 'dK',
    parts: 'elements of dK',
    of: 'tokens',
    isGradient: true,
    option: 'dk',
  },
  dv: {
    prose: 'dV',
    label: 'dV',
    parts: 'elements of dV',
    of: 'tokens',
    isGradient: true,
    option: 'dv',
  },
  dg: {
    prose: 'dg',
    label: 'dg',
    parts: 'elements of dg',
    of: 'tokens',
    isGradient: true,
    option: 'dg',
  },
  dbeta: {
    prose: 'dβ',
    label: 'dβ',
    parts: 'elements of dβ',
    of: 'tokens',
    isGradient: true,
    option: 'dbeta',
  },
  dinitial_state: {
    prose: 'the gradient of the initial state',
    label: 'dS_0',
    parts: 'elements of dS_0',
    of: 'states',
    isGradient: true,
    option: 'dinitialState',
  },
  ddt: {
    prose: 'ddt',
    label: 'ddt',
    parts: 'elements of ddt',
    of: 'tokens',
    isGradient: true,
    option: 'ddt',
  },
  dA: {
    prose: 'dA',
    label: 'dA',
    parts: 'elements of dA',
    of: 'heads',
    isGradient: true,
    option: 'da',
  },
  dD: {
    prose: 'dD',
    label: 'dD',
    parts: 'elements of dD',
    of: 'heads',
    isGradient: true,
    option: 'dd',
  },
  ddt_bias: {
    prose: 'the gradient of dt_bias',
    label: 'ddt_bias',
    parts: 'elements of ddt_bias',
    of: 'heads',
    isGradient: true,
    option: 'ddtBias',
  },
} as const satisfies Readonly<Record<string, RecurrentQuantity>>;

/** The name of one of {@link recurrentQuantities}. */
export type RecurrentQuantityName = keyof typeof recurrentQuantities;

/** The names of {@link recurrentQuantities} in the order of reports. */
export const recurrentQuantityNames = Object.keys(
  recurrentQuantities,
) as readonly RecurrentQuantityName[];

/** What Mamba-2 calls gradients, whose tensors have names of its own. */
const mamba2Labels: Readonly<Partial<Record<RecurrentQuantityName, string>>> = {
  dq: 'dC',
  dk: 'dB',
  dv: 'dx',
};

/** A quantity of {@link recurrentQuantities} in the words of a family. */
export function recurrentQuantity(
  name: RecurrentQuantityName,
  family: RecurrentFamily,
): RecurrentQuantity {
  const quantity = recurrentQuantities[name];
  const label = family === 'mamba2' ? mamba2Labels[name] : undefined;
  return label === undefined
    ? quantity
    : { ...quantity, prose: label, label, parts: `elements of ${label}` };
}

/** Results of a kernel by name; it may leave any out. */
export type RecurrentResults<T = Tensor> = Readonly<Partial<Record<RecurrentQuantityName, T>>>;

/**
 * The shape of a quantity's tensor, token by token as kernels write it; null where the problem has no such quantity: no gate or β of its own,
 * or no initial state.
 */
export function recurrentQuantityShape(
  name: RecurrentQuantityName,
  {
    family,
    initialState,
    mamba2,
    gateInputs,
    strengthLogits,
  }: Pick<RecurrentProblem, 'family' | 'initialState' | 'mamba2' | 'gateInputs' | 'strengthLogits'>,
  { batch, tokens, keyHeads, valueHeads, keyDim, valueDim, sequences }: RecurrentShape,
): readonly number[] | null {
  const { decay, write }: RecurrentLaw = recurrentFamilies[family];
  const byHead = [batch, tokens, valueHeads];
  switch (name) {
    case 'out':
    case 'dv':
      return [...byHead, valueDim];
    case 'dq':
    case 'dk':
      return [batch, tokens, keyHeads, keyDim];
    case 'dg':
      if (mamba2 || gateInputs) return null;
      if (decay === 'by-head') return byHead;
      return decay === 'by-key-dimension' ? [...byHead, keyDim] : null;
    case 'dbeta':
      return write === 'delta' && !strengthLogits ? byHead : null;
    case 'final_state':
      return [sequences.length, valueHeads, keyDim, valueDim];
    case 'ddt':
      return mamba2 ? byHead : null;
    case 'dA':
      return mamba2 ? [valueHeads] : null;
    case 'dD':
      return mamba2?.d?.shape ?? null;
    case 'ddt_bias':
      return mamba2?.dtBias ? [valueHeads] : null;
    case 'dinitial_state':
      return initialState ? [sequences.length, valueHeads, keyDim, valueDim] : null;
  }
}
