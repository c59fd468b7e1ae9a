import { chunkParts } from '../chunk-work.js';
import { additiveWriter, type WriterContext } from '../chunk-writes.js';
import { deltaWriter } from '../delta-writes.js';
import { setColumnNorms } from '../matrices.js';
import { setSpreads, type StateBounds } from '../state-bounds.js';
import { additiveTokens, deltaTokens, type TokenObserver } from '../token-errors.js';
import type { TokenBlock } from '../token-blocks.js';
import { chunkGradients } from './chunk-gradients.js';
import type { BlockGradients, StateGradient } from './gradient-rows.js';
import { tokenGradients } from './token-gradients.js';

/** The state before a block, and what a kernel's errs by. */
export interface BlockStart {
  readonly exact: Float64Array;
  readonly errors: Float64Array | null;
  readonly norms: Float64Array;
}

/** Bounds a block's gradients: from the state before it, and the gradient of that behind it, which is taken to before it. */
export type BlockBack = (
  block: TokenBlock,
  start: BlockStart,
  gradient: StateGradient,
  outputs: Float64Array,
  rows: BlockGradients,
) => void;

const copyOf = ({ exact, errors, norms }: BlockStart): StateBounds => ({
  exact: exact.slice(),
  errors: errors?.slice() ?? null,
  norms: norms.slice(),
});

/** The bounder of a form's gradients. */
export function blockBack(context: WriterContext, most: number, isDelta: boolean): BlockBack {
  return context.arithmetic.form === 'chunked'
    ? chunksBack(context, most, isDelta)
    : tokensBack(context, most, isDelta);
}

/** In chunks. */
function chunksBack(context: WriterContext, most: number, isDelta: boolean): BlockBack {
  const { keyDim } = context.shape;
  const { work, begin } = chunkParts(context, most);
  const writeDelta = isDelta ? deltaWriter(context, most) : null;
  const writeAdditive = additiveWriter(context, most);
  const back = chunkGradients(context, most);
  const spreads = new Float64Array(most);
  return (block, start, gradient, outputs, rows) => {
    const read = begin(block, copyOf(start), isDelta);
    const { matrices, terms } = work;
    const writes = writeDelta?.(block, matrices, terms, read) ?? writeAdditive(block);
    setSpreads(spreads, block, keyDim, isDelta);
    const spread = spreads.subarray(0, block.count).reduce((a, b) => a * b, 1);
    back({ block, work, writes, read, gradient, outputs, rows, spread });
  };
}

/**
 * The arithmetic of a backward pass token by token, which reads what was written as the forward stored it, and makes the states of that anew, from the
 * first token on: whatever rounds, rounds twice.
 */
export function readAgain(context: WriterContext): WriterContext {
  const { roundings } = context;
  const { unit, least } = roundings.of.state;
  const state = { ...roundings.of.state, unit: 2 * unit, least: 2 * least };
  const of = { ...roundings.of, state, write: roundings.of['stored-write'] };
  const sum = (count: number) => 2 * roundings.sum(count);
  return { ...context, roundings: { ...roundings, operation: 2 * roundings.operation, sum, of } };
}

/** Token by token: the block runs forward again, and its tokens are kept. */
function tokensBack(context: WriterContext, most: number, isDelta: boolean): BlockBack {
  const { keyDim, valueDim } = context.shape;
  const column = () => new Float64Array(valueDim);
  const records = Array.from({ length: most }, () => ({
    state: new Float64Array(keyDim * valueDim),
    written: column(),
    largest: column(),
    normsBefore: column(),
    norms: column(),
  }));
  const observe: TokenObserver = (t, state, { written, largest, norms }) => {
    const record = records[t];
    record.state.set(state);
    record.written.set(written);
    record.largest.set(largest);
    record.norms.set(norms);
    if (t + 1 < most) records[t + 1].normsBefore.set(norms);
  };
  const forward = (isDelta ? deltaTokens : additiveTokens)(readAgain(context), most, observe);
  const back = tokenGradients(context, isDelta);
  return (block, start, gradient, outputs, rows) => {
    if (start.errors) setColumnNorms(records[0].normsBefore, start.errors);
    else records[0].normsBefore.set(start.norms);
    forward(block, copyOf(start));
    for (let t = block.count - 1; t >= 0; t--)
      back({ block, t, record: records[t], gradient, outputs, rows });
  };
}
