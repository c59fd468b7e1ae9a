import type { WriterContext } from '../chunk-writes.js';
import { compose } from '../roundings.js';
import type { TokenBlock } from '../token-blocks.js';
import type { BlockGradients, StateGradient } from './gradient-rows.js';

/** What a token's forward left: its state behind it; by column w, |ŵ| at most, and what the state before and behind it errs by in the norm. */
export interface TokenRecord {
  readonly state: Float64Array;
  readonly written: Float64Array;
  readonly largest: Float64Array;
  readonly normsBefore: Float64Array;
  readonly norms: Float64Array;
}

/** A token's step back. */
export interface StepBack {
  readonly block: TokenBlock;
  readonly t: number;
  readonly record: TokenRecord;
  /** Behind the token; taken to before it. */
  readonly gradient: StateGradient;
  /** dO of the block, [n, value dimension]. */
  readonly outputs: Float64Array;
  readonly rows: BlockGradients;
}

/** By column, numbers of one step back. */
function columnsOf(valueDim: number) {
  const row = () => new Float64Array(valueDim);
  return {
    /** ‖G‖, ‖P‖ and what P, the decayed state, errs by. */
    sizes: row(),
    decayedSizes: row(),
    decayed: row(),
    /** dw, what it errs by by its own roundings, and in all. */
    write: row(),
    own: row(),
    whole: row(),
    /** ‖P's gradient's error‖. */
    spread: row(),
  };
}

/** The shares and norms of one token. */
export interface TokenShares {
  readonly key: number;
  readonly query: number;
  readonly strength: number;
  /** ‖I − β k kᵀ‖. */
  readonly spread: number;
  readonly largestDecay: number;
  /** The largest relative error of a decayed row. */
  readonly ofDecay: number;
}

/** The shares of token t of a block. */
export function sharesOf(
  { k, q, beta, decay, gates, gateErrors }: TokenBlock,
  t: number,
  isDelta: boolean,
  { inputs, shape, roundings }: WriterContext,
): TokenShares {
  let [key, query, largestDecay, ofDecay] = [0, 0, 0, 0];
  for (let i = t * shape.keyDim; i < (t + 1) * shape.keyDim; i++) {
    key += k[i] ** 2;
    query += q[i] ** 2;
    largestDecay = Math.max(largestDecay, decay[i]);
    ofDecay = Math.max(
      ofDecay,
      compose(inputs.ofDecay(gates[i], 1, gateErrors[t]), 2 * roundings.operation),
    );
  }
  const strength = isDelta ? beta[t] : 0;
  return {
    key: Math.sqrt(key),
    query: Math.sqrt(query),
    strength,
    spread: Math.max(1, Math.abs(1 - strength * key)),
    largestDecay,
    ofDecay,
  };
}

/** Adds numbers, and the magnitudes of the shares that neighbours of so many columns have. */
class Shares {
  value = 0;
  sizes = 0;
  #share = 0;
  readonly #block: number;

  constructor(block: number) {
    this.#block = block;
  }

  clear(): void {
    this.value = 0;
    this.sizes = 0;
    this.#share = 0;
  }

  add(term: number, column: number): void {
    if (column % this.#block === 0) this.close();
    this.#share += term;
  }

  close(): void {
    this.value += this.#share;
    this.sizes += Math.abs(this.#share);
    this.#share = 0;
  }
}

/** What steps back of a problem share. */
export function tokenMachine(context: WriterContext, isDelta: boolean) {
  const { roundings, inputs, shape } = context;
  const { keyDim, valueDim } = shape;
  const { operation, of } = roundings;
  const sum = roundings.sum(Math.max(keyDim, valueDim) + 8);
  const stored = compose(4 * operation, of['state-gradient'].unit, of.state.unit);
  const vector = compose(inputs.normalised, 3 * operation);
  const columns = columnsOf(valueDim);
  const decayedState = new Float64Array(keyDim * valueDim);
  const first = new Shares(inputs.valueBlock);
  const second = new Shares(inputs.valueBlock);
  return {
    context,
    scale: context.scale,
    isDelta,
    inputs,
    keyDim,
    valueDim,
    operation,
    of,
    sum,
    stored,
    vector,
    columns,
    decayedState,
    first,
    second,
  };
}

/** What {@link tokenMachine} returns. */
export type TokenMachine = ReturnType<typeof tokenMachine>;
