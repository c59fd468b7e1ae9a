import { describe, expect, it } from 'vitest';
import {
  adversarialSchedulers,
  createByteStore,
  createTensorMap,
  type FindingKind,
  findingKinds,
  type Instruction,
  randomScheduler,
} from '../../src/machine/index.js';
import {
  arrive,
  data,
  expectBytes,
  fragment,
  kindsOf,
  launchMemory,
  meet,
  messagesOf,
  places,
  runProgram,
  transfer,
  wait,
  words,
  type SmallProgram,
} from './launch.js';
import { allocate, commitTo, deallocate, moveRows, multiply } from './tile-product.js';

/** A program with a mistake, and the same one without it. */
interface Pair {
  /** What else is found: the kind comes only with these. */
  readonly besides?: readonly FindingKind[];
  readonly wrong: SmallProgram;
  readonly right: SmallProgram;
}

const map = createTensorMap({
  name: 'X',
  place: { store: createByteStore(128), offset: 0 },
  elementBytes: 4,
  dims: [32, 1],
  strides: [128],
  box: [32, 1],
  swizzle: 'none',
});
const load = (destination = data, barrier = 0): Instruction => ({
  op: 'cp.async.bulk.tensor.shared.global',
  map,
  coordinates: [0, 0],
  destination,
  barrier,
  name: 'X',
  site: 'loads',
});
const store = words('st.shared', data);
const read = words('ld.shared', data);
const storing: readonly Instruction[] = [
  store,
  { op: 'fence.proxy.async' },
  {
    op: 'cp.async.bulk.tensor.global.shared',
    map,
    coordinates: [0, 0],
    source: data,
    name: 'X',
    site: 'stores',
  },
  { op: 'cp.async.bulk.commit_group' },
];
const setRegisters = (registers: number): Instruction => ({
  op: 'setmaxnreg',
  action: 'inc',
  registers,
});
const operands = { a: 2048, b: 4096, d: 0 };
/** A product of which one commit is awaited, and another one as these say, before the end of its barrier. */
const committing = (...waits: Instruction[]): SmallProgram => ({
  barriers: { computed: 1, released: 1 },
  warps: [
    [
      allocate(32, data),
      ...Array.from({ length: 18 }, (_, i) =>
        words('st.shared', i < 16 ? operands.a + 128 * i : operands.b + 128 * (i - 16)),
      ),
      { op: 'fence.proxy.async' },
      multiply(operands, false),
      commitTo(0),
      commitTo(8),
      wait(0, 0),
      ...waits,
      { op: 'mbarrier.inval', barrier: 8 },
      deallocate(32),
    ],
  ],
});
const initialised: readonly Instruction[] = [
  { op: 'mbarrier.init', barrier: 512, count: 1, name: 'late' },
];
const waitSt = { op: 'tcgen05.wait::st' } as const;
const inTensorMemory = (...instructions: Instruction[]): SmallProgram => ({
  warps: [[allocate(32, data), ...instructions, deallocate(32)]],
});

/** The smallest mistake of each kind. */
const programs: Readonly<Record<FindingKind, Pair>> = {
  race: {
    wrong: { warps: [[store], [store]] },
    right: {
      barriers: { written: 1 },
      warps: [
        [store, arrive(0)],
        [wait(0, 0), read, store],
      ],
    },
  },
  uninitialised: {
    wrong: { warps: [[read]] },
    right: { warps: [[store, read]] },
  },
  'overwritten-unread': {
    wrong: { warps: [[store, words('st.shared', data)]] },
    right: { warps: [[store, read, words('st.shared', data)]] },
  },
  'barrier-memory': {
    wrong: { barriers: { full: 1 }, warps: [[words('st.shared', 0)]] },
    right: { barriers: { full: 1 }, warps: [[words('st.shared', data)]] },
  },
  'unfenced-initialisation': {
    wrong: { warps: [[...initialised, expectBytes(512, 128), load(data, 512), wait(512, 0)]] },
    right: {
      warps: [
        [
          ...initialised,
          { op: 'fence.mbarrier_init' },
          expectBytes(512, 128),
          load(data, 512),
          wait(512, 0),
        ],
      ],
    },
  },
  'stray-commit': {
    wrong: committing(),
    right: committing(wait(8, 0)),
  },
  'repeated-wait': {
    besides: ['race'],
    wrong: {
      barriers: { full: 1 },
      warps: [
        [arrive(0), wait(0, 0), wait(0, 0), store],
        [wait(0, 0), store],
      ],
    },
    right: { barriers: { full: 1 }, warps: [[arrive(0), wait(0, 0), wait(0, 0), store]] },
  },
  'lane-window': {
    wrong: inTensorMemory(moveRows('tcgen05.st', 1, 0, fragment(4)), waitSt),
    right: inTensorMemory(moveRows('tcgen05.st', 0, 0, fragment(4)), waitSt),
  },
  'tensor-allocation': {
    wrong: inTensorMemory(moveRows('tcgen05.st', 0, 32, fragment(4)), waitSt),
    right: inTensorMemory(moveRows('tcgen05.st', 0, 24, fragment(4)), waitSt),
  },
  'schedule-dependent': {
    wrong: {
      barriers: { allocated: 2 },
      warps: [
        [allocate(32, data), arrive(0)],
        [allocate(32, data + 4), arrive(0)],
        [wait(0, 0), deallocate(32), deallocate(32, 32)],
      ],
    },
    right: {
      barriers: { first: 1, second: 1 },
      warps: [
        [allocate(32, data), arrive(0)],
        [wait(0, 0), allocate(32, data + 4), arrive(8)],
        [wait(8, 0), deallocate(32), deallocate(32, 32)],
      ],
    },
  },
  'leaked-tensor-memory': {
    wrong: { warps: [[allocate(32, data)]] },
    right: { warps: [[allocate(32, data), deallocate(32)]] },
  },
  'shared-overflow': {
    wrong: { warps: [[words('st.shared', 232_448 - 124)]] },
    right: { warps: [[words('st.shared', 232_448 - 128)]] },
  },
  'out-of-bounds': {
    wrong: { warps: [[transfer('ld', places('global', 4096))]], memory: launchMemory() },
    right: {
      warps: [[transfer('ld', places('param', 0))]],
      memory: launchMemory(new Uint8Array(128)),
    },
  },
  'state-space': {
    wrong: {
      warps: [[transfer('st', places('param', 0))]],
      memory: launchMemory(new Uint8Array(128)),
    },
    right: {
      warps: [[transfer('ld', places('param', 0))]],
      memory: launchMemory(new Uint8Array(128)),
    },
  },
  misaligned: {
    wrong: { warps: [[words('st.shared', data + 2)]] },
    right: { warps: [[words('st.shared', data + 4)]] },
  },
  'barrier-initialisation': {
    wrong: { barriers: { full: 1 }, warps: [[arrive(8)]] },
    right: { barriers: { full: 1 }, warps: [[arrive(0)]] },
  },
  'over-arrival': {
    wrong: { barriers: { full: 1 }, warps: [[expectBytes(0, 128), arrive(0), load(), wait(0, 0)]] },
    right: { barriers: { full: 2 }, warps: [[expectBytes(0, 128), arrive(0), load(), wait(0, 0)]] },
  },
  phase: {
    wrong: { barriers: { full: 1 }, warps: [[arrive(0)], [arrive(0)]] },
    right: { barriers: { full: 1 }, warps: [[arrive(0)], [wait(0, 0), arrive(0)]] },
  },
  deadlock: {
    wrong: { warps: [[meet('bar.sync', 1, 2)], []] },
    right: { warps: [[meet('bar.sync', 1, 2)], [meet('bar.arrive', 1, 2)]] },
  },
  'exited-cta': {
    wrong: {
      ctas: 2,
      barriers: { full: 1 },
      warps: [({ cta }) => (cta === 0 ? [] : [arrive(0)])],
    },
    right: {
      ctas: 2,
      barriers: { full: 1 },
      warps: [({ cta }) => (cta === 0 ? [wait(0, 0)] : [arrive(0)])],
    },
  },
  'unfinished-operation': {
    wrong: { warps: [[...storing]] },
    right: { warps: [[...storing, { op: 'cp.async.bulk.wait_group.read', pending: 0 }]] },
  },
  'instruction-shape': {
    wrong: { warps: Array.from({ length: 4 }, () => [setRegisters(257)]) },
    right: { warps: Array.from({ length: 4 }, () => [setRegisters(256)]) },
  },
  convergence: {
    wrong: { warps: [[{ op: 'report', kind: 'convergence', message: 'half of the lanes' }]] },
    right: { warps: [[]] },
  },
  trap: {
    wrong: { warps: [[{ op: 'report', kind: 'trap', message: 'trap' }]] },
    right: { warps: [[]] },
  },
};

const kinds = Object.keys(findingKinds) as FindingKind[];

const schedulersOf = ({ warps }: SmallProgram) => [
  ...adversarialSchedulers(warps.length),
  ...Array.from({ length: 5 }, (_, seed) => randomScheduler(seed)),
];

describe('findings', () => {
  it('have a program for each kind', () => {
    expect(Object.keys(programs).sort()).toEqual([...kinds].sort());
  });

  it.each(kinds)('%s: found in every schedule, and alone', (kind) => {
    const { wrong, besides = [] } = programs[kind];
    const due = [...besides, kind].sort();
    for (const scheduler of schedulersOf(wrong))
      expect(kindsOf(runProgram(wrong, { scheduler })), scheduler.name).toEqual(due);
  });

  it.each(kinds)('%s: nothing is found without the mistake', (kind) => {
    const { right } = programs[kind];
    for (const scheduler of schedulersOf(right))
      expect(messagesOf(runProgram(right, { scheduler })), scheduler.name).toEqual([]);
  });

  it('say who, where and how often', () => {
    const name = (warp: number) => `CTA 0 warp ${warp}`;
    const { findings } = runProgram({
      warps: [Array.from({ length: 3 }, () => words('ld.shared', data + 2, fragment(), 'reads'))],
    });
    expect(findings).toHaveLength(32);
    expect(findings[0]).toMatchObject({ kind: 'misaligned', cta: 0, count: 3 });
    expect(findings[0].message).toBe(`${name(0)}, reads: data at ${data + 2}`);
    expect(findings[0].accesses).toMatchObject([{ who: name(0), site: 'reads' }]);
    const race = runProgram({ warps: [[store], [store]] }).findings[0];
    expect(race.accesses.map(({ who }) => who).sort()).toEqual([name(0), name(1)]);
    expect(race.accesses[0].step).toBeLessThan(race.accesses[1].step);
  });

  it('end a run that has no end, and name it', () => {
    const endless: SmallProgram = {
      warps: [
        function* () {
          for (;;) yield { op: 'bar.warp.sync' } as const;
        },
      ],
    };
    const run = runProgram(endless, { mostSteps: 1000 });
    expect(run).toMatchObject({ steps: 1000, isComplete: false });
    expect(messagesOf(run)).toEqual([
      'no end after 1000 steps; CTA 0 warp 0 is at "bar.warp.sync"',
    ]);
  });
});
