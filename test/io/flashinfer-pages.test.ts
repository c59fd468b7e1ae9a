import { describe, expect, it } from 'vitest';
import { encodeFromFloat64, formats } from '../../src/formats/index.js';
import {
  openTensorFile,
  readProblem,
  writeSafetensors,
  type ProblemSettings,
} from '../../src/io/index.js';
import type { IntegerTensor, StoredTensors, Tensor } from '../../src/problem/index.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();

function integers(...values: number[]): IntegerTensor {
  return { shape: [values.length], data: Int32Array.from(values) };
}

function fp32(shape: readonly number[], values: readonly number[]): Tensor {
  return {
    format: 'fp32',
    shape,
    data: encodeFromFloat64(formats.fp32, Float64Array.from(values)),
  };
}

const [pages, pageSize, heads, dim] = [4, 3, 2, 2];

/** The pages of two sequences of 4 and 2 keys: page 2 then page 0, and page 3; page 1 is nobody's. */
const owner: readonly (readonly [page: number, slot: number])[] = [
  [2, 0],
  [2, 1],
  [2, 2],
  [0, 0],
  [3, 0],
  [3, 1],
];

/** The element of a key, or a value, written down by hand: 1000 for values, then row, head and column. */
const element = (half: number, row: number, head: number, column: number) =>
  1000 * half + 100 * row + 10 * head + column;

/**
 * A tensor of pages whose element at any place is that of its key, NaN where no key is.
 * @param order where the sizes of pages, halves, slots and heads stand in its shape
 */
function pagesOf(order: 'NHD' | 'HND', halves: readonly number[]): Tensor {
  const values: number[] = [];
  const outer = order === 'NHD' ? pageSize : heads;
  const inner = order === 'NHD' ? heads : pageSize;
  for (let page = 0; page < pages; page++)
    for (const half of halves)
      for (let a = 0; a < outer; a++)
        for (let b = 0; b < inner; b++)
          for (let column = 0; column < dim; column++) {
            const [slot, head] = order === 'NHD' ? [a, b] : [b, a];
            const row = owner.findIndex(([p, s]) => p === page && s === slot);
            values.push(row < 0 ? NaN : element(half, row, head, column));
          }
  const both = halves.length === 2 ? [2] : [];
  return fp32([pages, ...both, outer, inner, dim], values);
}

const q = fp32(
  [3, 4, dim],
  Array.from({ length: 3 * 4 * dim }, (_, i) => i),
);

/** Behind the lists is a page that there is not, which nothing reads. */
const lists: StoredTensors = {
  cu_seqlens_q: integers(0, 1, 3),
  paged_kv_indptr: integers(0, 2, 3),
  paged_kv_indices: integers(2, 0, 3, 99),
  paged_kv_last_page_len: integers(1, 2),
};

const table: StoredTensors = {
  cu_seqlens_q: integers(0, 1, 3),
  block_table: { shape: [2, 3], data: Int32Array.of(2, 0, -1, 3, 99, 99) },
  seqused_k: integers(4, 2),
};

async function read(
  tensors: StoredTensors,
  metadata: Record<string, string> = {},
  settings: ProblemSettings = {},
) {
  const path = folder.at('pages.safetensors');
  await writeSafetensors(path, tensors, metadata, { durable: false });
  const file = await openTensorFile(path);
  try {
    return await readProblem(file, settings);
  } finally {
    await file.close();
  }
}

/** Keys, or values, as [heads, rows, dim], one sequence behind the other. */
function wanted(half: number): number[] {
  return Array.from({ length: heads }, (_, head) =>
    owner.map((_, row) => [element(half, row, head, 0), element(half, row, head, 1)]),
  ).flat(2);
}

describe("FlashInfer's pages", () => {
  for (const order of ['NHD', 'HND'] as const)
    for (const [how, inputs] of [
      ['lists', lists],
      ['a table', table],
    ] as const)
      for (const cache of [null, 'kv_cache', 'paged_kv_cache']) {
        const form = `${order}, by ${how}, ${cache ?? 'k and v'}`;
        const kv =
          cache === null
            ? { k: pagesOf(order, [0]), v: pagesOf(order, [1]) }
            : { [cache]: pagesOf(order, [0, 1]) };
        it(`are read element by element, whatever is unused: ${form}`, async () => {
          for (const keepsPosed of [false, true]) {
            const problem = await read(
              { q, ...kv, ...inputs },
              {},
              { kvLayout: order, keepsPosed },
            );
            expect([...problem.k.data]).toEqual(wanted(0));
            expect([...problem.v.data]).toEqual(wanted(1));
            expect(problem.sequences?.map(({ keys }) => keys)).toEqual([4, 2]);
          }
        });
      }

  it('are NHD where nothing is said, and as the metadata says unless the caller does', async () => {
    const [slotsFirst, headsFirst] = (['NHD', 'HND'] as const).map((order) => ({
      q,
      kv_cache: pagesOf(order, [0, 1]),
      ...lists,
    }));
    expect([...(await read(slotsFirst!)).k.data]).toEqual(wanted(0));
    expect([...(await read(headsFirst!, { kv_layout: 'hnd' })).v.data]).toEqual(wanted(1));
    const overruled = await read(slotsFirst!, { kv_layout: 'HND' }, { kvLayout: 'NHD' });
    expect([...overruled.v.data]).toEqual(wanted(1));
  });

  it('of a sequence without pages are none, whatever is said of the last', async () => {
    const empty = {
      ...lists,
      paged_kv_indptr: integers(0, 0, 2),
      paged_kv_last_page_len: integers(77, 1),
    };
    const problem = await read({ q, kv_cache: pagesOf('NHD', [0, 1]), ...empty });
    expect(problem.sequences?.map(({ keys }) => keys)).toEqual([0, 4]);
    expect([...problem.k.data].slice(0, 8)).toEqual(wanted(0).slice(0, 8));
  });
});

const kv = { k: pagesOf('NHD', [0]), v: pagesOf('NHD', [1]) };
const listed: StoredTensors = { q, ...kv, ...lists };
const cached = { q, ...lists, kv_cache: pagesOf('NHD', [0, 1]) };
const without = (name: string) =>
  Object.fromEntries(Object.entries(listed).filter(([key]) => key !== name));

const refusals: readonly (readonly [
  what: string,
  tensors: StoredTensors,
  says: RegExp,
  metadata?: Record<string, string>,
])[] = [
  [
    'offsets that decrease',
    { ...listed, paged_kv_indptr: integers(0, 3, 2) },
    /paged_kv_indptr decreases from 3 to 2 at element 2/,
  ],
  [
    'offsets that do not begin with 0',
    { ...listed, paged_kv_indptr: integers(1, 2, 3) },
    /paged_kv_indptr begins with 1/,
  ],
  [
    'offsets behind the list',
    { ...listed, paged_kv_indptr: integers(0, 2, 5) },
    /paged_kv_indptr ends with 5, but paged_kv_indices has 4 pages/,
  ],
  ['no offsets', { ...listed, paged_kv_indptr: integers() }, /paged_kv_indptr is empty/],
  [
    'a page that there is not',
    { ...listed, paged_kv_indices: integers(2, 4, 3) },
    /paged_kv_indices has page 4 for page 1 of sequence 0, which is used; there are 4 pages/,
  ],
  [
    'a negative page',
    { ...listed, paged_kv_indices: integers(2, 0, -1) },
    /paged_kv_indices has page -1 for page 0 of sequence 1/,
  ],
  [
    'an empty last page',
    { ...listed, paged_kv_last_page_len: integers(1, 0) },
    /paged_kv_last_page_len has 0 for sequence 1; give 1 to 3, the page size/,
  ],
  [
    'a last page that is more than full',
    { ...listed, paged_kv_last_page_len: integers(4, 2) },
    /paged_kv_last_page_len has 4 for sequence 0; give 1 to 3/,
  ],
  [
    'last pages of other sequences',
    { ...listed, paged_kv_last_page_len: integers(1, 2, 1) },
    /paged_kv_last_page_len is for 3 sequences, paged_kv_indptr for 2/,
  ],
  [
    'offsets of rank 2',
    { ...listed, paged_kv_indptr: { shape: [1, 3], data: Int32Array.of(0, 2, 3) } },
    /paged_kv_indptr has shape \[1, 3\]; give it rank 1/,
  ],
  [
    'queries of other sequences',
    { ...listed, cu_seqlens_q: integers(0, 1, 2, 3) },
    /3 sequences of queries and 2 of keys/,
  ],
  [
    'a list without offsets',
    without('paged_kv_indptr'),
    /there is paged_kv_indices but no paged_kv_indptr; give paged_kv_indptr, /,
  ],
  [
    'a list without last pages',
    without('paged_kv_last_page_len'),
    /there is paged_kv_indptr but no paged_kv_last_page_len/,
  ],
  [
    'a table and lists',
    { ...listed, block_table: table['block_table']! },
    /there are block_table and paged_kv_indptr, which both say where keys are/,
  ],
  [
    'lists and lengths',
    { ...listed, seqused_k: integers(4, 2) },
    /there are seqused_k and paged_kv_indptr/,
  ],
  [
    'lists and offsets of both',
    { ...without('cu_seqlens_q'), cu_seqlens: integers(0, 1, 3) },
    /there are cu_seqlens and paged_kv_indptr, .* give cu_seqlens_q/,
  ],
  [
    'keys twice',
    { ...cached, k: kv.k },
    /there are kv_cache and k, which both hold keys or values/,
  ],
  ['values twice', { ...cached, v: kv.v }, /there are kv_cache and v/],
  [
    'two tensors of both',
    { ...cached, paged_kv_cache: cached.kv_cache },
    /there are kv_cache and paged_kv_cache/,
  ],
  [
    'a cache of rank 4',
    { ...cached, kv_cache: kv.k },
    /kv_cache has shape \[4, 3, 2, 2\]; give it \[pages, 2, page size, heads, dim\]/,
  ],
  [
    "keys before pages, as vLLM's cache has them",
    { ...cached, kv_cache: fp32([2, 4, 3, 2, 2], new Array<number>(96).fill(0)) },
    /kv_cache has shape \[2, 4, 3, 2, 2\]; give it \[pages, 2, /,
  ],
  [
    'pages of rank 3',
    { ...listed, k: fp32([4, 3, 2], new Array<number>(24).fill(0)) },
    /k has shape \[4, 3, 2\]; with paged_kv_indptr give it rank 4 \[pages, page size, heads, dim\]/,
  ],
  [
    'a layout of another name',
    listed,
    /metadata kv_layout is "DHN"; give NHD or HND/,
    { kv_layout: 'DHN' },
  ],
];

describe("FlashInfer's pages are refused in one line, for", () => {
  for (const [what, tensors, says, metadata = {}] of refusals)
    it(what, async () => {
      await expectRefusal(() => read(tensors, metadata), /^\/.*pages\.safetensors: /, says);
    });
});
