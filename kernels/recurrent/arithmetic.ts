import type { FormatName } from '../../src/formats/index.js';

/**
 * Values of a kernel of linear attention that it may keep in a format of their own, by name. In the chunked form C tokens are taken
 * together: G are the sums of a chunk's gates up to each token, A the strictly lower triangle of β·(K e^(G_i − G_j))Kᵀ, T = (I + A)^−1,
 * W = T(β K e^G), U = T(β V), N = U − W S what is written, P the lower triangle of Q Kᵀ e^(G_i − G_j), and O = scale·((Q e^G)S + P N).
 */
export const recurrentValues = [
  /** The state, and in backward passes its gradient, from token to token or from chunk to chunk. */
  'state',
  /** The state as an operand of products, where it is another copy. */
  'state-operand',
  /** Sums of gates, and the gates of single tokens where there are no sums. */
  'gates',
  /** Δ of Mamba-2, and what it is made of. */
  'time-step',
  /** Decays: exponentials of gates or of their differences. */
  'decay',
  /** Normalised queries and keys. */
  'normalised',
  /** Operands of products that are made from inputs: β k e^G, β v, q e^G, k e^(G_C − G). */
  'operand',
  /** Keys and queries with decays by key dimension, as operands of gradients within a chunk. */
  'decayed-operand',
  /** A, as it goes into the inverse. */
  'triangle',
  /** T. */
  'inverse',
  /** W, U. */
  'write-factor',
  /** What is written beside the key: N, or v, or β(v − Sᵀk). */
  'write',
  /** v − Sᵀk of a delta write, as the recurrent form stores it for its gradients. */
  'stored-write',
  /** What is written as an operand of products: N e^(G_C − G). */
  'write-operand',
  /** P, as an operand. */
  'intra',
  /** Gradients of states as operands of products, where they are another copy: in the chunked form. */
  'state-gradient',
  /** Gradients of what is written, of W and of U. */
  'write-gradient',
  /** Gradients of P, T and A, and dO Nᵀ. */
  'intra-gradient',
  /** Sums of products, before they become one of the above. */
  'sum',
] as const;

/** One of {@link recurrentValues}. */
export type RecurrentValue = (typeof recurrentValues)[number];

/** Values that a chunked kernel keeps in the format of its inputs, since its products take them so. */
export const recurrentOperands: readonly RecurrentValue[] = [
  'state-operand',
  'normalised',
  'operand',
  'inverse',
  'write-factor',
  'write',
  'write-operand',
  'intra',
  'state-gradient',
  'write-gradient',
  'intra-gradient',
];

/** The order of a kernel's operations and the formats of its values. */
export interface RecurrentArithmetic {
  readonly form: 'recurrent' | 'chunked';
  /** Tokens of a chunk; of the chunked form. */
  readonly chunk: number;
  /** The order in which T is made: row by row, or by diagonal blocks of so many rows that are then joined. */
  readonly inverse: 'substitution' | { readonly block: number };
  /**
   * The order in which products are summed in fp32, a term at a time: over the key or value dimension, and over a chunk's tokens. Default: a sum is rounded
   * once, where it ends.
   */
  readonly accumulation?: 'in-order' | 'reversed';
  /**
   * Value dimensions that a program of the recurrent form's gradients takes; default: all. Of several, each stores its share of dQ, dK and dβ, and the
   * shares are added.
   */
  readonly valueBlock?: number;
  readonly formats: Readonly<Record<RecurrentValue, FormatName>>;
  /** The format of each result, by the name of its tensor; default: that of `fp32`. */
  readonly outputs: Readonly<Partial<Record<string, FormatName>>>;
}

/** Rounds values of a kernel, or draws what rounding may make of them, in place. */
export interface RecurrentRounding {
  /** The elements from `first` to `end` of `values`, which are such values. */
  readonly value: (of: RecurrentValue, values: Float64Array, first: number, end: number) => void;
  /** The same of a result, by the name of its tensor. */
  readonly output: (name: string, values: Float64Array, first: number, end: number) => void;
  /** What cutting both operands makes of dots of queries and of keys with keys that are decayed by key dimension, within a chunk; default: nothing. */
  readonly decayedDots?: (dots: Float64Array, first: number, end: number) => void;
  /** e^x of a single token's gate, before it is rounded; default: to fp64's precision. */
  readonly exponential?: (x: number) => number;
}
