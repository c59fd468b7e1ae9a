import { describe, expect, it } from 'vitest';
import {
  adversarialSchedulers,
  randomScheduler,
  type Instruction,
} from '../../src/machine/index.js';
import {
  data,
  fragment,
  kindsOf,
  look,
  meet,
  messagesOf,
  runProgram,
  scheduleNamed,
  words,
  type SmallProgram,
} from './launch.js';

/** Warp 0 produces and arrives, warp 1 waits and consumes, round after round. */
function produce(rounds: number, isSymmetric: boolean, seen: number[] = []): SmallProgram {
  return {
    warps: [
      function* () {
        for (let round = 0; round < rounds; round++) {
          yield words(
            'st.shared',
            data,
            fragment(1, () => round),
          );
          yield meet('bar.arrive', 1, 2, 'full: arrives');
          if (isSymmetric) yield meet('bar.sync', 2, 2, 'empty: waits');
        }
      },
      function* () {
        const registers = fragment();
        for (let round = 0; round < rounds; round++) {
          yield meet('bar.sync', 1, 2, 'full: waits');
          yield words('ld.shared', data, registers);
          yield look(registers, ([first]) => seen.push(first));
          if (isSymmetric) yield meet('bar.arrive', 2, 2, 'empty: arrives');
        }
      },
    ],
  };
}

describe('named barriers', () => {
  it.each([
    ...adversarialSchedulers(2),
    ...Array.from({ length: 10 }, (_, i) => randomScheduler(i)),
  ])('hand over by bar.arrive and bar.sync, whatever comes first: $name', (scheduler) => {
    const seen: number[] = [];
    expect(messagesOf(runProgram(produce(4, true, seen), { scheduler }))).toEqual([]);
    expect(seen).toEqual([0, 1, 2, 3]);
  });

  it('let a warp that only arrives come again too early, which is found', () => {
    // Two arrivals of the producer may complete a generation without the consumer.
    for (const scheduler of adversarialSchedulers(2)) {
      const run = runProgram(produce(3, false), { scheduler });
      expect(kindsOf(run).includes('phase') || kindsOf(run).includes('deadlock')).toBe(true);
    }
  });

  it('hold every warp until the last has come', () => {
    const order: string[] = [];
    const body = (name: string): Instruction[] => [
      look(fragment(), () => order.push(`${name} before`)),
      meet('bar.sync', 3, 3),
      look(fragment(), () => order.push(`${name} after`)),
    ];
    for (let seed = 0; seed < 20; seed++) {
      order.length = 0;
      const warps = ['a', 'b', 'c'].map(body);
      runProgram({ warps }, { scheduler: randomScheduler(seed) });
      expect(order.slice(0, 3).every((what) => what.endsWith('before'))).toBe(true);
      expect(order.slice(3).every((what) => what.endsWith('after'))).toBe(true);
    }
  });

  it('say who is missing', () => {
    const run = runProgram({ warps: [[meet('bar.sync', 1, 3, 'meets')], [], []] });
    expect(messagesOf(run)).toEqual([
      'deadlock: CTA 0 warp 0 at "meets" waits for barrier 1 with 32 of 96 threads (CTA 0 warp 0)',
    ]);
  });

  it('are used by all with the same number of threads', () => {
    const program = (threads: number): SmallProgram => ({
      warps: [[meet('bar.sync', 1, 2)], [meet('bar.sync', 1, threads)]],
    });
    expect(kindsOf(runProgram(program(2)))).toEqual([]);
    expect(kindsOf(runProgram(program(3)))).toEqual(['deadlock', 'phase']);
  });

  it('are 0 to 15, of whole warps', () => {
    const one = (barrier: number, threads: number): SmallProgram => ({
      warps: [[{ op: 'bar.sync', barrier, threads }]],
    });
    for (const id of [0, 14]) expect(kindsOf(runProgram(one(id, 32)))).toEqual([]);
    for (const id of [-1, 16, 1.5])
      expect(kindsOf(runProgram(one(id, 32)))).toEqual(['instruction-shape']);
    for (const threads of [0, 16, 31])
      expect(kindsOf(runProgram(one(1, threads)))).toEqual(['instruction-shape', 'over-arrival']);
  });

  it('order what comes before with what comes after, and barriers do not do so for one another', () => {
    const program = (...between: readonly [Instruction[], Instruction[]]): SmallProgram => ({
      warps: [
        [words('st.shared', data), ...between[0]],
        [...between[1], words('ld.shared', data)],
      ],
    });
    const sync = meet('bar.sync', 1, 2);
    const alone = meet('bar.sync', 2, 1);
    const scheduler = () => scheduleNamed('warp 0 first', 2);
    expect(kindsOf(runProgram(program([sync], [sync]), { scheduler: scheduler() }))).toEqual([]);
    expect(kindsOf(runProgram(program([alone], []), { scheduler: scheduler() }))).toEqual(['race']);
    // bar.arrive publishes and does not wait.
    const arrival = meet('bar.arrive', 1, 2);
    expect(kindsOf(runProgram(program([arrival], [sync]), { scheduler: scheduler() }))).toEqual([]);
    expect(kindsOf(runProgram(program([sync], [arrival]), { scheduler: scheduler() }))).toEqual([
      'race',
    ]);
  });
});
