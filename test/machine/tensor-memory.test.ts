import { describe, expect, it } from 'vitest';
import {
  adversarialSchedulers,
  memoryModels,
  randomScheduler,
  tensorAddress,
  type Instruction,
  type MemoryModelName,
} from '../../src/machine/index.js';
import {
  arrive,
  data,
  fragment,
  kindsOf,
  look,
  meet,
  messagesOf,
  runProgram,
  scheduleNamed,
  wait,
  type SmallProgram,
} from './launch.js';
import { allocate, deallocate } from './tile-product.js';

const relinquish = { op: 'tcgen05.relinquish_alloc_permit', group: 1 } as const;
const waitLd = { op: 'tcgen05.wait::ld', site: 'loads awaited' } as const;
const waitSt = { op: 'tcgen05.wait::st', site: 'stores awaited' } as const;

function move(
  op: 'tcgen05.ld' | 'tcgen05.st',
  address: number,
  registers = fragment(),
  site: string = op,
): Instruction {
  const transfer = { shape: '32x32b', repeat: registers.words.length / 32 } as const;
  return { op, transfer, address, fragment: registers, name: 'T', site };
}

function kinds(...warps: (readonly Instruction[])[]): string[] {
  return kindsOf(runProgram({ warps }));
}

describe('allocation of tensor memory', () => {
  it('gives columns that do not overlap, and the address to shared memory', () => {
    const seen: number[] = [];
    const address = fragment();
    const read = (from: number): Instruction => ({
      op: 'ld.shared',
      words: 1,
      name: 'address',
      fragment: address,
      addresses: new Int32Array(32).fill(from),
    });
    const run = runProgram({
      warps: [
        [
          ...[128, 64, 32].flatMap((columns, i) => [
            allocate(columns, data + 4 * i),
            read(data + 4 * i),
            look(address, ([first]) => seen.push(first)),
          ]),
          ...[deallocate(128, 0), deallocate(64, 128), deallocate(32, 192)],
        ],
      ],
    });
    expect(messagesOf(run)).toEqual([]);
    expect(seen).toEqual([0, 128, 192]);
    expect(run.counters[0].mostTensorColumns).toBe(224);
  });

  it.each([
    ['no power of two', [allocate(96, data)], ['tensor-allocation']],
    ['fewer than 32', [allocate(16, data)], ['tensor-allocation']],
    ['more than 512', [allocate(1024, data)], ['tensor-allocation']],
    [
      'more than before',
      [allocate(32, data), allocate(64, data + 4), deallocate(32)],
      ['tensor-allocation'],
    ],
    ['after giving up the permit', [relinquish, allocate(32, data)], ['tensor-allocation']],
    [
      'free columns that are not allocated',
      [allocate(32, data), deallocate(32), deallocate(32)],
      ['tensor-allocation'],
    ],
    [
      'free a part',
      [allocate(64, data), deallocate(32)],
      ['leaked-tensor-memory', 'tensor-allocation'],
    ],
    ['leave them allocated', [allocate(32, data)], ['leaked-tensor-memory']],
    ['an address to no multiple of 4', [allocate(32, data + 2)], ['misaligned']],
    ['an address beyond shared memory', [allocate(32, 232_448)], ['shared-overflow']],
    [
      'for a pair where there is none',
      [{ ...allocate(32, data), group: 2 } as Instruction],
      ['instruction-shape'],
    ],
    ['nothing wrong', [allocate(32, data), relinquish, deallocate(32)], []],
  ] as const)('finds: %s', (_, instructions, expected) => {
    expect(kinds([...instructions])).toEqual(expected);
  });

  it('waits for columns that another warp frees', () => {
    const order: string[] = [];
    const say = (what: string) => look(fragment(), () => order.push(what));
    const program: SmallProgram = {
      warps: [
        [
          allocate(512, data),
          meet('bar.arrive', 1, 2),
          ...[say('has'), say('frees'), deallocate(512)],
        ],
        [meet('bar.sync', 1, 2), allocate(256, data + 4), ...[say('has too'), deallocate(256)]],
      ],
    };
    for (const scheduler of adversarialSchedulers(2)) {
      order.length = 0;
      expect(messagesOf(runProgram(program, { scheduler })), scheduler.name).toEqual([]);
      expect(order).toEqual(['has', 'frees', 'has too']);
    }
    const never = runProgram({ warps: [[allocate(512, data), allocate(256, data + 4)]] });
    expect(messagesOf(never)).toEqual([
      'deadlock: CTA 0 warp 0 at "allocates" waits for 256 free columns of tensor memory',
    ]);
  });

  it('is needed for every access, and ends with what the columns held', () => {
    expect(kinds([move('tcgen05.st', 0), waitSt])).toEqual(['tensor-allocation']);
    expect(kinds([allocate(32, data), move('tcgen05.st', 32), deallocate(32)])).toEqual([
      'tensor-allocation',
    ]);
    const use = [move('tcgen05.st', 0), waitSt, move('tcgen05.ld', 0), waitLd];
    expect(kinds([allocate(32, data), ...use, deallocate(32), ...use])).toEqual([
      'tensor-allocation',
    ]);
    // Contents do not survive: reading them in a new allocation is reading what nobody has written.
    const again = [allocate(32, data + 4), move('tcgen05.ld', 0), waitLd, deallocate(32)];
    expect(kinds([allocate(32, data), ...use, deallocate(32), ...again])).toEqual([
      'uninitialised',
    ]);
  });

  it('ends after a store that is not awaited, or that store is lost', () => {
    for (const scheduler of adversarialSchedulers(1)) {
      const messages = (...between: Instruction[]) =>
        messagesOf(
          runProgram(
            { warps: [[allocate(32, data), move('tcgen05.st', 0), ...between, deallocate(32)]] },
            { scheduler },
          ),
        );
      expect(messages(waitSt), scheduler.name).toEqual([]);
      // Whichever of the two comes first, the other one is in no order with it.
      expect(messages().join(), scheduler.name).toMatch(
        /column 0: (?:used after it has been freed|two writes in no order): .*tcgen05\.st/,
      );
    }
  });

  it('ends after all uses', () => {
    const program = (...meeting: Instruction[]): SmallProgram => ({
      warps: [
        [allocate(32, data), meet('bar.sync', 1, 2), ...meeting, deallocate(32)],
        [
          meet('bar.sync', 1, 2),
          ...[move('tcgen05.st', tensorAddress(32, 0)), waitSt],
          ...[move('tcgen05.ld', tensorAddress(32, 0)), waitLd, ...meeting],
        ],
      ],
    });
    for (const scheduler of adversarialSchedulers(2)) {
      const early = kindsOf(runProgram(program(), { scheduler }));
      expect(early.length, scheduler.name).toBeGreaterThan(0);
      const met = runProgram(program(meet('bar.sync', 2, 2)), { scheduler });
      expect(messagesOf(met), scheduler.name).toEqual([]);
    }
  });
});

describe('tcgen05.ld and tcgen05.st', () => {
  const inside = (...instructions: Instruction[]): Instruction[] => [
    allocate(32, data),
    ...instructions,
    deallocate(32),
  ];

  it('reach the lanes of the warp, as its number in its group of four says', () => {
    for (let warp = 0; warp < 6; warp++)
      for (let quarter = 0; quarter < 4; quarter++) {
        const body = [move('tcgen05.st', tensorAddress(32 * quarter, 0)), waitSt];
        const warps = Array.from({ length: 6 }, (_, i) => [
          ...(i === 0 ? [allocate(32, data)] : []),
          meet('bar.sync', 1, 6),
          ...(i === warp ? body : []),
          meet('bar.sync', 1, 6),
          ...(i === 0 ? [deallocate(32)] : []),
        ]);
        expect(kinds(...warps)).toEqual(warp % 4 === quarter ? [] : ['lane-window']);
      }
  });

  it('move what the registers held at their issue, and all lanes', () => {
    for (const scheduler of [
      ...adversarialSchedulers(1),
      ...Array.from({ length: 5 }, (_, seed) => randomScheduler(seed)),
    ]) {
      const [source, target] = [fragment(4, (lane, i) => 100 * lane + i), fragment(4)];
      const expected = [...source.words];
      let seen: number[] = [];
      const overwrite: Instruction = {
        op: 'registers',
        reads: [source],
        execute: () => {
          source.words.fill(7);
          return {};
        },
      };
      const run = runProgram(
        {
          warps: [
            inside(
              move('tcgen05.st', 2, source),
              overwrite,
              waitSt,
              move('tcgen05.ld', 2, target),
              waitLd,
              look(target, (values) => (seen = values)),
            ),
          ],
        },
        { scheduler },
      );
      expect(messagesOf(run), scheduler.name).toEqual([]);
      expect(seen).toEqual(expected);
    }
  });

  it('come in no order without a wait', () => {
    const [st, ld] = [move('tcgen05.st', 0), move('tcgen05.ld', 0)];
    expect(kinds(inside(st, waitSt, ld, waitLd))).toEqual([]);
    expect(kinds(inside(st, ld, waitLd))).toContain('race');
    expect(kinds(inside(st, waitSt, ld, st, waitSt, waitLd))).toContain('race');
    expect(kinds(inside(st, waitSt, ld, waitLd, st, waitSt))).toEqual([]);
  });

  it('load into registers that code waits for; the ISA asks for tcgen05.wait::ld', () => {
    const program = (...waits: Instruction[]): { run: SmallProgram; seen: number[] } => {
      const seen: number[] = [];
      const [source, target] = [fragment(2, (lane) => lane), fragment(2)];
      const body = inside(
        move('tcgen05.st', 0, source),
        waitSt,
        move('tcgen05.ld', 0, target, 'T: loaded'),
        ...waits,
        look(target, (values) => seen.push(...values), 'T: used'),
        waitLd,
      );
      return { run: { warps: [body] }, seen };
    };
    for (const [name, model] of Object.entries(memoryModels)) {
      const expected = model.registerDependencies
        ? []
        : [
            'CTA 0 warp 0, T: used: registers of tcgen05.ld (T: loaded) are used before tcgen05.wait::ld',
          ];
      for (const scheduler of adversarialSchedulers(1)) {
        const unawaited = program();
        expect(messagesOf(runProgram(unawaited.run, { model, scheduler })), name).toEqual(expected);
        expect(unawaited.seen.slice(0, 4)).toEqual([0, 0, 1, 1]);
        const awaited = program(waitLd);
        expect(messagesOf(runProgram(awaited.run, { model, scheduler })), name).toEqual([]);
      }
    }
  });

  it('hand a column from warp to warp; the ISA asks for tcgen05 fences on both sides', () => {
    const [before, after] = [
      { op: 'tcgen05.fence::before_thread_sync' },
      { op: 'tcgen05.fence::after_thread_sync' },
    ] as const;
    // Warp 4 has the lanes of warp 0.
    const program = (first: Instruction[], second: Instruction[]): SmallProgram => ({
      barriers: { full: 1, read: 1 },
      warps: [
        [
          allocate(32, data),
          move('tcgen05.st', 0),
          waitSt,
          ...first,
          arrive(0),
          wait(8, 0),
          after,
          deallocate(32),
        ],
        ...[[], [], []],
        [wait(0, 0), ...second, move('tcgen05.ld', 0), waitLd, before, arrive(8)],
      ],
    });
    const found = (name: MemoryModelName, first: Instruction[], second: Instruction[]) =>
      kindsOf(runProgram(program(first, second), { model: memoryModels[name] }));
    for (const name of ['practice', 'pipe'] as const) expect(found(name, [], []), name).toEqual([]);
    for (const name of ['ptx', 'ptx-9.2'] as const) {
      expect(found(name, [before], [after]), name).toEqual([]);
      expect(found(name, [], [after]), name).toEqual(['race']);
      expect(found(name, [before], []), name).toEqual(['race']);
      // A wait for operations of its own tells a warp nothing of other warps' operations.
      const own = [move('tcgen05.st', 8), waitSt];
      expect(found(name, [before], own), name).toEqual(['race']);
    }
  });

  it('take fragments of their shape, at lanes and columns that it takes', () => {
    const wrong = (changes: object) =>
      kinds(inside({ ...move('tcgen05.st', 0), ...changes } as Instruction));
    expect(wrong({ fragment: fragment(2) })).toEqual(['instruction-shape']);
    expect(wrong({ transfer: { shape: '32x32b', repeat: 3 } })).toEqual(['instruction-shape']);
    expect(wrong({ address: tensorAddress(16, 0) })).toEqual(['misaligned']);
    expect(wrong({ address: 512 })).toEqual(['tensor-allocation']);
  });

  it('must be complete before the CTA ends', () => {
    const scheduler = scheduleNamed('all operations late', 1);
    const warps = [[allocate(32, data), move('tcgen05.st', 0)]];
    expect(kindsOf(runProgram({ warps }, { scheduler }))).toEqual([
      'leaked-tensor-memory',
      'unfinished-operation',
    ]);
  });
});
