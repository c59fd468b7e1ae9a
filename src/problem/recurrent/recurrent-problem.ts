import type { Tensor } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import { recurrentFamilies, type RecurrentFamily, type RecurrentLaw } from './families.js';
import { checkGateInputs, checkShape, type GateInputs } from './made-gates.js';
import { checkMamba2Inputs, recurrentTensorName, type Mamba2Inputs } from './mamba2.js';

/** Linear attention to be computed; tensors are token by token, as its kernels take them, and count as exact. */
export interface RecurrentProblem {
  readonly family: RecurrentFamily;
  /** [batch, tokens, key heads, key dimension]. */
  readonly q: Tensor;
  /** As `q`. */
  readonly k: Tensor;
  /** [batch, tokens, value heads, value dimension]; value heads are a multiple of key heads, and neighbours share one. */
  readonly v: Tensor;
  /**
   * Natural logarithms of the decays: [batch, tokens, value heads], with a further axis of key dimensions where the family
   * has a decay for each. −∞ is a decay of 0.
   */
  readonly g?: Tensor;
  /** 2 where `g` are exponents of 2; default: of e. */
  readonly gateBase?: 2;
  /** The write strength β of a delta write, [batch, tokens, value heads]. */
  readonly beta?: Tensor;
  /** What gates are made of, in the place of `g`. */
  readonly gateInputs?: GateInputs;
  /** b, [batch, tokens, value heads], in the place of `beta`: β = σ(b). */
  readonly strengthLogits?: Tensor;
  /** Factor of the output; default: the fp64 number 1/√(key dimension), of mamba2 1. */
  readonly scale?: number;
  /** [sequences, value heads, key dimension, value dimension]; default: zeros. */
  readonly initialState?: Tensor;
  /** Ends of packed sequences, from 0 to the number of tokens, of a batch of 1; each begins with a state of its own. */
  readonly cuSeqlens?: readonly number[];
  /** The number of the first value head, where these are some heads of a problem: retention's decays go by it; default 0. */
  readonly firstHead?: number;
  /** q and k of a token and head are divided by √(Σx² + epsilon) first; default: they are not. */
  readonly normalisation?: { readonly epsilon: number };
  /** Of mamba2 alone, which has C for q, B for k, x for v, no gates of its own and no scale. */
  readonly mamba2?: Mamba2Inputs;
  /**
   * What v and the gates of a token and value head, [batch, tokens, value heads], may err by relative to themselves, of an additive write: where they stand
   * for real numbers that no format holds; default: nothing.
   */
  readonly stepErrors?: Float64Array;
  /** What gates, as `g`, and write strengths, as `beta`, may err by relative to themselves, where they stand for real numbers; default: nothing. */
  readonly gateErrors?: Float64Array;
  readonly strengthErrors?: Float64Array;
}

/** The sizes of a problem, with the tokens of each sequence. */
export interface RecurrentShape {
  readonly batch: number;
  readonly tokens: number;
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  /** First token and end of each sequence, counted over [batch, tokens]. */
  readonly sequences: readonly { readonly first: number; readonly end: number }[];
}

/** The largest key dimension that the radius is proven for. */
export const largestKeyDim = 4096;

/** The smallest epsilon beside which squares that underflow are nothing. */
const smallestEpsilon = 2 ** -900;

/** What a family needs (`wanted`) or does not have (null): a tensor, or what it is made of. */
interface OptionalInput {
  readonly name: string;
  readonly tensor: Tensor | undefined;
  /** Of what it is made otherwise, by name. */
  readonly source: { readonly name: string; readonly check: (() => void) | undefined };
  readonly wanted: readonly number[] | null;
}

/** @throws RequestError for an input that is lacking, of another shape, there twice, or not the family's */
function checkOptional(
  family: RecurrentFamily,
  { name, tensor, source, wanted }: OptionalInput,
): void {
  const given = [...(tensor ? [name] : []), ...(source.check ? [source.name] : [])];
  if (given.length === 2)
    throw new RequestError(
      `there are ${name} and ${source.name}, of which ${name} is made; give one`,
    );
  if (wanted === null) {
    if (given.length > 0)
      throw new RequestError(`${family} has no ${given[0]}; leave it out, or name another family`);
  } else if (tensor) checkShape(name, tensor, wanted);
  else if (source.check) source.check();
  else throw new RequestError(`${family} needs ${name} of shape [${wanted.join(', ')}]; give it`);
}

function sequencesOf(batch: number, tokens: number, cuSeqlens: readonly number[] | undefined) {
  if (cuSeqlens === undefined)
    return Array.from({ length: batch }, (_, i) => ({ first: i * tokens, end: (i + 1) * tokens }));
  const isAscending = cuSeqlens.every(
    (end, i) => Number.isInteger(end) && (i === 0 ? end === 0 : end >= cuSeqlens[i - 1]),
  );
  if (batch !== 1 || !isAscending || cuSeqlens.at(-1) !== tokens)
    throw new RequestError(
      `cu_seqlens [${cuSeqlens.join(', ')}] with batch ${batch} and ${tokens} tokens; give ascending ends from 0 to the number of tokens, and a batch of 1`,
    );
  return cuSeqlens.slice(1).map((end, i) => ({ first: cuSeqlens[i], end }));
}

function checkNumbers({ scale, normalisation }: RecurrentProblem, keyDim: number): void {
  if (!(keyDim >= 1 && keyDim <= largestKeyDim))
    throw new RequestError(
      `the key dimension is ${keyDim}; the oracle takes 1 to ${largestKeyDim}`,
    );
  if (scale !== undefined && !Number.isFinite(scale))
    throw new RequestError(`the scale is ${scale}; give a finite number`);
  if (normalisation && !(normalisation.epsilon >= smallestEpsilon && normalisation.epsilon <= 1))
    throw new RequestError(
      `the epsilon of the normalisation is ${normalisation.epsilon}; give one from 2^-900 to 1`,
    );
}

/** @throws RequestError for what mamba2 lacks or has not, and for its inputs in another family */
function checkMamba2({ family, mamba2, scale, normalisation }: RecurrentProblem): void {
  if (family !== 'mamba2') {
    if (mamba2) throw new RequestError(`${family} has no dt and A; leave them out`);
    return;
  }
  if (!mamba2) throw new RequestError('mamba2 needs dt and A; give them');
  if (scale !== undefined && scale !== 1)
    throw new RequestError(`mamba2 has no scale, and ${scale} is given; leave it out`);
  if (normalisation)
    throw new RequestError('mamba2 does not normalise B and C; leave the normalisation out');
}

/** The factor of a problem's outputs: 1 of mamba2, else by default the fp64 number 1/√(key dimension). */
export const recurrentScale = ({ family, scale, q }: RecurrentProblem): number =>
  scale ?? (family === 'mamba2' ? 1 : 1 / Math.sqrt(q.shape[3]));

/**
 * The sizes of a problem.
 * @throws RequestError for tensors that do not fit together, that the family lacks or does not have, and for numbers out of range
 */
export function recurrentShape(problem: RecurrentProblem): RecurrentShape {
  const { family, q, k, v, g, beta, gateInputs, strengthLogits, initialState, cuSeqlens, mamba2 } =
    problem;
  const law: RecurrentLaw = recurrentFamilies[family];
  const nameOf = (name: string) => recurrentTensorName(family, name);
  if (q.shape.length !== 4 || v.shape.length !== 4)
    throw new RequestError(
      `${nameOf('q')} has rank ${q.shape.length} and ${nameOf('v')} ${v.shape.length}; give [batch, tokens, heads, dimension]`,
    );
  const [batch, tokens, keyHeads, keyDim] = q.shape;
  const [, , valueHeads, valueDim] = v.shape;
  checkShape(nameOf('k'), k, q.shape);
  checkShape(nameOf('v'), v, [batch, tokens, valueHeads, valueDim]);
  if (!(keyHeads > 0 && valueHeads % keyHeads === 0))
    throw new RequestError(
      `${valueHeads} value heads share ${keyHeads} key heads; give a multiple of them`,
    );
  const byHead = [batch, tokens, valueHeads];
  const gates = { 'by-head': byHead, 'by-key-dimension': [...byHead, keyDim] };
  const hasGate = law.decay === 'by-head' || law.decay === 'by-key-dimension';
  const ofGates = hasGate && family !== 'mamba2' ? gates[law.decay] : null;
  checkOptional(family, {
    name: 'g',
    tensor: g,
    source: {
      name: 'A_log',
      check: gateInputs && (() => checkGateInputs(gateInputs, ofGates ?? [])),
    },
    wanted: ofGates,
  });
  checkMamba2(problem);
  if (problem.gateBase === 2 && !g)
    throw new RequestError(
      'the gates have the base 2, but there is no g; give g, or leave the base out',
    );
  if (mamba2) checkMamba2Inputs(mamba2, v.shape);
  checkOptional(family, {
    name: 'beta',
    tensor: beta,
    source: {
      name: 'b',
      check: strengthLogits && (() => checkShape('b', strengthLogits, byHead)),
    },
    wanted: law.write === 'delta' ? byHead : null,
  });
  checkNumbers(problem, keyDim);
  const sequences = sequencesOf(batch, tokens, cuSeqlens);
  if (initialState)
    checkShape(nameOf('initial_state'), initialState, [
      sequences.length,
      valueHeads,
      keyDim,
      valueDim,
    ]);
  return { batch, tokens, keyHeads, valueHeads, keyDim, valueDim, sequences };
}
