import type { LinkCheck } from '../link-audit.js';

/** A tensor that one link of the chain writes and another reads. */
export interface Joint {
  readonly writer: string;
  readonly wrote: string;
  readonly reader: string;
  readonly reads: string;
  /** What it is, in words: "the cache of keys". */
  readonly what: string;
  /** What is compared as one: a slot of a cache, a list of a query, a row, or the whole of a factor. */
  readonly unit: 'slot' | 'list' | 'row';
}

function joint(writer: string, wrote: string, reader: string, reads: string) {
  return (what: string, unit: Joint['unit']): Joint => ({
    writer,
    wrote,
    reader,
    reads,
    what,
    unit,
  });
}

/** What the contracts of links hand on, by the names of their tensors; writers by contract. */
export const joints: readonly Joint[] = [
  joint('prologue', 'q_out', 'attention', 'q')('queries', 'row'),
  joint('prologue', 'k_out', 'cache-write', 'k')('new keys', 'row'),
  joint('cache-write', 'key_cache', 'attention', 'k')('a cache of keys', 'slot'),
  joint('cache-write', 'value_cache', 'attention', 'v')('a cache of values', 'slot'),
  joint('cache-write', 'kv_cache', 'attention', 'kv_cache')('a cache', 'slot'),
  joint('cache-write', 'k_scale', 'attention', 'k_descale')('factors of keys', 'slot'),
  joint('cache-write', 'v_scale', 'attention', 'v_descale')('factors of values', 'slot'),
  joint('cache-write', 'block_table', 'attention', 'block_table')('a page table', 'row'),
  joint('selection', 'indices', 'attention', 'kv_index')('lists of keys', 'list'),
  joint('selection', 'indices', 'attention', 'block_index')('lists of blocks', 'list'),
  joint('selection', 'topk_scores', 'attention', 'topk_scores')('listed scores', 'list'),
  joint('attention', 'out_partial', 'merge', 'out_partial')('partial results', 'row'),
  joint('attention', 'lse_partial', 'merge', 'lse_partial')('LSEs of parts', 'row'),
  joint('merge', 'out', 'attention', 'out')('an output', 'row'),
  joint('merge', 'lse', 'attention', 'lse')('LSEs', 'row'),
];

/** A dumped tensor: the bytes of its elements in row-major order, or its numbers where it holds integers. */
export interface DumpedTensor {
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly data: Uint8Array | Int32Array;
}

/** Two dumps of what one link wrote and another read. */
export interface JointTensors {
  readonly wrote: DumpedTensor;
  readonly read: DumpedTensor;
  /** What the buffer held before the write, in the dump of its writer; null where that is not dumped. */
  readonly before: DumpedTensor | null;
}

/** Names of the two links. */
export interface JointNames {
  readonly writer: string;
  readonly reader: string;
}

/** A shape without sizes of one. */
function core({ shape }: DumpedTensor): number[] {
  return shape.filter((size) => size !== 1);
}

/** The elements of a unit: of a slot those behind its block and offset, else those of the last axis. */
function unitSize({ unit }: Joint, { shape, data }: DumpedTensor, elements: number): number {
  const tail = unit === 'slot' ? shape.slice(Math.min(2, shape.length - 1)) : [shape.at(-1) ?? 1];
  const perElement = data.length / Math.max(1, elements);
  return Math.max(1, perElement * tail.reduce((product, size) => product * size, 1));
}

function isEqual(a: ArrayLike<number>, b: ArrayLike<number>, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Whether two lists have the same entries; −1 is none, and the order of keys means nothing to attention. */
function isSameList(a: DumpedTensor['data'], b: DumpedTensor['data'], from: number, to: number) {
  const entries = (data: DumpedTensor['data']) =>
    [...data.slice(from, to)].filter((one) => one >= 0).sort((x, y) => x - y);
  const [first, second] = [entries(a), entries(b)];
  return first.length === second.length && isEqual(first, second, 0, first.length);
}

/** Where a unit is, in words: "slot 17"; "sequence 7, query 0"; of others its number. */
function unitWords({ unit, what }: Joint, { shape }: DumpedTensor, index: number): string {
  if (unit === 'slot') return `slot ${index}`;
  if (unit === 'row') return `row ${index} of ${what}`;
  const queries = shape.length < 2 ? 1 : shape[shape.length === 2 ? 0 : 1];
  const lists = shape.length < 4 ? 1 : shape[2];
  const row = Math.floor(index / lists);
  return shape.length === 2
    ? `query ${row}`
    : `sequence ${Math.floor(row / queries)}, query ${row % queries}`;
}

const most = 4;

/** Numbers of units in words, the first few. */
function unitsWords(of: Joint, tensor: DumpedTensor, units: readonly number[]): string {
  const shown = units.slice(0, most).map((one) => unitWords(of, tensor, one));
  const more = units.length - shown.length;
  return `${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

/** Units in which two tensors differ. */
function differing(of: Joint, a: DumpedTensor, b: DumpedTensor): { all: number; units: number[] } {
  const elements = a.shape.reduce((product, size) => product * size, 1);
  const size = unitSize(of, a, elements);
  const all = Math.ceil(a.data.length / size);
  const units: number[] = [];
  for (let unit = 0; unit < all; unit++) {
    const [from, to] = [unit * size, Math.min(a.data.length, (unit + 1) * size)];
    if (isEqual(a.data, b.data, from, to)) continue;
    if (of.wrote === 'indices' && isSameList(a.data, b.data, from, to)) continue;
    units.push(unit);
  }
  return { all, units };
}

/** Whether the reader has in some units what was there before the write. */
function isStale({ wrote, read, before }: JointTensors, of: Joint, units: readonly number[]) {
  if (before === null || before.data.length !== wrote.data.length) return false;
  const wrong = new Set(differing(of, before, read).units);
  return units.every((unit) => !wrong.has(unit));
}

/**
 * Holds what a link read against what another wrote: equal bits, unit by unit; of lists of keys the same keys. Tensors of other shapes
 * or widths are not compared, and that is said.
 */
export function checkJoint(of: Joint, names: JointNames, tensors: JointTensors): LinkCheck {
  const { wrote, read } = tensors;
  const { writer, reader } = names;
  const head = {
    name: `${writer}.${of.wrote}=${reader}.${of.reads}`,
    label: `${writer} → ${reader}: ${of.what}`,
    parts: `${of.unit}s`,
    claim: `${reader} has ${of.what} as ${writer} left ${/s$/.test(of.what) ? 'them' : 'it'}`,
    free: 0,
    worstShare: null,
    isWorstCase: true,
    isRequired: false,
  } as const;
  const isComparable =
    String(core(wrote)) === String(core(read)) && wrote.data.length === read.data.length;
  if (!isComparable) {
    const spelled = ({ shape, dtype }: DumpedTensor) => `${dtype} [${shape.join(', ')}]`;
    const unjudged = `${writer} wrote ${spelled(wrote)} and ${reader} read ${spelled(read)}, which are not compared`;
    return { ...head, checked: 0, wrong: 0, statement: null, unjudged };
  }
  const { all, units } = differing(of, wrote, read);
  const isBefore = units.length > 0 && isStale(tensors, of, units);
  const where = unitsWords(of, wrote, units);
  const statement =
    units.length === 0
      ? null
      : isBefore
        ? `${reader} reads ${of.what} as before the write of ${writer}: ${where}`
        : `${reader} has ${of.what} other than what ${writer} left: ${where}`;
  return { ...head, checked: all, wrong: units.length, statement, unjudged: null };
}
