import { describe, expect, it } from 'vitest';
import { randomValues } from '../../../properties/problems/values.js';
import { judgeOutputs, type KernelOutputs } from '../../../src/audit/index.js';
import {
  checkProblem,
  storeProblem,
  type KeyLists,
  type Problem,
} from '../../../src/problem/index.js';
import { filledProblem } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';
import { attendListed, type ListedKey, type ListPlace } from './listed-attention.js';

const inTurn = turns(import.meta.url);
const random = randomValues(20_381);

/** `count` of 0, 1, … up to `of` − 1 in a random order, and −1 up to `length` among them. */
function drawList(of: number, count: number, length: number): number[] {
  const all = Array.from({ length: of }, (_, i) => i);
  for (let i = of - 1; i > 0; i--) {
    const j = random.integer(0, i);
    [all[i], all[j]] = [all[j], all[i]];
  }
  const list = all.slice(0, count);
  while (list.length < length) list.splice(random.integer(0, list.length), 0, -1);
  return list;
}

interface Sizes {
  readonly batch: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly queries: number;
  readonly keys: number;
}

function problemOf(sizes: Sizes, dim = 32): Problem {
  const normal = () => random.normal();
  return filledProblem({ ...sizes, dim, format: 'bf16' }, { q: normal, k: normal, v: normal });
}

/** A problem whose kv heads have lists of their own, of keys, with unused entries among them. */
function withKeys(): Problem & { readonly keyLists: KeyLists } {
  const sizes = { batch: 2, heads: 4, kvHeads: 2, queries: 5, keys: 300 };
  const lists = Array.from({ length: 2 * 5 * 2 }, () => drawList(300, 40, 48)).flat();
  const keyLists: KeyLists = {
    indices: { shape: [2, 5, 2, 48], data: Int32Array.from(lists) },
    blockKeys: 1,
    blockQueries: 1,
  };
  return { ...problemOf(sizes), keyLists };
}

/** A causal problem with lists of blocks of 16 keys, the last not whole. */
function withBlocks(): Problem & { readonly keyLists: KeyLists } {
  const [queries, keys] = [24, 205];
  const lists = Array.from({ length: queries }, (_, query) => {
    const own = Math.floor((query + keys - queries) / 16);
    const others = drawList(own, 4, 5);
    return [others[0], own, ...others.slice(1)];
  }).flat();
  const keyLists: KeyLists = {
    indices: { shape: [1, queries, 1, 6], data: Int32Array.from(lists) },
    blockKeys: 16,
    blockQueries: 1,
  };
  const sizes = { batch: 1, heads: 2, kvHeads: 1, queries, keys };
  return { ...problemOf(sizes), causal: true, keyLists };
}

/** The entries of a list. */
function entriesOf({ keyLists: { indices } }: { readonly keyLists: KeyLists }) {
  const [, queries, heads, length] = indices.shape;
  return ({ batch, query, kvHead }: Pick<ListPlace, 'batch' | 'query' | 'kvHead'>) => {
    const at = ((batch * queries + query) * heads + (heads === 1 ? 0 : kvHead)) * length;
    return [...indices.data.subarray(at, at + length)];
  };
}

type Change = (place: ListPlace, list: (of?: Partial<ListPlace>) => number[]) => ListedKey[];

/** The outputs of a kernel that reads keys by another rule. */
function readAs(problem: Problem & { readonly keyLists: KeyLists }, change: Change): KernelOutputs {
  const listOf = entriesOf(problem);
  return attendListed(problem, (place) => change(place, (of = {}) => listOf({ ...place, ...of })));
}

const keys = (list: readonly number[]): ListedKey[] =>
  list.filter((entry) => entry >= 0).map((key) => ({ key }));

/** The keys of blocks of a causal row. */
const blocksOf = (list: readonly number[], query: number, size = 16): ListedKey[] =>
  list
    .filter((block) => block >= 0)
    .flatMap((block) => Array.from({ length: size }, (_, i) => block * size + i))
    .filter((key) => key < 205 && key <= query + 205 - 24)
    .map((key) => ({ key }));

function causeOf(problem: Problem, outputs: KernelOutputs) {
  const { verdict } = judgeOutputs(problem, outputs);
  return { pass: verdict.pass, id: verdict.diagnosis?.id ?? null, verdict };
}

const keyFaults: readonly (readonly [id: string, Change])[] = [
  ['lists-ignored', () => keys(Array.from({ length: 300 }, (_, key) => key))],
  ['list-half', (_, list) => keys(list().slice(0, 24))],
  ['list-half', (_, list) => keys(list().slice(24))],
  ['list-end-left-out', (_, list) => keys(list().slice(0, -1))],
  ['list-end-left-out', (_, list) => keys(list().slice(1))],
  ['list-stops-at-none', (_, list) => keys(list().slice(0, list().indexOf(-1)))],
  ['list-tail-left-out', (_, list) => keys(list().slice(0, 32))],
  [
    'list-off-by-one',
    (_, list) => keys(list().map((x) => (x < 0 ? -1 : x + 1 < 300 ? x + 1 : -1))),
  ],
  ['list-off-by-one', (_, list) => keys(list().map((x) => x - 1))],
  ['list-of-other-query', ({ query }, list) => keys(list({ query: Math.max(0, query - 1) }))],
  ['list-of-other-query', ({ query }, list) => keys(list({ query: Math.min(4, query + 1) }))],
  ['list-of-other-query', (_, list) => keys(list({ query: 0 }))],
  ['list-of-other-head', ({ kvHead }, list) => keys(list({ kvHead: Math.min(1, kvHead + 1) }))],
  ['list-of-other-sequence', (_, list) => keys(list({ batch: 0 }))],
  ['list-none-as-key', (_, list) => keys(list().map((x) => (x < 0 ? 299 : x)))],
  ['list-none-as-key', (_, list) => keys(list().map((x) => (x < 0 ? 0 : x)))],
  [
    'list-none-in-sum',
    (_, list) =>
      list().map((x) => (x < 0 ? { key: 0, score: 0, value: (v) => v.map(() => 0) } : { key: x })),
  ],
  [
    'list-entry-left-out',
    ({ batch, query, kvHead }, list) => {
      const all = list();
      const at = all.findIndex((x) => x >= 0);
      return keys(batch + query + kvHead === 0 ? all.filter((_, i) => i !== at) : all);
    },
  ],
  [
    'list-entry-twice',
    ({ batch, query, kvHead }, list) => {
      const all = list();
      const twice = all.filter((x) => x >= 0).slice(2, 3);
      return keys(batch + query + kvHead === 0 ? [...all, ...twice] : all);
    },
  ],
];

const blockFaults: readonly (readonly [id: string, Change])[] = [
  ['list-block-size', ({ query }, list) => blocksOf(list(), query, 8)],
  ['list-block-size', ({ query }, list) => blocksOf(list(), query, 1)],
  [
    'list-block-tail',
    ({ query }, list) => blocksOf(list(), query).filter(({ key }) => key % 16 !== 15),
  ],
  ['list-block-tail', ({ query }, list) => blocksOf(list(), query).filter(({ key }) => key < 192)],
  [
    'list-off-by-one',
    ({ query }, list) =>
      blocksOf(
        list().map((x) => x - 1),
        query,
      ),
  ],
  [
    'list-block-of-diagonal',
    ({ query }, list) =>
      blocksOf(list(), query).filter(
        ({ key }) => Math.floor(key / 16) !== Math.floor((query + 205 - 24) / 16),
      ),
  ],
];

describe('an audit of attention over lists', () => {
  it('passes what is right, keys and blocks', () => {
    const problem = withKeys();
    checkProblem(problem);
    const right = readAs(problem, (_, list) => keys(list()));
    expect(judgeOutputs(problem, right).verdict).toMatchObject({ pass: true });
    const blocks = withBlocks();
    checkProblem(blocks);
    const ofBlocks = readAs(blocks, ({ query }, list) => blocksOf(list(), query));
    expect(judgeOutputs(blocks, ofBlocks).verdict).toMatchObject({ pass: true });
  });

  inTurn.each(keyFaults.map(([id, change], index) => ({ id, change, index })))(
    'names $id ($index)',
    ({ id, change }) => {
      const problem = withKeys();
      const { pass, verdict } = causeOf(problem, readAs(problem, change));
      expect(pass).toBe(false);
      expect([verdict.diagnosis?.id, ...(verdict.diagnosis?.equivalents ?? [])]).toContain(id);
    },
  );

  inTurn.each(blockFaults.map(([id, change], index) => ({ id, change, index })))(
    'names $id of blocks ($index)',
    ({ id, change }) => {
      const problem = withBlocks();
      const { pass, verdict } = causeOf(problem, readAs(problem, change));
      expect(pass).toBe(false);
      expect([verdict.diagnosis?.id, ...(verdict.diagnosis?.equivalents ?? [])]).toContain(id);
    },
  );

  it('names slots that are read as positions, and positions that are read as slots', () => {
    const [queries, keyCount, pageSize] = [3, 96, 16];
    const plain = problemOf({ batch: 1, heads: 2, kvHeads: 1, queries, keys: keyCount });
    const list = Array.from({ length: queries }, () => drawList(keyCount, 24, 24)).flat();
    const problem = storeProblem(
      {
        ...plain,
        sequences: [{ firstQuery: 0, queries, firstKey: 0, keys: keyCount }],
        keyLists: {
          indices: { shape: [1, queries, 1, 24], data: Int32Array.from(list) },
          blockKeys: 1,
          blockQueries: 1,
          areSlots: true,
        },
      },
      {
        queries: { kind: 'packed' },
        keys: { kind: 'paged', pageSize, arrange: () => [3, 5, 0, 4, 2, 1] },
      },
    );
    const { slots } = problem.stored.keys;
    const listed = { ...problem, keyLists: problem.keyLists! };
    const right = readAs(listed, (_, list) => keys(list()));
    expect(judgeOutputs(problem, right).verdict.pass).toBe(true);
    const asPositions = readAs(listed, (_, list) => keys(list().map((key) => slots[key])));
    expect(causeOf(problem, asPositions)).toMatchObject({
      pass: false,
      id: 'list-slots-as-positions',
    });
    const asSlots = readAs(listed, (_, list) => keys(list().map((key) => slots.indexOf(key))));
    const { pass, verdict } = causeOf(problem, asSlots);
    expect(pass).toBe(false);
    expect([verdict.diagnosis?.id, ...(verdict.diagnosis?.equivalents ?? [])]).toContain(
      'list-positions-as-slots',
    );
  });
});
