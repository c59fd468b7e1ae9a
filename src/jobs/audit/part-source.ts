import {
  decodeQuantity,
  firstRowOf,
  headRows,
  partShape,
  type GivenQuantity,
  type KernelOutputs,
  type Part,
  type PartTensors,
} from '../../audit/index.js';
import { sliceRows } from '../../formats/index.js';
import type { TensorFile, TensorFiles } from '../../io/tensors/index.js';
import { problemShape, quantities, type Problem, type Tensor } from '../../problem/index.js';
import { lazily } from '../../reuse.js';
import type { KeysFile } from './sampled-file.js';
import { share, unshare, type Shared } from './shared-values.js';

/** A tensor whose elements stay in a file. */
type Unread = Omit<Tensor, 'data'>;

/** A problem with a kernel's outputs, in memory that threads share. */
export interface SharedProblem {
  readonly problem: Shared<Omit<Problem, 'k' | 'v'>>;
  readonly keys:
    | { readonly k: Shared<Tensor>; readonly v: Shared<Tensor> }
    | { readonly file: KeysFile; readonly k: Unread; readonly v: Unread };
  readonly out: Shared<Tensor>;
  readonly lse: Shared<Tensor> | null;
}

/** A problem without some of its members: its posed form has no effect on the judgement, and is as large. */
function withoutMembers(problem: Problem, left: readonly (keyof Problem)[]): Partial<Problem> {
  const names = Object.keys(problem) as (keyof Problem)[];
  return Object.fromEntries(
    names.filter((name) => !left.includes(name)).map((name) => [name, problem[name]]),
  );
}

function unread({ format, shape }: Tensor): Unread {
  return { format, shape };
}

/** Copies a problem, without its posed form, to memory that threads share. */
export function shareInputs(problem: Problem): Shared<Problem> {
  return share(withoutMembers(problem, ['stored', 'quantisedFrom']) as Problem);
}

/**
 * Copies a problem and outputs to memory that threads share.
 * @param file the file to read keys and values from, if the problem does not have them
 */
export function shareProblem(
  problem: Problem,
  { out, lse }: KernelOutputs,
  file: KeysFile | null = null,
): SharedProblem {
  const { k, v } = problem;
  return {
    problem: share(
      withoutMembers(problem, ['stored', 'quantisedFrom', 'k', 'v']) as Omit<Problem, 'k' | 'v'>,
    ),
    keys: file === null ? { k: share(k), v: share(v) } : { file, k: unread(k), v: unread(v) },
    out: share(out),
    lse: lse === null ? null : share(lse),
  };
}

const [outQuantity, lseQuantity] = quantities;

type ReadOutputs = (part: Part) => Pick<PartTensors, 'out' | 'lse'>;

/** Returns a function that decodes the outputs of parts. */
function outputsReader(
  { out, lse }: SharedProblem,
  shape: ReturnType<typeof problemShape>,
): ReadOutputs {
  const output = unshare(out);
  const ofLse = lazily(() =>
    lse === null ? null : decodeQuantity(lseQuantity, unshare(lse), shape),
  );
  return (part) => {
    const { head, rows } = part;
    const all = ofLse();
    if (head === null) return { out: decodeQuantity(outQuantity, output, shape), lse: all };
    const first = firstRowOf(part, shape);
    const ofRows = (given: GivenQuantity): GivenQuantity => ({
      ...given,
      values: given.values.subarray(first, first + rows),
    });
    return {
      out: decodeQuantity(outQuantity, sliceRows(output, first, rows), partShape(shape, part)),
      lse: all === null ? null : ofRows(all),
    };
  };
}

/** Reads the keys or the values of a kv head. */
async function readTensor(
  file: TensorFile,
  name: 'k' | 'v',
  { shape, format }: Unread,
  kv: number,
): Promise<Tensor> {
  const [keys, dim] = shape.slice(-2);
  const data = await file.readElements(name, kv * keys * dim, keys * dim);
  return { format, shape: [1, 1, keys, dim], data };
}

/** Reads the keys and values of a kv head. */
async function readHead(
  { file: { path, formats }, k, v }: Extract<SharedProblem['keys'], { readonly file: KeysFile }>,
  kv: number,
  files: TensorFiles,
): Promise<Pick<Problem, 'k' | 'v'>> {
  const file = await files.open(path, { formats });
  try {
    return {
      k: await readTensor(file, 'k', k, kv),
      v: await readTensor(file, 'v', v, kv),
    };
  } finally {
    await file.close();
  }
}

/**
 * Returns a function that reads the parts of a shared problem; for a problem in a file, parts of one head.
 * @param files that the keys are read from which are not in memory
 */
export function readShared(
  source: SharedProblem,
  files: TensorFiles,
): (part: Part) => Promise<PartTensors> {
  const { keys } = source;
  const rest = unshare(source.problem);
  if (!('file' in keys)) {
    const whole = { ...rest, k: unshare(keys.k), v: unshare(keys.v) };
    const shape = problemShape(whole);
    const outputs = outputsReader(source, shape);
    return async (part) => {
      const { head, firstRow, rows } = part;
      const problem = head === null ? whole : headRows(whole, shape, head, firstRow, rows);
      return { problem, ...outputs(part) };
    };
  }
  const shape = problemShape({ ...rest, ...(keys as unknown as Pick<Problem, 'k' | 'v'>) });
  const outputs = outputsReader(source, shape);
  // The one that was read last: the parts of a head come one after the other.
  let last: { readonly kv: number; readonly tensors: Pick<Problem, 'k' | 'v'> } | null = null;
  const { heads, kvHeads, groupSize, queries } = shape;
  const ofOne = { ...shape, batch: 1, heads: 1, kvHeads: 1, groupSize: 1 };
  return async (part) => {
    const { head, firstRow, rows } = part;
    if (head === null) throw new Error('a part of a problem in a file is of one head');
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    if (last?.kv !== kv) {
      last = null;
      last = { kv, tensors: await readHead(keys, kv, files) };
    }
    const first = head * queries;
    const problem = {
      ...rest,
      ...last.tensors,
      q: sliceRows(rest.q, first, queries),
      rows: { ...rest.rows!, queries: rest.rows!.queries.subarray(first, first + queries) },
    };
    return { problem: headRows(problem, ofOne, 0, firstRow, rows), ...outputs(part) };
  };
}
