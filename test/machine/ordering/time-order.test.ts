import { describe, expect, it } from 'vitest';
import {
  adversarialSchedulers,
  memoryModels,
  randomScheduler,
  type Instruction,
} from '../../../src/machine/index.js';
import {
  arrive,
  data,
  kindsOf,
  messagesOf,
  runProgram,
  scheduleNamed,
  wait,
  words,
  type SmallProgram,
} from '../launch.js';

const schedulers = [
  ...adversarialSchedulers(2),
  ...Array.from({ length: 10 }, (_, seed) => randomScheduler(seed)),
];

const commit = (barrier: number): Instruction => ({
  op: 'tcgen05.commit',
  group: 1,
  barrier,
  ctas: [0],
  site: 'commits',
});

describe('a tcgen05.commit', () => {
  const [seen, done] = [0, 8];
  /** Warp 0 waits for a phase, and then tells warp 1 by an arrival of its own or by a commit, which completes the next. */
  const program = (tell: Instruction, ...more: Instruction[]): SmallProgram => ({
    barriers: { seen: 1, done: 1 },
    warps: [
      [...more, arrive(seen), wait(seen, 0), tell],
      [wait(done, 0), arrive(seen)],
    ],
  });

  it('comes after all that its warp has done, in time', () => {
    for (const scheduler of schedulers) {
      for (const tell of [arrive(done), commit(done)])
        expect(messagesOf(runProgram(program(tell), { scheduler })), scheduler.name).toEqual([]);
      // Without either warp 1 may complete the phase that warp 0 has not seen.
      const { warps } = program(arrive(done));
      const apart = { barriers: { seen: 1, done: 1 }, warps: [warps[0], [arrive(seen)]] };
      expect(kindsOf(runProgram(apart, { scheduler, races: true })).length).toBeGreaterThan(0);
    }
  });

  it('makes no memory known but what tensor operations have done', () => {
    const handing = (tell: Instruction): SmallProgram => ({
      barriers: { done: 1 },
      warps: [
        [words('st.shared', data), tell],
        [wait(0, 0), words('ld.shared', data)],
      ],
    });
    expect(messagesOf(runProgram(handing(arrive(0))))).toEqual([]);
    expect(kindsOf(runProgram(handing(commit(0))))).toEqual(['race']);
  });

  it('may come after the end of its barrier where nobody waits for it', () => {
    const ended: SmallProgram = {
      barriers: { done: 2, other: 1 },
      warps: [
        [arrive(8), commit(0), arrive(0)],
        [wait(8, 0), { op: 'mbarrier.inval', barrier: 0, site: 'ends it' }],
      ],
    };
    const scheduler = scheduleNamed('warp 0 first', 2);
    expect(kindsOf(runProgram(ended, { scheduler }))).toContain('phase');
  });
});

describe('barrier.cluster.arrive.relaxed', () => {
  const meet: readonly Instruction[] = [
    { op: 'barrier.cluster.arrive.relaxed' },
    { op: 'barrier.cluster.wait' },
  ];

  it('is counted to one phase each, as often as it is waited for', () => {
    const program: SmallProgram = { ctas: 2, warps: [[...meet, ...meet, ...meet]] };
    for (const scheduler of adversarialSchedulers(1))
      for (const model of Object.values(memoryModels))
        expect(messagesOf(runProgram(program, { scheduler, model })), scheduler.name).toEqual([]);
  });

  it('makes no memory known', () => {
    const program: SmallProgram = {
      ctas: 2,
      barriers: { full: 1 },
      warps: [
        ({ cta }) =>
          cta === 0
            ? [words('st.shared', data), ...meet]
            : [...meet, { op: 'barrier.cluster.arrive' }, { op: 'barrier.cluster.wait' }],
        ({ cta }) => (cta === 0 ? [...meet, words('ld.shared', data)] : [...meet]),
      ],
    };
    expect(kindsOf(runProgram({ ...program, ctas: 2 }))).toContain('race');
  });
});
