import { decodeTensor } from '../../../formats/index.js';
import {
  keysOf,
  storedAt,
  storedHalf,
  storedOf,
  type StoredProblem,
  type StoredRows,
} from '../../../problem/index.js';
import type { Hypothesis, HypothesisContext, HypothesisFamily, SampleRow } from '../hypothesis.js';
import { predictWeighted, softmaxRow } from '../prediction.js';

/** Pages of keys, and the tensors that hold the pages. */
interface Pages {
  readonly rows: StoredRows;
  readonly pageSize: number;
  readonly kvHeads: number;
  /** The row of K, or of V, that a slot holds for a kv head; null for a row that does not hold numbers. */
  readonly row: (which: 'k' | 'v', slot: number, kvHead: number) => Float64Array | null;
}

function pagesOf({ keys, tensors }: StoredProblem, kvHeads: number): Pages | null {
  if (keys.form !== 'paged' || tensors === null) return null;
  const row = (which: 'k' | 'v', slot: number, kvHead: number): Float64Array | null => {
    const { tensor, slotOf } = storedHalf(tensors, keys, which);
    const dim = tensor.shape.at(-1)!;
    const first = storedAt(keys, kvHeads, dim)(slotOf(slot), kvHead);
    const values = decodeTensor(tensor, first, first + dim);
    return values.every(Number.isFinite) ? values : null;
  };
  return { rows: keys, pageSize: keys.slotsPerGroup, kvHeads, row };
}

/** The slot that a faulty kernel reads in place of the own slot of a key, which is counted within its sequence. */
type SlotOf = (own: number, key: number, sequence: number, kvHead: number) => number;

interface PageFault {
  readonly id: string;
  readonly statement: string;
  readonly slotOf: SlotOf;
  /** The head that is read for a slot and a head; default its own. */
  readonly headOf?: (slot: number, kvHead: number) => number;
  /** The tensor that alone is read wrongly; default both. */
  readonly only?: 'k' | 'v';
  readonly local?: boolean;
}

/** One row that reads some keys from other slots; null where such a slot holds no number. */
function readElsewhere(
  { reader, shape }: HypothesisContext,
  pages: Pages,
  row: SampleRow,
  { slotOf, headOf, only }: PageFault,
) {
  const { firstKey, sequence } = reader.place(row.row);
  const kvHead = row.kv % shape.kvHeads;
  const query = reader.query(row.row);
  const dots = reader.dots(row.row, row.kv).slice();
  const values = reader.valuesOf(row.row, row.kv).slice();
  let isTouched = false;
  for (const key of keysOf(row.ranges)) {
    const own = pages.rows.slots[key];
    const slot = slotOf(own, key - firstKey, sequence, kvHead);
    const head = headOf?.(own, kvHead) ?? kvHead;
    if (slot === own && head === kvHead) continue;
    if (slot < 0 || slot >= pages.rows.groups * pages.pageSize) return null;
    isTouched = true;
    if (only !== 'v') {
      const k = pages.row('k', slot, head);
      if (k === null) return null;
      dots[key] = k.reduce((sum, x, t) => sum + x * query[t], 0);
    }
    if (only !== 'k') {
      const v = pages.row('v', slot, head);
      if (v === null) return null;
      values.set(v, key * shape.vDim);
    }
  }
  if (!isTouched) return row.correct;
  const scores = reader.maskedScores(row.row, row.ranges, (key) =>
    reader.score(dots[key], row.row, key),
  );
  return predictWeighted(row, softmaxRow(scores, values));
}

/** Faults that concern every page. */
function* everyPage(pages: Pages, firstKeys: readonly number[]): Generator<PageFault> {
  const { rows, pageSize } = pages;
  const pageAt = (sequence: number, page: number) => {
    const key = firstKeys[sequence] + page * pageSize;
    return page >= 0 && key < (firstKeys[sequence + 1] ?? rows.slots.length)
      ? Math.floor(rows.slots[key] / pageSize)
      : -1;
  };
  const slotIn = (page: number, key: number) => page * pageSize + (key % pageSize);
  yield {
    id: 'block-table-ignored',
    statement: 'the pages are read in the order of the memory: the block table is ignored',
    slotOf: (_, key) => key,
  };
  for (const [by, which] of [
    [1, 'behind'],
    [-1, 'before'],
  ] as const) {
    for (const [end, atEnd] of [
      ['itself', (own: number) => own],
      ['page 0 of the cache', (_: number, key: number) => slotIn(0, key)],
      [
        `that of the sequence ${which}`,
        (own: number, key: number, sequence: number) => {
          const last = Math.ceil((firstKeys[sequence] - (firstKeys[sequence - 1] ?? 0)) / pageSize);
          const page = pageAt(sequence + by, by > 0 ? 0 : last - 1);
          return page < 0 ? own : slotIn(page, key);
        },
      ],
    ] as const)
      yield {
        id: 'block-table-shifted',
        statement: `the block table is shifted by one: each page of a sequence is the one ${which} it, the ${by > 0 ? 'last' : 'first'} one ${end}`,
        slotOf: (own, key, sequence) => {
          const page = pageAt(sequence, Math.floor(key / pageSize) + by);
          return page < 0 ? atEnd(own, key, sequence) : slotIn(page, key);
        },
      };
    yield {
      id: 'block-table-shifted',
      statement: `the block table is off by one: each page is the one ${which} it in the cache`,
      slotOf: (own) => own + by * pageSize,
    };
    yield {
      id: 'page-of-other-sequence',
      statement: `a sequence has the pages of the one ${which} it`,
      slotOf: (own, key, sequence) => {
        if (firstKeys[sequence + by] === undefined) return own;
        const page = pageAt(sequence + by, Math.floor(key / pageSize));
        return page < 0 ? own : slotIn(page, key);
      },
    };
  }
  for (const size of [16, 32, 64, 128].filter((one) => one < pageSize))
    yield {
      id: 'page-size',
      statement: `places within a page are counted modulo ${size}, not modulo its ${pageSize} slots`,
      slotOf: (own, key) => own - (key % pageSize) + (key % size),
    };
  yield* exchangedAxes(pages);
}

/** A cache whose pages are read with the axes of slots and heads exchanged. */
function* exchangedAxes({ rows, pageSize, kvHeads }: Pages): Generator<PageFault> {
  if (kvHeads < 2 || pageSize < 2) return;
  const [as, of] = rows.headsFirst
    ? ['[pages, page size, heads, dim]', '[pages, heads, page size, dim]']
    : ['[pages, heads, page size, dim]', '[pages, page size, heads, dim]'];
  // The place in a page's memory where the kernel looks, counted in rows, and the row that lies there.
  const at = (slot: number, head: number) =>
    rows.headsFirst ? slot * kvHeads + head : head * pageSize + slot;
  const slotAt = (row: number) => (rows.headsFirst ? row % pageSize : Math.floor(row / kvHeads));
  const headAt = (row: number) => (rows.headsFirst ? Math.floor(row / pageSize) : row % kvHeads);
  yield {
    id: 'page-axes-exchanged',
    statement: `page size and heads of the cache are exchanged: ${of} is read as ${as}`,
    slotOf: (own, _key, _sequence, kvHead) =>
      own - (own % pageSize) + slotAt(at(own % pageSize, kvHead)),
    headOf: (own, kvHead) => headAt(at(own % pageSize, kvHead)),
  };
}

/** Rows that a wrong page must explain to be a candidate, and how many pages are tried for them. */
const mostTried = 4096;

/** The part of a row's squared error that is left. */
function errorLeft({ observed, correct }: SampleRow, out: Float64Array): number {
  let [left, before] = [0, 0];
  for (let c = 0; c < out.length; c++) {
    left += (observed[c] - out[c]) ** 2;
    before += (observed[c] - correct.out[c]) ** 2;
  }
  return left / before;
}

/** The best page in place of one page of a damaged row's sequence, by the row's own error. */
function* onePage(context: HypothesisContext, pages: Pages): Generator<PageFault> {
  const { sample, reader } = context;
  const { pageSize, rows } = pages;
  const seen = new Set<number>();
  for (const row of sample.filter(({ damaged }) => damaged)) {
    const { sequence, keys, firstKey } = reader.place(row.row);
    if (seen.has(sequence)) continue;
    seen.add(sequence);
    const count = Math.ceil(keys / pageSize);
    if (count * rows.groups > mostTried) continue;
    let best: { readonly fault: PageFault; readonly left: number } | null = null;
    for (let logical = 0; logical < count; logical++)
      for (let physical = 0; physical < rows.groups; physical++) {
        if (Math.floor(rows.slots[firstKey + logical * pageSize] / pageSize) === physical) continue;
        for (const only of [undefined, 'k', 'v'] as const) {
          const fault: PageFault = {
            id: 'wrong-page',
            statement: `page ${logical} of sequence ${sequence} is page ${physical} of the cache${only === undefined ? '' : `, for ${only.toUpperCase()} alone`}`,
            local: true,
            ...(only === undefined ? {} : { only }),
            slotOf: (own, key, of) =>
              of === sequence && Math.floor(key / pageSize) === logical
                ? physical * pageSize + (key % pageSize)
                : own,
          };
          const prediction = readElsewhere(context, pages, row, fault);
          if (prediction === null) continue;
          const left = errorLeft(row, prediction.out);
          if (best === null || left < best.left) best = { fault, left };
        }
      }
    if (best !== null && best.left < 1 / 4) yield best.fault;
  }
}

/** Sequences whose pages are looked at one by one. */
const mostSequences = 4;

/** Keys and values read from other pages than the block table says. */
export const pageHypotheses: HypothesisFamily = function* (context) {
  const { reader, shape, sample } = context;
  const stored = storedOf(reader.problem);
  const pages = stored === null ? null : pagesOf(stored, shape.kvHeads);
  if (pages === null) return;
  const firstKeys = (reader.problem.sequences ?? []).map(({ firstKey }) => firstKey);
  const hypothesis = (fault: PageFault): Hypothesis => ({
    id: fault.id,
    technique: null,
    statement: fault.statement,
    ...(fault.local === true ? { local: true, adjusted: true } : {}),
    predict: (row) => readElsewhere(context, pages, row, fault),
  });
  for (const fault of everyPage(pages, firstKeys)) yield hypothesis(fault);
  const damaged = sample.filter((row) => row.damaged);
  const struck = new Set(damaged.map(({ row }) => reader.place(row).sequence));
  if (struck.size > mostSequences) return;
  const found = [...onePage(context, pages)];
  for (const fault of found) yield hypothesis(fault);
};
