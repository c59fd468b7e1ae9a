import { describe, expect, it } from 'vitest';
import {
  adversarialSchedulers,
  memoryModels,
  randomScheduler,
  type Instruction,
  type Scheduler,
} from '../../src/machine/index.js';
import {
  arrive,
  data,
  fragment,
  kindsOf,
  look,
  messagesOf,
  runProgram,
  wait,
  words,
  type SmallProgram,
} from './launch.js';
import { allocate, commitTo, deallocate } from './tile-product.js';

const schedulers: readonly Scheduler[] = [
  ...adversarialSchedulers(1),
  ...Array.from({ length: 5 }, (_, seed) => randomScheduler(seed)),
];

describe('a multicast commit that reaches a CTA that does not wait', () => {
  /** CTA 0 commits to the barriers of both; only the CTAs named wait for it. */
  const program = (waiting: readonly number[], ctas: readonly number[] = [0, 1]): SmallProgram => ({
    ctas: 2,
    barriers: { computed: 1 },
    warps: [
      function* ({ cta }) {
        if (cta === 0) yield commitTo(0, 'commits', ctas);
        if (waiting.includes(cta)) yield wait(0, 0);
      },
    ],
  });

  /** The CTAs that the multicast may find at their end. */
  const late = (waiting: readonly number[], scheduler: Scheduler) => {
    const { findings } = runProgram(program(waiting), { scheduler });
    const unfinished = findings.filter(({ kind }) => kind === 'unfinished-operation');
    return [...new Set(unfinished.map(({ cta }) => cta))].sort();
  };

  it('may come after its end, as every schedule shows', () => {
    for (const scheduler of schedulers) {
      expect(messagesOf(runProgram(program([0, 1]), { scheduler })), scheduler.name).toEqual([]);
      expect(late([0], scheduler), scheduler.name).toEqual([1]);
      expect(late([1], scheduler), scheduler.name).toEqual([0]);
      expect(late([], scheduler), scheduler.name).toEqual([0, 1]);
    }
  });

  it('is no matter where it does not reach it', () => {
    for (const scheduler of schedulers)
      expect(messagesOf(runProgram(program([0], [0]), { scheduler })), scheduler.name).toEqual([]);
  });
});

describe('a commit after a wait', () => {
  /** Warp 0 acquires a buffer that is free at first and hands it on by a commit; warp 1 gives it back. */
  const program = (first: readonly Instruction[], then: readonly Instruction[]): SmallProgram => ({
    barriers: { free: 1, full: 1 },
    warps: [
      [...first, commitTo(8), wait(0, 0, 'waits for its return')],
      [wait(8, 0), ...then, arrive(0)],
    ],
  });
  const acquire = wait(0, 1, 'acquires');

  it('tells of the wait: who has seen the commit cannot end its phase too early', () => {
    for (const model of Object.values(memoryModels))
      for (const scheduler of schedulers)
        expect(messagesOf(runProgram(program([acquire], []), { scheduler, model }))).toEqual([]);
  });

  it('tells of no data', () => {
    const stored = words('st.shared', data);
    const run = runProgram(program([stored, acquire], [words('ld.shared', data)]));
    expect(kindsOf(run)).toContain('race');
  });

  it('tells of no later wait', () => {
    const late: SmallProgram = {
      barriers: { free: 1, full: 1 },
      warps: [
        [commitTo(8), acquire],
        [wait(8, 0), arrive(0)],
      ],
    };
    expect(messagesOf(runProgram(late)).join()).toMatch(
      /a wait that may come when the phase after/,
    );
  });
});

describe('a tcgen05.ld that is not waited for, without the tracker of orders', () => {
  const waitLd = { op: 'tcgen05.wait::ld' } as const;
  const waitSt = { op: 'tcgen05.wait::st' } as const;
  const move = (op: 'tcgen05.ld' | 'tcgen05.st', registers: ReturnType<typeof fragment>) =>
    ({
      op,
      transfer: { shape: '32x32b', repeat: 1 },
      address: 0,
      fragment: registers,
      name: 'T',
    }) as const satisfies Instruction;
  const body = (use: (target: ReturnType<typeof fragment>) => readonly Instruction[]) => {
    const target = fragment();
    const source = fragment(1, (lane) => 7 * lane + 1);
    return [
      ...[allocate(32, data), move('tcgen05.st', source), waitSt],
      ...[move('tcgen05.ld', target), ...use(target), deallocate(32)],
    ];
  };

  it('has come where its registers are used, in every schedule and memory model', () => {
    for (const model of Object.values(memoryModels))
      for (const scheduler of schedulers) {
        const seen: number[] = [];
        const use = (target: ReturnType<typeof fragment>) => [
          look(target, (values) => seen.push(...values)),
        ];
        const warps = [[...body(use), waitLd]];
        const run = runProgram({ warps }, { model, scheduler, races: false });
        expect(messagesOf(run), scheduler.name).toEqual([]);
        expect(seen).toEqual(Array.from({ length: 32 }, (_, lane) => 7 * lane + 1));
      }
  });

  it('is found under way at the end of the CTA, where nothing uses them', () => {
    const found = schedulers.map((scheduler) =>
      kindsOf(runProgram({ warps: [body(() => [])] }, { scheduler, races: false })),
    );
    expect(new Set(found.flat())).toEqual(new Set(['unfinished-operation']));
    expect(found.some((kinds) => kinds.length === 1)).toBe(true);
    for (const scheduler of schedulers)
      expect(
        messagesOf(runProgram({ warps: [body(() => [waitLd])] }, { scheduler, races: false })),
      ).toEqual([]);
  });
});
