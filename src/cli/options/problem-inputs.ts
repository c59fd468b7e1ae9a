import type { ProblemInputName } from '../../io/index.js';
import { type OptionRow, optionRows } from './option-rows.js';

/** The key of an option for a tensor: `cuSeqlensQ` of `cu_seqlens_q`. */
type OptionKey<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<OptionKey<Rest>>}`
  : Name;

/** The option of one input: where its tensor is, if not under its name in the problem's file. */
function tensorOption(description: string) {
  return { argument: '<file[:tensor]>', description } as const satisfies OptionRow;
}

/** An option for each tensor that a problem may have beside q, k and v. */
const tensorOptions = {
  mask: tensorOption('booleans, true = visible, broadcast to [B, H, Sq, Sk]'),
  bias: tensorOption('added to scores after the softcap, broadcast to [B, H, Sq, Sk]'),
  alibiSlopes: tensorOption('ALiBi slopes, [H] or [B, H]'),
  sink: tensorOption('logits of keys without value, [H]'),
  ropeCos: tensorOption('cosines q and k are rotated by already, to find a fault by'),
  ropeSin: tensorOption('sines of the same, [positions, pairs]'),
  qSegments: tensorOption('segment of each query, [Sq] or [B, Sq]'),
  kSegments: tensorOption('segment of each key: a query sees those of its own'),
  kvNumBlocks: tensorOption("visible blocks of keys, as flex_attention's BlockMask"),
  kvIndices: tensorOption('which blocks they are'),
  fullKvNumBlocks: tensorOption('more visible blocks, those without a mask within'),
  fullKvIndices: tensorOption('which blocks they are'),
  kvIndex: tensorOption('the keys of each query as a list, [B, Sq, Hk or 1, n], -1 none'),
  blockIndex: tensorOption('the same of blocks of --block-size keys'),
  cuSeqlens: tensorOption('where each packed sequence begins, of queries and keys alike'),
  cuSeqlensQ: tensorOption('where the queries of each packed sequence begin, [B + 1]'),
  cuSeqlensK: tensorOption('where its keys begin, [B + 1]'),
  sequsedQ: tensorOption('how many queries of each sequence count, [B]'),
  sequsedK: tensorOption('up to which key each sequence counts, [B]'),
  leftpadK: tensorOption('how many keys before that are padding, [B]'),
  blockTable: tensorOption('pages of each sequence; k, v are [pages, page size, Hk, D]'),
  pagedKvIndptr: tensorOption("in its place FlashInfer's: where each sequence's pages begin"),
  pagedKvIndices: tensorOption('which pages they are, one list behind the other'),
  pagedKvLastPageLen: {
    argument: '<file>',
    description: 'how many keys the last page of each holds, [B]',
  },
  dropoutMask: tensorOption('booleans, true = kept, broadcast to [B, H, Sq, Sk]'),
} as const satisfies Readonly<Record<OptionKey<ProblemInputName>, OptionRow>>;

/** The key of the option of an input. */
export function inputOption(name: ProblemInputName): keyof typeof tensorOptions {
  const key = name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return key as keyof typeof tensorOptions;
}

/** The option of a descale: a number, or where its tensor is. */
function descaleOption(name: string) {
  return {
    argument: '<x|file[:tensor]>',
    description: `what elements of ${name} are multiplied by: a number, or factors`,
  } as const satisfies OptionRow;
}

/** The options for the inputs that a problem may have beside q, k and v. */
export const inputOptions = optionRows({
  ...tensorOptions,
  qDescale: descaleOption('q'),
  kDescale: descaleOption('k'),
  vDescale: descaleOption('v'),
  prefix: {
    argument: '<n>',
    description: 'keys that every query sees, whatever causal and window',
  },
  kvLayout: {
    argument: '<layout>',
    description: 'order within pages: NHD (the default) or HND, heads first',
    completes: ['NHD', 'HND'],
  },
  dropoutP: { argument: '<p>', description: 'probability with which dropout drops a weight' },
  blockQ: { argument: '<n>', description: 'queries of a block of the block mask (default: 128)' },
  blockK: { argument: '<n>', description: 'keys of a block of the block mask (default: 128)' },
  blockSize: { argument: '<n>', description: 'keys of a block of --block-index' },
  kvIndexOf: {
    argument: '<what>',
    description: 'what --kv-index counts: positions (the default) or slots of a cache',
    completes: ['positions', 'slots'],
  },
  vDim: { argument: '<n>', description: 'columns of K that are V, where there is no V' },
  lseSink: {
    description: 'the LSE has the sink (the default)',
    without: 'the LSE is without the sink',
  },
  tensor: {
    argument: '<name=:tensor>',
    description: 'a tensor that the file has under another name, as q=:query (repeatable)',
    repeats: true,
  },
  ignore: {
    argument: '<name>',
    description: "leave out a tensor or note of the problem's file (repeatable)",
    repeats: true,
    completes: 'problem-input',
  },
});
