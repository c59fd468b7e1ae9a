import { describe, expect, it } from 'vitest';
import {
  adversarialSchedulers,
  byteStoreOf,
  clusterAddress,
  createTensorMap,
  electedLane,
  type Instruction,
  randomScheduler,
  runCluster,
  type TensorMap,
} from '../../src/machine/index.js';
import {
  data,
  expectBytes,
  fragment,
  kindsOf,
  launchOf,
  look,
  meet,
  messagesOf,
  runProgram,
  scheduleNamed,
  wait,
  words,
  type SmallProgram,
} from './launch.js';

const rows = 4;
const boxBytes = 32 * 4;

/** A tensor of 4 rows of 32 words with a box of one row. */
function createTensor(name = 'X'): { map: TensorMap; memory: Uint32Array } {
  const memory = Uint32Array.from({ length: 32 * rows }, (_, i) => 1000 + i);
  const map = createTensorMap({
    name,
    place: { store: byteStoreOf(memory), offset: 0 },
    elementBytes: 4,
    dims: [32, rows],
    strides: [128],
    box: [32, 1],
    swizzle: 'none',
  });
  return { map, memory };
}

function load(map: TensorMap, row: number, destination = data, barrier = 0): Instruction {
  return {
    op: 'cp.async.bulk.tensor.shared.global',
    map,
    coordinates: [0, row],
    destination,
    barrier,
    name: 'X',
    site: 'loads',
  };
}

function store(map: TensorMap, row: number, source = data): Instruction {
  const op = 'cp.async.bulk.tensor.global.shared';
  return { op, map, coordinates: [0, row], source, name: 'Y', site: 'stores' };
}

const fence = { op: 'fence.proxy.async', site: 'proxy fence' } as const;
const commit = { op: 'cp.async.bulk.commit_group', site: 'commits' } as const;
const meetCluster = [{ op: 'barrier.cluster.arrive' }, { op: 'barrier.cluster.wait' }] as const;
const awaitGroups = (pending: number, read = true): Instruction => ({
  op: read ? 'cp.async.bulk.wait_group.read' : 'cp.async.bulk.wait_group',
  pending,
  site: `waits for all but ${pending}`,
});

describe('bulk loads', () => {
  /** Loads a row; a warp waits for it, or not, and reads it. */
  const program = (waits: boolean, seen: number[] = []): SmallProgram => {
    const { map } = createTensor();
    const registers = fragment();
    return {
      barriers: { full: 1 },
      warps: [
        [expectBytes(0, boxBytes), load(map, 2)],
        [
          ...(waits ? [wait(0, 0)] : []),
          words('ld.shared', data, registers),
          look(registers, (values) => seen.push(...values)),
        ],
      ],
    };
  };

  it.each([
    ...adversarialSchedulers(2),
    ...Array.from({ length: 10 }, (_, i) => randomScheduler(i)),
  ])('have landed when the barrier says so: $name', (scheduler) => {
    const seen: number[] = [];
    const run = runProgram(program(true, seen), { scheduler });
    expect(messagesOf(run)).toEqual([]);
    expect(seen).toEqual(Array.from({ length: 32 }, (_, i) => 1064 + i));
  });

  it('land as late as they like for who does not wait', () => {
    const seen: number[] = [];
    const scheduler = scheduleNamed('all operations late', 2);
    const run = runProgram(program(false, seen), { scheduler });
    expect(seen).toEqual(Array(32).fill(0));
    expect(kindsOf(run)).toContain('race');
    expect(kindsOf(run)).toContain('uninitialised');
  });

  it('may bring their bytes before they are expected, in the same phase', () => {
    const { map } = createTensor();
    const bodies = (instructions: Instruction[]): SmallProgram => ({
      barriers: { full: 1 },
      warps: [instructions, [wait(0, 0), words('ld.shared', data)]],
    });
    for (const scheduler of adversarialSchedulers(2)) {
      const early = [load(map, 1), expectBytes(0, boxBytes)];
      expect(messagesOf(runProgram(bodies(early), { scheduler })), scheduler.name).toEqual([]);
    }
  });

  it('complete no phase while bytes are outstanding, or are ahead', () => {
    const { map } = createTensor();
    const kinds = (bytes: number) =>
      kindsOf(
        runProgram({
          barriers: { full: 1 },
          warps: [[expectBytes(0, bytes), load(map, 0), wait(0, 0)]],
        }),
      );
    expect(kinds(boxBytes)).toEqual([]);
    for (const bytes of [boxBytes - 16, boxBytes + 16])
      expect(kinds(bytes), `${bytes} bytes`).toContain('deadlock');
    // A phase that expects none does not wait for them.
    expect(kinds(0)).toEqual(['unfinished-operation']);
  });

  it('count whole boxes at the edge of the tensor, with zeros beyond it', () => {
    const { map } = createTensor();
    const registers = fragment();
    let seen: number[] = [];
    const run = runProgram({
      barriers: { full: 1 },
      warps: [
        [
          expectBytes(0, boxBytes),
          load(map, rows),
          wait(0, 0),
          words('ld.shared', data, registers),
          look(registers, (values) => (seen = values)),
        ],
      ],
    });
    expect(messagesOf(run)).toEqual([]);
    expect(seen).toEqual(Array(32).fill(0));
  });

  it('count on a barrier of the other CTA', () => {
    const { map } = createTensor();
    const barrier = clusterAddress(0, 0);
    const program: SmallProgram = {
      ctas: 2,
      barriers: { full: 1, done: 1 },
      warps: [
        function* ({ cta }) {
          if (cta === 0) yield expectBytes(0, 2 * boxBytes);
          yield load(map, cta, data, barrier);
          if (cta === 1) {
            yield wait(8, 0);
            yield words('ld.shared', data);
            return;
          }
          yield wait(0, 0);
          yield words('ld.shared', data);
          yield { op: 'mbarrier.arrive', barrier: clusterAddress(1, 8), lanes: electedLane };
        },
      ],
    };
    // The bytes of CTA 1 may come before those of CTA 0 are expected: one phase has them all.
    for (const scheduler of adversarialSchedulers(1))
      expect(messagesOf(runProgram(program, { scheduler })), scheduler.name).toEqual([]);
  });

  /** CTA 0 of a pair loads a row for some of its CTAs; each waits for its own, or for that of CTA 0. */
  const multicast = (ctas: readonly number[], group: 1 | 2, seen: number[][]): SmallProgram => {
    const { map } = createTensor();
    const expected = group === 1 ? 1 : 2;
    const [full, done] = [0, 8];
    return {
      ctas: 2,
      barriers: { full: 1, done: 1 },
      warps: [
        function* ({ cta }) {
          const registers = fragment();
          const read = [
            words('ld.shared', data, registers),
            look(registers, (values) => (seen[cta] = values)),
          ];
          if (group === 1 || cta === 0)
            yield expectBytes(clusterAddress(cta, full), expected * boxBytes);
          yield* meetCluster;
          if (cta === 0) {
            yield { ...load(map, 2, data, full), multicast: { ctas, group } } as Instruction;
            yield wait(full, 0);
            yield* read;
            yield { op: 'mbarrier.arrive', barrier: clusterAddress(1, done), lanes: electedLane };
          } else {
            yield wait(group === 1 ? full : done, 0);
            yield* read;
          }
          yield* meetCluster;
        },
      ],
    };
  };

  it.each([1, 2] as const)('give one box to both CTAs of a pair, group %s', (group) => {
    const row = Array.from({ length: 32 }, (_, i) => 1064 + i);
    for (const scheduler of adversarialSchedulers(1)) {
      const seen: number[][] = [];
      const run = runProgram(multicast([0, 1], group, seen), { scheduler });
      expect(messagesOf(run), scheduler.name).toEqual([]);
      expect(seen).toEqual([row, row]);
    }
  });

  it('leave a CTA without its box that is none of the named ones', () => {
    const run = runProgram(multicast([0], 1, []), {});
    expect(kindsOf(run)).toContain('deadlock');
    expect(kindsOf(runProgram(multicast([0, 1, 5], 1, []), {}))).toContain('instruction-shape');
  });

  it('need a box that lies within shared memory, at a multiple of 128, with its coordinates', () => {
    const { map } = createTensor();
    const kinds = (instruction: Instruction) =>
      kindsOf(runProgram({ barriers: { full: 1 }, warps: [[instruction]] }));
    const end = 232_448;
    expect(kinds(load(map, 0, end))).toEqual(['shared-overflow']);
    expect(kinds(load(map, 0, end - boxBytes))).not.toContain('shared-overflow');
    expect(kinds(load(map, 0, data + 64))).toEqual(['misaligned']);
    expect(kinds({ ...load(map, 0), coordinates: [0] } as Instruction)).toEqual([
      'instruction-shape',
    ]);
    expect(kinds(store(map, 0, end))).toEqual(['shared-overflow']);
    expect(kinds(store(map, 0, data + 4))).toEqual(['misaligned']);
  });

  it('must be waited for before the CTA ends', () => {
    const { map } = createTensor();
    const body = [expectBytes(0, boxBytes), load(map, 0)];
    const kinds = (instructions: Instruction[]) =>
      adversarialSchedulers(1).map((scheduler) =>
        kindsOf(
          runProgram({ barriers: { full: 1 }, warps: [instructions] }, { scheduler }),
        ).includes('unfinished-operation'),
      );
    expect(new Set(kinds(body))).toEqual(new Set([true]));
    expect(new Set(kinds([...body, wait(0, 0)]))).toEqual(new Set([false]));
  });
});

describe('bulk stores', () => {
  const write = (value: number) =>
    words(
      'st.shared',
      data,
      fragment(1, (lane) => value + lane),
    );
  /** Writes and stores two rows through one buffer. */
  const program = (
    leaveOut: (instruction: Instruction) => boolean = () => false,
  ): { run: SmallProgram; memory: Uint32Array } => {
    const { map, memory } = createTensor();
    const all = [
      ...[write(1), fence, store(map, 0), commit, awaitGroups(0)],
      ...[write(2), fence, store(map, 1), commit, awaitGroups(0, false)],
    ];
    return { run: { warps: [all.filter((one) => !leaveOut(one))] }, memory };
  };

  it.each(adversarialSchedulers(1))('read before they are waited for: $name', (scheduler) => {
    const { run, memory } = program();
    expect(messagesOf(runProgram(run, { scheduler }))).toEqual([]);
    expect([memory[0], memory[31], memory[32], memory[63]]).toEqual([1, 32, 2, 33]);
  });

  it('need fence.proxy.async after the writes of the generic proxy', () => {
    const { run } = program(({ op }) => op === 'fence.proxy.async');
    const found = runProgram(run);
    expect(kindsOf(found)).toEqual(['race']);
    expect(messagesOf(found)[0]).toBe(
      'shared memory, byte 1024 (data): a read of what is written at no known time before but for fence.proxy.async: CTA 0 warp 0 (st.shared) and cp.async.bulk.tensor.global.shared of CTA 0 warp 0 (stores)',
    );
  });

  it('need a fence in the warp that writes, or in the one that stores after it has met the other', () => {
    const { map } = createTensor();
    const between = (first: Instruction[], second: Instruction[]) =>
      kindsOf(
        runProgram({
          warps: [
            [write(1), ...first, meet('bar.sync', 1, 2)],
            [meet('bar.sync', 1, 2), ...second, store(map, 0), commit, awaitGroups(0)],
          ],
        }),
      );
    expect(between([fence], [])).toEqual([]);
    expect(between([], [fence])).toEqual([]);
    expect(between([], [])).toEqual(['race']);
  });

  it('may still read when they are not waited for', () => {
    for (const op of ['cp.async.bulk.commit_group', 'cp.async.bulk.wait_group.read'] as const) {
      const { run } = program((instruction) => instruction.op === op);
      expect(kindsOf(runProgram(run)), op).toContain('race');
    }
    const { run, memory } = program(({ op }) => op === 'cp.async.bulk.wait_group.read');
    runProgram(run, { scheduler: scheduleNamed('bulk-store late', 1) });
    expect(memory[0]).toBe(2);
  });

  it('must be waited for before the CTA ends', () => {
    const { run } = program(({ op }) => op === 'cp.async.bulk.wait_group');
    expect(kindsOf(runProgram(run))).toEqual(['unfinished-operation']);
  });

  it('are waited for group by group', () => {
    const { map } = createTensor();
    const at = (i: number) => data + 128 * i;
    const fill = (i: number): Instruction[] => [
      words('st.shared', at(i)),
      fence,
      store(map, i, at(i)),
      commit,
    ];
    const program = (pending: number, again: number): SmallProgram => ({
      warps: [
        [
          ...[...fill(0), ...fill(1), ...fill(2), awaitGroups(pending)],
          ...[words('st.shared', at(again)), fence, store(map, 3, at(again)), commit],
          awaitGroups(0),
        ],
      ],
    });
    // With so many pending, the older groups are done: their buffers are free.
    for (let pending = 0; pending <= 3; pending++)
      for (let again = 0; again < 3; again++)
        expect(kindsOf(runProgram(program(pending, again))), `${pending}, ${again}`).toEqual(
          again < 3 - pending ? [] : ['race'],
        );
  });

  it('write nothing beyond the tensor', () => {
    const { map, memory } = createTensor();
    const before = [...memory];
    const launch = launchOf({
      warps: [[write(7), fence, store(map, rows), commit, awaitGroups(0)]],
    });
    expect(messagesOf(runCluster(launch))).toEqual([]);
    expect([...memory]).toEqual(before);
  });
});
