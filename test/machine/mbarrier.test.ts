import { describe, expect, it } from 'vitest';
import {
  adversarialSchedulers,
  allLanes,
  randomScheduler,
  type Instruction,
} from '../../src/machine/index.js';
import {
  arrive,
  data,
  expectBytes,
  fragment,
  kindsOf,
  look,
  messagesOf,
  runProgram,
  scheduleNamed,
  wait,
  words,
  type SmallProgram,
} from './launch.js';

/** Warp 0 hands so many words to warp 1 through one buffer, word by word. */
function handOver(rounds: number, seen: number[] = []): SmallProgram {
  const [full, empty] = [0, 8];
  return {
    barriers: { full: 1, empty: 1 },
    warps: [
      function* () {
        for (let round = 0; round < rounds; round++) {
          yield wait(empty, round % 2 === 0 ? 1 : 0, 'empty: waits');
          yield words(
            'st.shared',
            data,
            fragment(1, () => 100 + round),
          );
          yield arrive(full, { site: 'full: arrives' });
        }
      },
      function* () {
        const registers = fragment();
        for (let round = 0; round < rounds; round++) {
          yield wait(full, round % 2 === 0 ? 0 : 1, 'full: waits');
          yield words('ld.shared', data, registers);
          yield look(registers, ([first]) => seen.push(first));
          yield arrive(empty, { site: 'empty: arrives' });
        }
      },
    ],
  };
}

describe('mbarrier', () => {
  it.each([
    ...adversarialSchedulers(2),
    ...Array.from({ length: 20 }, (_, i) => randomScheduler(i)),
  ])('hands over in phases, whatever comes first: $name', (scheduler) => {
    const seen: number[] = [];
    const run = runProgram(handOver(5, seen), { scheduler });
    expect(messagesOf(run)).toEqual([]);
    expect(seen).toEqual([100, 101, 102, 103, 104]);
  });

  it('lets a wait for parity 1 pass when it is new, and none for parity 0', () => {
    const warps = (parity: 0 | 1): SmallProgram => ({
      barriers: { new: 1 },
      warps: [[wait(0, parity)]],
    });
    expect(runProgram(warps(1)).isComplete).toBe(true);
    expect(kindsOf(runProgram(warps(0)))).toEqual(['deadlock']);
  });

  it('completes a phase with the last of its arrivals and not before', () => {
    const program = (arrivals: number, count: number): SmallProgram => ({
      barriers: { full: count },
      warps: [Array.from({ length: arrivals }, () => arrive(0)), [wait(0, 0)]],
    });
    for (const count of [1, 2, 5])
      for (let arrivals = 0; arrivals <= count; arrivals++)
        expect(runProgram(program(arrivals, count)).isComplete).toBe(arrivals === count);
  });

  it('counts an arrival of all threads 32 times', () => {
    const barriers = { full: 32 };
    const all = runProgram({ barriers, warps: [[arrive(0, { lanes: allLanes })], [wait(0, 0)]] });
    expect(messagesOf(all)).toEqual([]);
    const elected = runProgram({ barriers, warps: [[arrive(0)], [wait(0, 0)]] });
    expect(messagesOf(elected)).toEqual([
      'deadlock: CTA 0 warp 1 at "waits for 0" waits for parity 0 of full, in phase 0 with 1 of 32 arrivals (from CTA 0 warp 0)',
    ]);
  });

  it('counts an arrival for each lane of the mask', () => {
    for (const [lanes, count] of [
      [0b1, 1],
      [0x8000_0000, 1],
      [0b1011, 3],
      [0xffff_0000, 16],
      [0xffff_fffe, 31],
    ])
      for (const expected of [count, count + 1]) {
        const program = {
          barriers: { full: expected },
          warps: [[arrive(0, { lanes })], [wait(0, 0)]],
        };
        expect(runProgram(program).isComplete).toBe(expected === count);
      }
  });

  it('says of every warp of a deadlock what it waits for, and who has arrived', () => {
    const run = runProgram({
      barriers: { ping: 2, pong: 1 },
      warps: [
        [arrive(0), wait(8, 0, 'pong: waits'), arrive(0)],
        [wait(0, 0, 'ping: waits'), arrive(8)],
      ],
    });
    expect(run.isComplete).toBe(false);
    expect(messagesOf(run)).toEqual([
      'deadlock: CTA 0 warp 0 at "pong: waits" waits for parity 0 of pong, in phase 0 with 0 of 1 arrivals; ' +
        'CTA 0 warp 1 at "ping: waits" waits for parity 0 of ping, in phase 0 with 1 of 2 arrivals (from CTA 0 warp 0)',
    ]);
    expect(run.findings[0].accesses.map(({ site }) => site)).toEqual([
      'pong: waits',
      'ping: waits',
    ]);
  });

  it('says how many bytes a deadlock lacks', () => {
    const run = runProgram({ barriers: { K: 1 }, warps: [[expectBytes(0, 512), wait(0, 0)]] });
    expect(messagesOf(run)).toEqual([
      expect.stringContaining('with 1 of 1 arrivals (from CTA 0 warp 0) and 0 of 512 bytes'),
    ]);
  });

  it('takes no more arrivals than a phase expects', () => {
    const program = (arrivals: number): SmallProgram => ({
      barriers: { full: 2 },
      warps: [
        // Bytes that never come keep the phase open.
        [expectBytes(0, 16), ...Array.from({ length: arrivals - 1 }, () => arrive(0))],
      ],
    });
    expect(kindsOf(runProgram(program(2)))).toEqual([]);
    expect(kindsOf(runProgram(program(3)))).toEqual(['over-arrival']);
  });

  it('finds an arrival that other schedules count to the phase before', () => {
    const twoOfEach: SmallProgram = {
      barriers: { full: 2 },
      warps: [
        [arrive(0), arrive(0)],
        [arrive(0), arrive(0)],
      ],
    };
    expect(kindsOf(runProgram(twoOfEach))).toEqual(['phase']);
    const inTurns: SmallProgram = {
      barriers: { full: 2 },
      warps: [
        [arrive(0), wait(0, 0), arrive(0)],
        [arrive(0), wait(0, 0), arrive(0)],
      ],
    };
    expect(messagesOf(runProgram(inTurns))).toEqual([]);
  });

  it('finds a wait that misses its phase in another schedule', () => {
    // Nothing keeps warp 0 from its second arrival while warp 1 has not seen the first phase.
    const program: SmallProgram = {
      barriers: { full: 1 },
      warps: [[arrive(0), wait(0, 0), arrive(0)], [wait(0, 0)]],
    };
    const inTime = runProgram(program, { scheduler: scheduleNamed('warp 1 first', 2) });
    expect(inTime.isComplete).toBe(true);
    expect(kindsOf(inTime)).toEqual(['phase']);
    const late = runProgram(program, { scheduler: scheduleNamed('warp 0 first', 2), races: false });
    expect(kindsOf(late)).toEqual(['deadlock']);
  });

  it.each([
    ['an arrival', arrive(64)],
    ['an arrival with bytes', expectBytes(64, 16)],
    ['a wait', wait(64, 0)],
    ['an end', { op: 'mbarrier.inval', barrier: 64 } as const],
    ['an arrival beyond the cluster', arrive(0, { rank: 1 })],
  ])('finds %s without an initialisation', (_, instruction) => {
    const run = runProgram({ barriers: { full: 1 }, warps: [[instruction]] });
    expect(kindsOf(run)).toEqual(['barrier-initialisation']);
    expect(run.isComplete).toBe(true);
  });

  it('finds an initialisation that the arrival does not come after', () => {
    const program: SmallProgram = {
      warps: [[{ op: 'mbarrier.init', barrier: 0, count: 1, name: 'late' }], [arrive(0)]],
    };
    const after = runProgram(program, { scheduler: scheduleNamed('warp 0 first', 2) });
    expect(kindsOf(after)).toEqual(['phase']);
    expect(messagesOf(after)[0]).toContain('before the barrier is initialised');
    const before = runProgram(program, { scheduler: scheduleNamed('warp 1 first', 2) });
    expect(kindsOf(before)).toEqual(['barrier-initialisation']);
  });

  it.each([
    ['count 0', { barrier: 8, count: 0 }, 'barrier-initialisation'],
    ['count 2^20', { barrier: 8, count: 2 ** 20 }, 'barrier-initialisation'],
    ['half an arrival', { barrier: 8, count: 0.5 }, 'barrier-initialisation'],
    ['byte 12', { barrier: 12, count: 1 }, 'misaligned'],
    ['the place of a live barrier', { barrier: 0, count: 1 }, 'barrier-initialisation'],
    ['a place beyond the end', { barrier: 232_448, count: 1 }, 'shared-overflow'],
  ] as const)('initialises none with %s', (_, init, kind) => {
    const run = runProgram({
      barriers: { first: 1 },
      warps: [[{ op: 'mbarrier.init', ...init, name: 'second' }]],
    });
    expect(kindsOf(run)).toEqual([kind]);
  });

  it('takes the largest count, and a place again whose barrier has been ended', () => {
    const run = runProgram({
      barriers: { first: 2 ** 20 - 1 },
      warps: [
        [
          { op: 'mbarrier.inval', barrier: 0 },
          { op: 'mbarrier.init', barrier: 0, count: 1, name: 'second' },
          arrive(0),
          wait(0, 0),
        ],
      ],
    });
    expect(messagesOf(run)).toEqual([]);
  });

  it('finds an end of a barrier that an arrival or a wait may come after', () => {
    const inval = { op: 'mbarrier.inval', barrier: 0, site: 'ends it' } as const;
    const program = (...waits: Instruction[]): SmallProgram => ({
      barriers: { full: 1 },
      warps: [[arrive(0)], [...waits, inval]],
    });
    const scheduler = () => scheduleNamed('warp 0 first', 2);
    expect(messagesOf(runProgram(program(), { scheduler: scheduler() }))).toEqual([
      'full: its life may begin or end on the wrong side of an event: CTA 0 warp 0 (arrives) and CTA 0 warp 1 (ends it)',
    ]);
    expect(messagesOf(runProgram(program(wait(0, 0)), { scheduler: scheduler() }))).toEqual([]);
    const waiters = runProgram(
      {
        barriers: { full: 1 },
        warps: [
          [arrive(0), wait(0, 0)],
          [wait(0, 0), inval],
        ],
      },
      { scheduler: scheduler() },
    );
    expect(kindsOf(waiters)).toEqual(['phase']);
  });

  it('finds a new barrier where another warp ends the old one at an unknown time', () => {
    const program = (...between: Instruction[]): SmallProgram => ({
      barriers: { old: 1, ended: 1 },
      warps: [
        [{ op: 'mbarrier.inval', barrier: 0 }, arrive(8)],
        [...between, { op: 'mbarrier.init', barrier: 0, count: 1, name: 'new' }],
      ],
    });
    const scheduler = () => scheduleNamed('warp 0 first', 2);
    expect(kindsOf(runProgram(program(), { scheduler: scheduler() }))).toEqual(['phase', 'race']);
    expect(messagesOf(runProgram(program(wait(8, 0)), { scheduler: scheduler() }))).toEqual([]);
  });

  it('publishes what came before an arrival to whoever waits, and to nobody else', () => {
    const program = (waits: boolean): SmallProgram => ({
      barriers: { full: 1 },
      warps: [
        [words('st.shared', data), arrive(0)],
        [...(waits ? [wait(0, 0)] : []), words('ld.shared', data)],
      ],
    });
    expect(messagesOf(runProgram(program(true)))).toEqual([]);
    const after = runProgram(program(false), { scheduler: scheduleNamed('warp 0 first', 2) });
    expect(messagesOf(after)).toEqual([
      'shared memory, byte 1024 (data): a read of what is written at no known time before: CTA 0 warp 0 (st.shared) and CTA 0 warp 1 (ld.shared)',
    ]);
    const before = runProgram(program(false), { scheduler: scheduleNamed('warp 1 first', 2) });
    expect(kindsOf(before)).toEqual(['race', 'uninitialised']);
  });
});

describe('mbarrier of a pair of CTAs', () => {
  it('is arrived on from the other CTA', () => {
    const program = (rank: number): SmallProgram => ({
      ctas: 2,
      barriers: { full: 1 },
      warps: [({ cta }) => (cta === 0 ? [wait(0, 0)] : [arrive(0, { rank })])],
    });
    expect(messagesOf(runProgram(program(0)))).toEqual([]);
    expect(kindsOf(runProgram(program(1)))).toEqual(['deadlock']);
  });

  it('may not be arrived on when its CTA may have ended', () => {
    const program = (waits: boolean): SmallProgram => ({
      ctas: 2,
      barriers: { full: 1 },
      warps: [({ cta }) => (cta === 1 ? [arrive(0)] : waits ? [wait(0, 0)] : [])],
    });
    for (const scheduler of adversarialSchedulers(1)) {
      expect(kindsOf(runProgram(program(false), { scheduler })), scheduler.name).toEqual([
        'exited-cta',
      ]);
      expect(messagesOf(runProgram(program(true), { scheduler })), scheduler.name).toEqual([]);
    }
  });

  it('is not there any more when its CTA has ended', () => {
    const program: SmallProgram = {
      ctas: 2,
      barriers: { full: 1 },
      warps: [({ cta }) => (cta === 0 ? [] : [arrive(0)])],
    };
    // Without a look at what is ordered, it is found where it happens.
    const found = adversarialSchedulers(1).map((scheduler) =>
      messagesOf(runProgram(program, { scheduler, races: false })).join(),
    );
    expect(new Set(found)).toEqual(
      new Set(['', 'CTA 1 warp 0, arrives: arrives on full of CTA 0']),
    );
  });

  it('hands over between CTAs under every adversarial schedule', () => {
    const [full, empty] = [0, 8];
    for (const scheduler of adversarialSchedulers(1)) {
      let order = '';
      const run = runProgram(
        {
          ctas: 2,
          barriers: { full: 1, empty: 1 },
          warps: [
            function* ({ cta }) {
              for (let round = 0; round < 4; round++) {
                const parity = (round % 2) as 0 | 1;
                if (cta === 0) {
                  if (round > 0) yield wait(empty, (1 - parity) as 0 | 1);
                  yield look(fragment(), () => (order += 'a'));
                  yield arrive(full, { rank: 1 });
                } else {
                  yield wait(full, parity);
                  yield look(fragment(), () => (order += 'b'));
                  yield arrive(empty, { rank: 0 });
                }
              }
              // The last arrival has to be known before CTA 0 ends.
              if (cta === 0) yield wait(empty, 1);
            },
          ],
        },
        { scheduler },
      );
      expect(messagesOf(run)).toEqual([]);
      expect(order).toBe('abababab');
    }
  });
});
