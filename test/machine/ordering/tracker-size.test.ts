import { queryObjects } from 'node:v8';
import { describe, expect, it } from 'vitest';
import {
  byteStoreOf,
  createGridOrder,
  createTensorMap,
  type Instruction,
  runCluster,
  type WarpProgram,
} from '../../../src/machine/index.js';
import { Stamp } from '../../../src/machine/ordering/index.js';
import {
  arrive,
  data,
  expectBytes,
  fragment,
  launchMemory,
  launchOf,
  look,
  meet,
  places,
  type SmallProgram,
  transfer,
  wait,
  words,
} from '../launch.js';

const bytes = 128;
const store = words('st.shared', data);
const load = words('ld.shared', data);
const beside = words('st.shared', data + bytes);
const fence: Instruction = { op: 'fence.proxy.async' };
const parityOf = (round: number) => (1 - (round % 2)) as 0 | 1;
const otherParity = (round: number) => (round % 2) as 0 | 1;

const memory = launchMemory();
const contents = new Uint8Array(bytes);
const { base } = memory.global.allocate({
  name: 'X',
  contents,
  tensor: { shape: [bytes / 4], elementBits: 32 },
});
const map = createTensorMap({
  name: 'X',
  place: { store: byteStoreOf(contents), offset: 0 },
  address: base,
  elementBytes: 4,
  dims: [bytes / 4, 1],
  strides: [bytes],
  box: [bytes / 4, 1],
  swizzle: 'none',
});
const box = { map, coordinates: [0, 0], name: 'X' } as const;
const word = places('global', base, 4, 1);

/** Lanes that diverge, and what each strand of them does. */
const diverge = (...strands: readonly (readonly Instruction[])[]): Instruction => ({
  op: 'diverge',
  strands: strands.map((instructions, i) => ({
    name: `side ${i}`,
    program: (function* (): WarpProgram {
      yield* instructions;
    })(),
  })),
});

/** What the two warps do in a round of a loop. */
interface Loop extends Pick<SmallProgram, 'barriers'> {
  readonly first: (round: number) => readonly Instruction[];
  readonly second: (round: number) => readonly Instruction[];
}

const idle = () => [];

const loops: Readonly<Record<string, Loop>> = {
  'shared memory between barriers of the CTA': {
    first: () => [store, meet('bar.sync', 1, 2), load, meet('bar.sync', 1, 2)],
    second: () => [meet('bar.sync', 1, 2), load, meet('bar.sync', 1, 2)],
  },
  'a barrier where one warp arrives and another one waits': {
    first: () => [meet('bar.arrive', 1, 2), meet('bar.sync', 2, 2)],
    second: () => [meet('bar.sync', 1, 2), meet('bar.arrive', 2, 2)],
  },
  'a buffer handed to and fro by mbarriers': {
    barriers: { full: 1, empty: 1 },
    first: (round) => [wait(8, otherParity(round)), store, arrive(0)],
    second: (round) => [wait(0, parityOf(round)), load, arrive(8)],
  },
  'bulk loads': {
    barriers: { full: 1, empty: 1 },
    first: (round) => [
      wait(8, otherParity(round)),
      expectBytes(0, bytes),
      { op: 'cp.async.bulk.tensor.shared.global', ...box, destination: data, barrier: 0 },
    ],
    second: (round) => [wait(0, parityOf(round)), load, arrive(8)],
  },
  'bulk stores of which only the reading is awaited': {
    first: () => [
      store,
      fence,
      { op: 'cp.async.bulk.tensor.global.shared', ...box, source: data },
      { op: 'cp.async.bulk.commit_group' },
      { op: 'cp.async.bulk.wait_group.read', pending: 0 },
    ],
    second: idle,
  },
  'waits for a phase that is complete': {
    barriers: { full: 1 },
    first: () => [wait(0, 1)],
    second: () => [wait(0, 1, 'waits too')],
  },
  'mbarriers that are initialised and invalidated': {
    first: () => [
      { op: 'mbarrier.init', barrier: 512, count: 1, name: 'short' },
      arrive(512),
      wait(512, 0),
      { op: 'mbarrier.inval', barrier: 512 },
    ],
    second: idle,
  },
  'lanes that diverge': {
    first: () => [diverge([store, load], [beside, words('ld.shared', data + bytes)])],
    second: idle,
  },
  'strong accesses in no order': {
    first: () => [transfer('st', word, fragment(), { order: 'release' })],
    second: () => [transfer('ld', word, fragment(), { order: 'acquire' })],
  },
};

const fewRounds = 64;
const manyRounds = 4 * fewRounds;
const lastRound = manyRounds + 8;

/** The stamps that are held after a few rounds of a loop and after many, and the chains of all agents so far. */
function sizesOf({ first, second, ...program }: Loop) {
  const grid = createGridOrder();
  const sizes: { readonly stamps: number; readonly chains: number }[] = [];
  const measure = look(fragment(), () => {
    const stamps = queryObjects(Stamp, { format: 'count' });
    sizes.push({ stamps, chains: grid.chains.count });
  });
  const body = (round: Loop['first'], isMeasured: boolean) =>
    function* () {
      for (let i = 1; i <= lastRound; i++) {
        yield* round(i);
        if (isMeasured && (i === fewRounds || i === manyRounds)) yield measure;
      }
    };
  const warps = [body(first, true), body(second, false)];
  const { findings } = runCluster(launchOf({ ...program, memory, warps }), { grid });
  expect(findings).toEqual([]);
  return sizes;
}

describe('what the tracker holds does not grow with the rounds of a loop', () => {
  it.each(Object.entries(loops))('%s', (_name, loop) => {
    const [few, many] = sizesOf(loop);
    expect(few.stamps).toBeGreaterThan(0);
    expect(many).toEqual(few);
  });
});
