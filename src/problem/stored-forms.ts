import { formats, patternsOf } from '../formats/index.js';
import { RequestError } from '../request-error.js';
import type { IntegerTensor } from './features.js';
import type { Problem } from './problem.js';
import type {
  PackedForm,
  PaddedForm,
  PagedForm,
  StoredForm,
  StoredRows,
  StoredTensors,
} from './stored.js';

/** Rows as stored, and the tensors that give their places. */
export interface Placed {
  readonly rows: StoredRows;
  readonly tensors: StoredTensors;
  /** Slots of a sequence, and the unused ones at its front, for tensors over queries and keys. */
  readonly capacity: number;
  readonly left: readonly number[] | null;
}

/** Queries, or keys and values. */
export type Side = 'q' | 'k';

function integers(values: readonly number[], shape: readonly number[] = [values.length]) {
  return { shape, data: Int32Array.from(values) } satisfies IntegerTensor;
}

function total(lengths: readonly number[]): number {
  return lengths.reduce((sum, length) => sum + length, 0);
}

/** Slots of sequences, from the start and length of each. */
function slotsFrom(starts: readonly number[], lengths: readonly number[]): Int32Array {
  const slots = new Int32Array(total(lengths));
  let row = 0;
  lengths.forEach((length, sequence) => {
    for (let i = 0; i < length; i++) slots[row++] = starts[sequence] + i;
  });
  return slots;
}

function placePacked(side: Side, lengths: readonly number[], form: PackedForm): Placed {
  const { gap = 0, spare = 0 } = form;
  const starts = [0];
  for (const length of lengths) starts.push(starts[starts.length - 1] + length + gap);
  const slotsPerGroup = starts[starts.length - 1] + spare;
  return {
    rows: {
      form: 'packed',
      groups: 1,
      slotsPerGroup,
      headsFirst: false,
      slots: slotsFrom(starts, lengths),
    },
    tensors: {
      [`cu_seqlens_${side}`]: integers(starts),
      ...(gap === 0 ? {} : { [`seqused_${side}`]: integers(lengths) }),
    },
    capacity: Math.max(0, ...lengths),
    left: null,
  };
}

function placePadded(side: Side, lengths: readonly number[], form: PaddedForm): Placed {
  const { spare = 0, headsFirst = true, left = null } = form;
  const ends = lengths.map((length, i) => length + (left?.[i] ?? 0));
  const capacity = Math.max(0, ...ends) + spare;
  const starts = lengths.map((_, i) => i * capacity + (left?.[i] ?? 0));
  return {
    rows: {
      form: 'padded',
      groups: lengths.length,
      slotsPerGroup: capacity,
      headsFirst,
      slots: slotsFrom(starts, lengths),
    },
    tensors: {
      [`seqused_${side}`]: integers(ends),
      ...(left === null ? {} : { [`leftpad_${side}`]: integers(left) }),
    },
    capacity,
    left,
  };
}

/** The first page with the same bits, for each page of keys and values. */
function firstOfEqualPages(
  { k, v }: Pick<Problem, 'k' | 'v'>,
  pages: readonly { readonly firstRow: number; readonly rows: number }[],
  pageSize: number,
): number[] {
  const contents = [k, v].map((tensor) => {
    const { data, format } = tensor;
    const words = patternsOf(data, formats[format]);
    const [heads, rows, dim] = tensor.shape.slice(-3);
    const width = (words.length / Math.max(1, data.length)) * dim;
    return ({ firstRow, rows: count }: (typeof pages)[number]) =>
      Array.from({ length: heads }, (_, head) => {
        const at = (head * rows + firstRow) * width;
        return words.subarray(at, at + count * width).join();
      }).join(';');
  });
  const first = new Map<string, number>();
  return pages.map((page, index) => {
    // Of a page that is not full, the rest is each sequence's own.
    if (page.rows < pageSize) return index;
    const content = contents.map((of) => of(page)).join('|');
    const known = first.get(content);
    if (known === undefined) first.set(content, index);
    return known ?? index;
  });
}

/** The pages of each sequence in order, and its number of keys. */
interface NumberedPages {
  readonly numbers: readonly (readonly number[])[];
  readonly lengths: readonly number[];
  readonly pageSize: number;
}

function pageTable({ numbers, lengths }: NumberedPages, unused: number): StoredTensors {
  const columns = Math.max(1, ...numbers.map((pages) => pages.length));
  const table = new Int32Array(numbers.length * columns).fill(unused);
  numbers.forEach((pages, sequence) => table.set(pages, sequence * columns));
  return {
    block_table: { shape: [numbers.length, columns], data: table },
    seqused_k: integers(lengths),
  };
}

/** FlashInfer's lists, followed by an entry that nobody reads. */
function pageLists({ numbers, lengths, pageSize }: NumberedPages, unused: number): StoredTensors {
  const starts = [0];
  for (const pages of numbers) starts.push(starts[starts.length - 1] + pages.length);
  return {
    paged_kv_indptr: integers(starts),
    paged_kv_indices: integers([...numbers.flat(), unused]),
    paged_kv_last_page_len: integers(
      lengths.map((length, sequence) => length - (numbers[sequence].length - 1) * pageSize),
    ),
  };
}

function placePaged(problem: Problem, lengths: readonly number[], form: PagedForm): Placed {
  const { pageSize, spare = 0, arrange, shared = false, headsFirst = false } = form;
  const pages: { firstRow: number; rows: number; sequence: number; column: number }[] = [];
  let firstRow = 0;
  lengths.forEach((length, sequence) => {
    for (let at = 0; at < length; at += pageSize) {
      const rows = Math.min(pageSize, length - at);
      pages.push({ firstRow: firstRow + at, rows, sequence, column: at / pageSize });
    }
    firstRow += length;
  });
  const firsts = shared
    ? firstOfEqualPages(problem, pages, pageSize)
    : pages.map((_, index) => index);
  const kept = [...new Set(firsts)];
  const groups = kept.length + spare;
  const places = arrange?.(groups) ?? Array.from({ length: groups }, (_, page) => page);
  if (new Set(places).size !== groups || places.some((place) => !(place >= 0 && place < groups)))
    throw new RequestError(
      `pages are arranged as ${places.join(', ')}; give each of 0 to ${groups - 1} once`,
    );
  const placeOf = new Map(kept.map((page, index) => [page, places[index]]));
  const numbers: number[][] = lengths.map(() => []);
  const slots = new Int32Array(firstRow);
  pages.forEach((page, index) => {
    const place = placeOf.get(firsts[index]) ?? 0;
    numbers[page.sequence][page.column] = place;
    for (let i = 0; i < page.rows; i++) slots[page.firstRow + i] = place * pageSize + i;
  });
  return {
    rows: { form: 'paged', groups, slotsPerGroup: pageSize, headsFirst, slots },
    tensors: (form.listed === true ? pageLists : pageTable)(
      { numbers, lengths, pageSize },
      // Entries that are not used point to a page that nobody uses, where there is one.
      spare > 0 ? places[groups - 1] : -1,
    ),
    capacity: Math.max(0, ...lengths),
    left: null,
  };
}

/**
 * The places of sequences in a form.
 * @param lengths the number of rows of each
 * @throws RequestError for pages that are not arranged each to a place of its own
 */
export function placeRows(
  problem: Problem,
  side: Side,
  lengths: readonly number[],
  form: StoredForm['keys'],
): Placed {
  if (form.kind === 'packed') return placePacked(side, lengths, form);
  return form.kind === 'padded'
    ? placePadded(side, lengths, form)
    : placePaged(problem, lengths, form);
}

/** That many rows, one behind the other. */
export function packedRows(count: number): StoredRows {
  return placePacked('q', [count], { kind: 'packed' }).rows;
}
