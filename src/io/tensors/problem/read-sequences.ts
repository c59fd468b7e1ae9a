import type { Sequence, StoredRows } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { type PageLists, checkOffsets } from './page-lists.js';

/** Integers of a file that give the places of sequences; null for those that it lacks. */
export interface SequenceInputs {
  readonly cumulative: ArrayLike<number> | null;
  readonly used: ArrayLike<number> | null;
  readonly left: ArrayLike<number> | null;
  readonly pages: PageLists | null;
}

/** The places of the sequences of queries, or of keys. */
export interface SequenceRows {
  readonly rows: StoredRows;
  /** Number of used rows of each sequence. */
  readonly lengths: readonly number[];
  /** Number of slots of the longest sequence, and of unused slots at the front of each. */
  readonly capacity: number;
  readonly left: readonly number[];
}

/** The places of a problem's sequences. */
export interface PlacedSequences {
  readonly queries: SequenceRows;
  readonly keys: SequenceRows;
}

/** A tensor of queries, keys or values, as its header describes it. */
export interface RowTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly byteLength: number;
  /** Whether heads come before the slots of a padded sequence, or of a page. */
  readonly headsFirst: boolean;
}

/**
 * The most bytes of gathered rows, and the most rows: pages that are used again and again need more memory than they
 * have in the file.
 */
const mostGatheredBytes = 2 ** 32;
const mostGatheredRows = 2 ** 26;

/** The most rows that may be gathered from a tensor with that many slots. */
function mostRows({ byteLength }: RowTensor, slots: number): number {
  // A tensor without elements cannot have more rows than slots: nothing shares what is not there.
  if (byteLength === 0) return slots;
  const bytes = Math.max(mostGatheredBytes, 4 * byteLength);
  return Math.max(slots, Math.min(mostGatheredRows, (bytes / byteLength) * slots));
}

function spelled(shape: readonly number[]): string {
  return `[${shape.join(', ')}]`;
}

/** Number of keys that fit on a page. */
export function pageSizeOf({ shape, headsFirst }: RowTensor): number {
  return (headsFirst ? shape[2] : shape[1]) ?? 0;
}

/** The slots of each sequence: a function of its position, and their number; pages have a list of their own. */
interface Room {
  readonly form: StoredRows['form'];
  readonly groups: number;
  readonly slotsPerGroup: number;
  readonly batch: number;
  readonly capacityOf: (sequence: number) => number;
  /** @throws RequestError for a page that is not there */
  readonly slotOf: (sequence: number, position: number) => number;
}

function packedRoom(name: string, offsets: ArrayLike<number>, of: RowTensor): Room {
  if (of.shape.length !== 3)
    throw new RequestError(
      `${of.name} has shape ${spelled(of.shape)}; with ${name} give it rank 3 [total, heads, dim]`,
    );
  checkOffsets(name, offsets, { name: of.name, length: of.shape[0], what: 'rows' });
  return {
    form: 'packed',
    groups: 1,
    slotsPerGroup: of.shape[0],
    batch: offsets.length - 1,
    capacityOf: (sequence) => offsets[sequence + 1] - offsets[sequence],
    slotOf: (sequence, position) => offsets[sequence] + position,
  };
}

function paddedRoom(of: RowTensor): Room {
  const { name, headsFirst } = of;
  if (of.shape.length !== 4 && of.shape.length !== 3)
    throw new RequestError(
      `${name} has shape ${spelled(of.shape)}; give it rank 3 [heads, seqlen, dim] or rank 4 [batch, heads, seqlen, dim]`,
    );
  const [batch, a, b] = of.shape.length === 3 ? [1, ...of.shape] : of.shape;
  const slots = headsFirst ? b : a;
  return {
    form: 'padded',
    groups: batch,
    slotsPerGroup: slots,
    batch,
    capacityOf: () => slots,
    slotOf: (sequence, position) => sequence * slots + position,
  };
}

function pagedRoom({ name, counted, batch, pagesOf, pageAt }: PageLists, of: RowTensor): Room {
  if (of.shape.length !== 4) {
    const sizes = of.headsFirst ? 'heads, page size' : 'page size, heads';
    throw new RequestError(
      `${of.name} has shape ${spelled(of.shape)}; with ${counted} give it rank 4 [pages, ${sizes}, dim]`,
    );
  }
  const pages = of.shape[0];
  const pageSize = pageSizeOf(of);
  return {
    form: 'paged',
    groups: pages,
    slotsPerGroup: pageSize,
    batch,
    capacityOf: (sequence) => pagesOf(sequence) * pageSize,
    slotOf: (sequence, position) => {
      const column = Math.floor(position / pageSize);
      const page = pageAt(sequence, column);
      if (page < 0 || page >= pages)
        throw new RequestError(
          `${name} has page ${page} for page ${column} of sequence ${sequence}, which is used; there are ${pages} pages`,
        );
      return page * pageSize + (position - column * pageSize);
    },
  };
}

/** The used rows of one sequence: those from `left` to before `end` of its slots. */
function usedPart(
  side: 'q' | 'k',
  { used, left, pages, cumulative }: SequenceInputs,
  sequence: number,
  capacity: number,
): { readonly begin: number; readonly end: number } {
  const begin = left?.[sequence] ?? 0;
  // Beside a table of pages the offsets tell lengths alone.
  const ofPages =
    pages !== null && cumulative !== null
      ? cumulative[sequence + 1] - cumulative[sequence]
      : capacity;
  const end = used?.[sequence] ?? pages?.lengths?.[sequence] ?? ofPages;
  const name = used === null ? `cu_seqlens_${side}` : `seqused_${side}`;
  if (end < 0 || end > capacity)
    throw new RequestError(
      `${name} gives sequence ${sequence} ${end} rows, which has room for ${capacity}; make them agree`,
    );
  if (begin < 0 || begin > end)
    throw new RequestError(
      `leftpad_${side} of sequence ${sequence} is ${begin}, but ${end} slots are used, its padding among them; make them agree`,
    );
  return { begin, end };
}

function checkBatch(name: string, length: number | undefined, batch: number, what: string): void {
  if (length !== undefined && length !== batch)
    throw new RequestError(
      `${name} is for ${length} sequences, ${what} for ${batch}; make them equal`,
    );
}

/**
 * The places of the used rows of queries, or of keys and values.
 * @throws RequestError for numbers that do not fit one another or the tensor
 */
export function sequenceRows(side: 'q' | 'k', inputs: SequenceInputs, of: RowTensor): SequenceRows {
  const { cumulative, used, left, pages } = inputs;
  const room =
    pages !== null
      ? pagedRoom(pages, of)
      : cumulative !== null
        ? packedRoom(`cu_seqlens_${side}`, cumulative, of)
        : paddedRoom(of);
  const { batch, form, groups, slotsPerGroup } = room;
  const what =
    pages !== null ? pages.counted : cumulative !== null ? `cu_seqlens_${side}` : of.name;
  checkBatch(`seqused_${side}`, used?.length, batch, what);
  checkBatch(`leftpad_${side}`, left?.length, batch, what);
  if (pages !== null)
    checkBatch(
      `cu_seqlens_${side}`,
      cumulative === null ? undefined : cumulative.length - 1,
      batch,
      what,
    );
  if (groups * slotsPerGroup >= 2 ** 31)
    throw new RequestError(`${of.name} has ${groups * slotsPerGroup} rows; give fewer than 2^31`);
  const parts = Array.from({ length: batch }, (_, sequence) =>
    usedPart(side, inputs, sequence, room.capacityOf(sequence)),
  );
  const lengths = parts.map(({ begin, end }) => end - begin);
  const count = lengths.reduce((sum, length) => sum + length, 0);
  if (count > mostRows(of, groups * slotsPerGroup))
    throw new RequestError(
      `the sequences have ${count} rows of ${of.name}, which do not fit in memory gathered; give fewer sequences`,
    );
  const slots = new Int32Array(count);
  let row = 0;
  parts.forEach(({ begin, end }, sequence) => {
    for (let position = begin; position < end; position++)
      slots[row++] = room.slotOf(sequence, position);
  });
  return {
    rows: { form, groups, slotsPerGroup, headsFirst: form !== 'packed' && of.headsFirst, slots },
    lengths,
    capacity: parts.reduce((most, _, sequence) => Math.max(most, room.capacityOf(sequence)), 0),
    left: parts.map(({ begin }) => begin),
  };
}

/** The sequences of a problem, from their numbers of queries and of keys. */
export function sequencesOf(queries: readonly number[], keys: readonly number[]): Sequence[] {
  let [firstQuery, firstKey] = [0, 0];
  return queries.map((length, index) => {
    const sequence = { firstQuery, queries: length, firstKey, keys: keys[index] };
    firstQuery += length;
    firstKey += keys[index];
    return sequence;
  });
}
