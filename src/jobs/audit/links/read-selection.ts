import {
  headReductions,
  scoreLaws,
  type SelectionLaw,
  type SelectionProblem,
  type SelectionShape,
} from '../../../../oracles/index.js';
import {
  auditSelection,
  scoreAccumulators,
  type SelectionArithmetic,
  type SelectionPromises,
} from '../../../audit/index.js';
import type { FormatName } from '../../../formats/index.js';
import { parseBlockSize, parseBoolean, quoted, type LinkFile } from '../../../io/tensors/index.js';
import type { Tensor } from '../../../problem/index.js';
import { parseWhole } from '../../../words/index.js';
import type { LinkReader } from './link-reader.js';
import { oneOf } from './one-of.js';

const names = {
  tensors: [
    ...['indices', 'scores', 'topk_scores', 'q', 'k', 'weights', 'k_scale'],
    ...['row_start', 'row_end', 'seqused_k'],
  ],
  notes: [
    ...['law', 'count', 'causal', 'block_size', 'reduction', 'forced', 'index_base'],
    ...['sorted', 'ties', 'accumulator', 'score_format', 'mean_format'],
  ],
} as const;

/** The formats that scores and means may be rounded to. */
const roundedFormats = ['fp32', 'bf16', 'fp16'] as const satisfies readonly FormatName[];

/** A tensor with axes of size 1 where its batch, its heads or both are left out. */
function ofRank<T extends { readonly shape: readonly number[] }>(
  file: LinkFile,
  name: string,
  tensor: T,
  axes: readonly string[],
): T {
  const { shape } = tensor;
  const missing = axes.length - shape.length;
  const droppable = ['batch', 'heads'];
  const without = (...left: readonly string[]) => axes.filter((axis) => !left.includes(axis));
  if (missing === 0) return tensor;
  if (missing === 1) {
    // Without heads where those axes are left over; else without a batch.
    const isHeadless =
      without('heads').length === shape.length && axes.includes('heads') && name !== 'q';
    return {
      ...tensor,
      shape: isHeadless ? withOnes(axes, ['heads'], shape) : withOnes(axes, ['batch'], shape),
    };
  }
  if (missing === 2 && axes.includes('heads'))
    return { ...tensor, shape: withOnes(axes, droppable, shape) };
  return file.refuse(
    `tensor ${quoted(name)} has shape [${shape.join(', ')}]; give it as [${axes.join(', ')}]`,
  );
}

/** A shape with 1 for the named axes. */
function withOnes(
  axes: readonly string[],
  ones: readonly string[],
  shape: readonly number[],
): number[] {
  const left = [...shape];
  return axes.map((axis) => (ones.includes(axis) ? 1 : (left.shift() ?? 1)));
}

async function readNumbers(
  file: LinkFile,
  name: string,
  axes: readonly string[],
): Promise<Tensor | undefined> {
  return file.has(name) ? ofRank(file, name, await file.numbers(name), axes) : undefined;
}

/** The law of a file's scores: said, else by the tensors that are there. */
function lawOf(file: LinkFile): SelectionLaw {
  const said = file.note('law', oneOf(scoreLaws));
  if (said !== undefined) return said;
  if (file.has('q') && file.has('k')) {
    if (file.has('weights')) return 'indexer';
    return file.refuse(
      'has q and k, and nothing says how scores come of them; give --note law=dot, indexer, block-mean or block-bounds',
    );
  }
  if (file.has('scores')) return 'given';
  return file.refuse('has neither scores nor q and k to make them of; name them with --tensor');
}

/** What rows see: from `row_start` to `row_end`, the used length, or the causal limit. */
async function readLimits(
  file: LinkFile,
  { batch, queries, keys, candidates }: SelectionShape,
  blockSize: number,
): Promise<Pick<SelectionProblem, 'first' | 'end'>> {
  const rows = batch * queries;
  const integers = async (name: string, length: number) => {
    const { data } = await file.integers(name);
    if (data.length !== length)
      return file.refuse(
        `tensor ${quoted(name)} has ${data.length} elements, and there have to be ${length}`,
      );
    return data;
  };
  const causal = file.note('causal', parseBoolean) ?? false;
  const used = file.has('seqused_k') ? await integers('seqused_k', batch) : null;
  const first = file.has('row_start') ? await integers('row_start', rows) : new Int32Array(rows);
  const ends = file.has('row_end') ? await integers('row_end', rows) : null;
  if (ends !== null && causal) file.refuse('has row_end and is causal; give one of them');
  const end = Int32Array.from({ length: rows }, (_, row) => {
    const entry = Math.floor(row / queries);
    const length = used?.[entry] ?? keys;
    const last = ends?.[row] ?? (causal ? length - queries + (row % queries) + 1 : length);
    return Math.max(0, Math.min(candidates, Math.ceil(Math.min(last, length) / blockSize)));
  });
  const outside = [...(used ?? []), ...(ends ?? [])].find((one) => one < 0 || one > keys);
  if (outside !== undefined) file.refuse(`rows end at ${outside}, and there are ${keys} keys`);
  return { first: first.map((one) => Math.floor(one / blockSize)), end };
}

const forcedWords = ['none', 'first', 'last', 'first,last'] as const;

/** What is said of the kernel's arithmetic; by default fp32, and of fp8 on Hopper's tensor cores fewer bits. */
function arithmeticOf(file: LinkFile, q: Tensor | undefined): SelectionArithmetic {
  const isShort = q !== undefined && ['e4m3', 'e5m2'].includes(q.format);
  const inputs = roundedFormats.find((one) => one === q?.format) ?? 'fp32';
  return {
    accumulator: file.note('accumulator', oneOf(scoreAccumulators)) ?? (isShort ? 'e8m13' : 'fp32'),
    scores: file.note('score_format', oneOf(roundedFormats)) ?? 'fp32',
    means: file.note('mean_format', oneOf(roundedFormats)) ?? inputs,
  };
}

function promisesOf(file: LinkFile): SelectionPromises {
  return {
    isSorted: file.note('sorted', parseBoolean) ?? false,
    ties: file.note('ties', oneOf(['any', 'lowest-index', 'highest-index'] as const)) ?? 'any',
  };
}

async function readProblem(
  file: LinkFile,
  indices: { readonly shape: readonly number[] },
): Promise<SelectionProblem> {
  const law = lawOf(file);
  const blockSize = file.note('block_size', parseBlockSize) ?? 1;
  if (blockSize === 1 && (law === 'block-mean' || law === 'block-bounds'))
    file.refuse(
      `law is ${law}, and nothing says how many keys a block has; give --note block_size=<n>`,
    );
  const scores =
    law === 'given'
      ? await readNumbers(file, 'scores', ['batch', 'queries', 'heads', 'candidates'])
      : undefined;
  const q =
    law === 'given'
      ? undefined
      : await readNumbers(file, 'q', ['batch', 'queries', 'heads', 'dim']);
  const k =
    law === 'given' ? undefined : await readNumbers(file, 'k', ['batch', 'keys', 'heads', 'dim']);
  if (law === 'given' ? scores === undefined : q === undefined || k === undefined)
    return file.refuse(
      `law is ${law}, and ${law === 'given' ? 'scores are' : 'q or k is'} missing; name it with --tensor`,
    );
  const [batch, queries, heads, listed] = indices.shape;
  const keys = law === 'given' ? (scores?.shape[3] ?? 0) : (k?.shape[1] ?? 0);
  const candidates = law === 'given' ? keys : Math.ceil(keys / blockSize);
  const shape: SelectionShape = { batch, queries, heads, listed, keys, candidates };
  const isIndexer = law === 'indexer';
  const limits = await readLimits(file, shape, law === 'given' ? 1 : blockSize);
  const forced = file.note('forced', oneOf(forcedWords)) ?? 'none';
  const weights = isIndexer
    ? await readNumbers(file, 'weights', ['batch', 'queries', 'q heads'])
    : undefined;
  const keyScale = isIndexer ? await readNumbers(file, 'k_scale', ['batch', 'keys']) : undefined;
  return {
    law,
    shape,
    ...limits,
    count: file.note('count', (text, where) => parseWhole(text, where, 1)) ?? listed,
    forced: { first: forced.startsWith('first'), last: forced.endsWith('last') },
    reduction: file.note('reduction', oneOf(headReductions)) ?? 'sum',
    activation: 'relu',
    blockSize,
    ...(scores && { scores }),
    ...(q && { q }),
    ...(k && { k }),
    ...(weights && { weights }),
    ...(keyScale && { keyScale }),
  };
}

/** The contract of a selection as files pose it: `indices`, and `scores`, or `q` and `k` with a law. */
export const selectionLink: LinkReader = {
  names,
  judge: async (file, { rows }) => {
    const axes = ['batch', 'queries', 'heads', 'listed'];
    const given = ofRank(file, 'indices', await file.integers('indices'), axes);
    const problem = await readProblem(file, given);
    const base = file.note('index_base', oneOf(['absolute', 'row'] as const)) ?? 'absolute';
    const ofRow = problem.shape.heads * problem.shape.listed;
    const indices =
      base === 'absolute'
        ? given.data
        : given.data.map((one, i) => (one < 0 ? one : one + problem.first[Math.floor(i / ofRow)]));
    const scores = await readNumbers(file, 'topk_scores', axes);
    return auditSelection(
      { problem, results: { indices, ...(scores && { scores }) } },
      { arithmetic: arithmeticOf(file, problem.q), promises: promisesOf(file), seed: rows.seed },
    );
  },
};
