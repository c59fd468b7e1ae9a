import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  type FormatName,
} from '../../../src/formats/index.js';
import {
  recurrentShape,
  type Mamba2Inputs,
  type RecurrentFamily,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type Tensor,
} from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import {
  axesOf,
  inputNames,
  pickElements,
  type Axis,
  type AxisSizes,
  type InputName,
  type Picks,
} from './axes.js';

/** A problem and, where gradients are wanted, what a backward pass begins with. */
export interface PosedRecurrence {
  readonly problem: RecurrentProblem;
  readonly gradients?: RecurrentGradientInputs | undefined;
}

/** An input as numbers that its format has. */
export interface PlainInput {
  readonly format: FormatName;
  readonly values: Float64Array;
}

/** A problem as plain numbers, which laws and simplifications change. */
export interface PlainRecurrence {
  readonly family: RecurrentFamily;
  /** Tokens of each sequence; of a batch they are all alike. */
  readonly lengths: readonly number[];
  readonly isPacked: boolean;
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  /** Null for the default. */
  readonly scale: number | null;
  /** Of the normalisation; null where there is none. */
  readonly epsilon: number | null;
  /** How mamba2 makes Δ of dt; null for the other families. */
  readonly steps: Pick<Mamba2Inputs, 'dtSoftplus' | 'dtLimit'> | null;
  /** Inputs by name, in the order of `axesOf`; q, k and v always. */
  readonly inputs: Readonly<
    { q: PlainInput; k: PlainInput; v: PlainInput } & Partial<Record<InputName, PlainInput>>
  >;
}

/** How much a problem has along each axis. */
export function axisSizes(plain: Omit<PlainRecurrence, 'inputs'>): AxisSizes {
  const { lengths, keyHeads, valueHeads, keyDim, valueDim } = plain;
  return {
    token: lengths.reduce((sum, length) => sum + length, 0),
    sequence: lengths.length,
    keyHead: keyHeads,
    valueHead: valueHeads,
    keyDim,
    valueDim,
  };
}

/** The inputs that a problem has, in the order of {@link inputNames}. */
export function givenInputs({
  inputs,
}: PlainRecurrence): readonly (readonly [InputName, PlainInput])[] {
  return inputNames.flatMap((name) => {
    const input = inputs[name];
    return input === undefined ? [] : [[name, input] as const];
  });
}

/** The problem with other values of some inputs. */
export function withValues(
  plain: PlainRecurrence,
  values: Readonly<Partial<Record<InputName, Float64Array>>>,
): PlainRecurrence {
  const changed = givenInputs(plain).map(
    ([name, { format, values: before }]) =>
      [name, { format, values: values[name] ?? before }] as const,
  );
  return { ...plain, inputs: { ...plain.inputs, ...Object.fromEntries(changed) } };
}

/** The problem without some inputs. */
export function withoutInputs(
  plain: PlainRecurrence,
  names: readonly InputName[],
): PlainRecurrence {
  const kept = givenInputs(plain).filter(([name]) => !names.includes(name));
  const { q, k, v } = plain.inputs;
  return { ...plain, inputs: { q, k, v, ...Object.fromEntries(kept) } };
}

/**
 * A problem of some tokens, heads and dimensions of another.
 * @param lengths those of the picked tokens, if tokens or sequences are picked
 */
export function pickParts(
  plain: PlainRecurrence,
  picks: Picks,
  lengths: readonly number[] = plain.lengths,
): PlainRecurrence {
  const sizes = axisSizes(plain);
  const picked = givenInputs(plain).map(([name, { format, values }]) => {
    const kept = pickElements(values, axesOf(name, plain.family), sizes, picks);
    return [name, { format, values: kept }] as const;
  });
  const size = (axis: Axis): number => picks[axis]?.length ?? sizes[axis];
  return {
    ...plain,
    lengths,
    keyHeads: size('keyHead'),
    valueHeads: size('valueHead'),
    keyDim: size('keyDim'),
    valueDim: size('valueDim'),
    inputs: { ...plain.inputs, ...Object.fromEntries(picked) },
  };
}

/** The first token and the end of each sequence. */
export function sequenceRanges(
  lengths: readonly number[],
): readonly { readonly first: number; readonly end: number }[] {
  let end = 0;
  return lengths.map((length) => {
    const first = end;
    end += length;
    return { first, end };
  });
}

function encode({ format, values }: PlainInput, shape: readonly number[]): Tensor {
  return { format, shape, data: encodeFromFloat64(formats[format], values) };
}

/** The inputs of Mamba-2 that a problem may leave out. */
function mamba2Options({
  D: d,
  z,
  dt_bias: dtBias,
}: Readonly<Partial<Record<InputName, Tensor>>>): Pick<Mamba2Inputs, 'd' | 'z' | 'dtBias'> {
  return { ...(d && { d }), ...(z && { z }), ...(dtBias && { dtBias }) };
}

/** The problem in the form that kernels take, and what its gradients begin with where it has a dO. */
export function poseRecurrence(plain: PlainRecurrence): PosedRecurrence {
  const { family, lengths, isPacked, scale, epsilon, steps } = plain;
  const sizes = axisSizes(plain);
  const batch = isPacked ? 1 : lengths.length;
  const shapeOf = (name: InputName): readonly number[] => {
    const shape = axesOf(name, family).map((axis) => sizes[axis]);
    // Tokens are counted over a batch of its own axis.
    return shape[0] === sizes.token && axesOf(name, family)[0] === 'token'
      ? [batch, isPacked ? sizes.token : (lengths[0] ?? 0), ...shape.slice(1)]
      : shape;
  };
  const tensors = Object.fromEntries(
    givenInputs(plain).map(([name, input]) => [name, encode(input, shapeOf(name))]),
  ) as Record<'q' | 'k' | 'v', Tensor> & Partial<Record<InputName, Tensor>>;
  const {
    q,
    k,
    v,
    g,
    beta,
    initial_state: initialState,
    dout,
    dfinal_state: dfinalState,
    dt,
    A: a,
  } = tensors;
  const problem: RecurrentProblem = {
    family,
    q,
    k,
    v,
    ...(g === undefined ? {} : { g }),
    ...(beta === undefined ? {} : { beta }),
    ...(scale === null ? {} : { scale }),
    ...(initialState === undefined ? {} : { initialState }),
    ...(isPacked ? { cuSeqlens: [0, ...sequenceRanges(lengths).map(({ end }) => end)] } : {}),
    ...(epsilon === null ? {} : { normalisation: { epsilon } }),
    ...(steps && dt && a ? { mamba2: { ...steps, dt, a, ...mamba2Options(tensors) } } : {}),
  };
  if (dout === undefined) return { problem };
  return {
    problem,
    gradients: { dout, ...(dfinalState === undefined ? {} : { dfinalState }) },
  };
}

/** @throws RequestError for a D of [heads, head dimension], which plain problems have no word for */
function rejectWideD({ mamba2 }: RecurrentProblem): void {
  if (mamba2?.d && mamba2.d.shape.length !== 1)
    throw new RequestError(
      `D has shape [${mamba2.d.shape.join(', ')}]; laws are tried with one of [heads]`,
    );
}

/**
 * The numbers of a problem.
 * @throws RequestError for tensors that do not fit together, and for a D of [heads, head dimension]
 */
export function plainRecurrence({ problem, gradients }: PosedRecurrence): PlainRecurrence {
  const shape = recurrentShape(problem);
  rejectWideD(problem);
  const { family, scale, cuSeqlens, normalisation, mamba2 } = problem;
  const decoded = (tensor: Tensor | undefined): PlainInput | undefined =>
    tensor && { format: tensor.format, values: decodeTensor(tensor) };
  const optional = {
    g: decoded(problem.g),
    beta: decoded(problem.beta),
    dt: decoded(mamba2?.dt),
    A: decoded(mamba2?.a),
    D: decoded(mamba2?.d),
    z: decoded(mamba2?.z),
    dt_bias: decoded(mamba2?.dtBias),
    initial_state: decoded(problem.initialState),
    dout: decoded(gradients?.dout),
    dfinal_state: decoded(gradients?.dfinalState),
  };
  const given = Object.entries(optional).filter(([, input]) => input !== undefined);
  const { keyHeads, valueHeads, keyDim, valueDim } = shape;
  const of = ({ format, ...tensor }: Tensor): PlainInput => ({
    format,
    values: decodeTensor({ format, ...tensor }),
  });
  return {
    family,
    lengths: shape.sequences.map(({ first, end }) => end - first),
    isPacked: cuSeqlens !== undefined,
    keyHeads,
    valueHeads,
    keyDim,
    valueDim,
    scale: scale ?? null,
    epsilon: normalisation?.epsilon ?? null,
    steps: mamba2 ? { dtSoftplus: mamba2.dtSoftplus, dtLimit: mamba2.dtLimit } : null,
    inputs: { q: of(problem.q), k: of(problem.k), v: of(problem.v), ...Object.fromEntries(given) },
  };
}
