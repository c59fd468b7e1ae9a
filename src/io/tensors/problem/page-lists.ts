import type { IntegerTensor } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import type { ProblemInputName } from './inputs.js';

/** The target of offsets, for messages: a tensor with that many rows, or pages. */
interface OffsetTarget {
  readonly name: string;
  readonly length: number;
  readonly what: string;
}

/** @throws RequestError for offsets that do not begin with 0, decrease or end beyond their target */
export function checkOffsets(name: string, offsets: ArrayLike<number>, of: OffsetTarget): void {
  if (offsets.length === 0)
    throw new RequestError(`${name} is empty; give one number more than sequences`);
  if (offsets[0] !== 0)
    throw new RequestError(`${name} begins with ${offsets[0]}; it must begin with 0`);
  for (let i = 1; i < offsets.length; i++)
    if (offsets[i] < offsets[i - 1])
      throw new RequestError(
        `${name} decreases from ${offsets[i - 1]} to ${offsets[i]} at element ${i}; give where each sequence begins, in order`,
      );
  const last = offsets[offsets.length - 1];
  if (last > of.length)
    throw new RequestError(
      `${name} ends with ${last}, but ${of.name} has ${of.length} ${of.what}; make them agree`,
    );
}

/** The pages that hold the keys of each sequence, in order. */
export interface PageLists {
  /** The tensor that numbers the pages. */
  readonly name: string;
  /** The tensor that determines the number of sequences. */
  readonly counted: string;
  readonly batch: number;
  readonly pagesOf: (sequence: number) => number;
  /** The number of a page as it is in the file; there may be no such page. */
  readonly pageAt: (sequence: number, column: number) => number;
  /** Number of keys of each sequence; null if other tensors tell. */
  readonly lengths: readonly number[] | null;
}

/** FlashInfer's lists of pages: compressed sparse rows, and the number of keys on the last page of each. */
const csrNames = ['paged_kv_indptr', 'paged_kv_indices', 'paged_kv_last_page_len'] as const;

/** The inputs that put keys in pages. */
export const pageNames = [
  'block_table',
  ...csrNames,
] as const satisfies readonly ProblemInputName[];

/** Other inputs that give the number of keys of a sequence. */
const lengthNames = ['seqused_k', 'cu_seqlens_k', 'cu_seqlens'] as const;

/** The inputs of a problem that give the places of keys. */
export type PageInputs = Readonly<
  Partial<Record<(typeof pageNames)[number] | (typeof lengthNames)[number], IntegerTensor>>
>;

function listOf(name: (typeof csrNames)[number], inputs: PageInputs): Int32Array {
  const tensor = inputs[name];
  if (tensor === undefined) {
    const there = csrNames.find((other) => inputs[other] !== undefined);
    throw new RequestError(
      `there is ${there} but no ${name}; give ${csrNames.join(', ')}, or --ignore ${there}`,
    );
  }
  if (tensor.shape.length !== 1)
    throw new RequestError(`${name} has shape [${tensor.shape.join(', ')}]; give it rank 1`);
  return tensor.data;
}

/** @throws RequestError for inputs that repeat the lists of pages in another form */
function refuseOtherForms(inputs: PageInputs): void {
  for (const name of ['block_table', ...lengthNames] as const)
    if (inputs[name] !== undefined)
      throw new RequestError(
        `there are ${name} and paged_kv_indptr, which both say where keys are; leave one out with --ignore` +
          (name === 'cu_seqlens' ? ', and give cu_seqlens_q for the queries' : ''),
      );
}

/** @throws RequestError for a last page that holds no key, or more than its size */
function lengthOf(sequence: number, pages: number, last: number, pageSize: number): number {
  if (pages === 0) return 0;
  if (last < 1 || last > pageSize)
    throw new RequestError(
      `paged_kv_last_page_len has ${last} for sequence ${sequence}; give 1 to ${pageSize}, the page size`,
    );
  return (pages - 1) * pageSize + last;
}

/**
 * The lists of FlashInfer: `indptr` [sequences + 1] is the first of each sequence's pages in `indices`, and
 * `last_page_len` [sequences] the number of keys on its last page. A sequence without pages has no keys, whatever the
 * length of its last page (`paged_kv_t::get_length` of FlashInfer's page.cuh); entries after the last list are not
 * read. Source: FlashInfer's documentation, "KV-Cache Layout in FlashInfer" and `append_paged_kv_cache`.
 */
function csrLists(inputs: PageInputs, pageSize: number): PageLists {
  refuseOtherForms(inputs);
  const [indptr, indices, last] = csrNames.map((name) => listOf(name, inputs));
  const [ofOffsets, ofPages, ofLast] = csrNames;
  checkOffsets(ofOffsets, indptr, { name: ofPages, length: indices.length, what: 'pages' });
  const batch = indptr.length - 1;
  if (last.length !== batch)
    throw new RequestError(
      `${ofLast} is for ${last.length} sequences, ${ofOffsets} for ${batch}; make them equal`,
    );
  const pagesOf = (sequence: number): number => indptr[sequence + 1] - indptr[sequence];
  return {
    name: ofPages,
    counted: ofOffsets,
    batch,
    pagesOf,
    pageAt: (sequence, column) => indices[indptr[sequence] + column],
    lengths: Array.from({ length: batch }, (_, sequence) =>
      lengthOf(sequence, pagesOf(sequence), last[sequence], pageSize),
    ),
  };
}

function tableLists({ shape, data }: IntegerTensor): PageLists {
  if (shape.length !== 2)
    throw new RequestError(`block_table has shape [${shape.join(', ')}]; give it [batch, pages]`);
  const [batch, columns] = shape;
  return {
    name: 'block_table',
    counted: 'block_table',
    batch,
    pagesOf: () => columns,
    pageAt: (sequence, column) => data[sequence * columns + column],
    lengths: null,
  };
}

/** Whether keys are in pages. */
export function hasPages(inputs: PageInputs): boolean {
  return pageNames.some((name) => inputs[name] !== undefined);
}

/**
 * The pages that hold the keys of each sequence: from a `block_table`, or FlashInfer's lists; null for keys
 * in none.
 * @param pageSize the number of keys that fit on a page
 * @throws RequestError for lists that do not fit together, and for pages given in two forms
 */
export function pageLists(inputs: PageInputs, pageSize: number): PageLists | null {
  if (csrNames.some((name) => inputs[name] !== undefined)) return csrLists(inputs, pageSize);
  return inputs.block_table === undefined ? null : tableLists(inputs.block_table);
}
