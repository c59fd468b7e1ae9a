import { describe, expect, it } from 'vitest';
import {
  createByteStore,
  createTensorMap,
  type Instruction,
  type MemoryModelName,
  memoryModels,
} from '../../../src/machine/index.js';
import {
  arrive,
  data,
  expectBytes,
  kindsOf,
  messagesOf,
  runProgram,
  scheduleNamed,
  wait,
  words,
  type SmallProgram,
} from '../launch.js';

const map = createTensorMap({
  name: 'X',
  place: { store: createByteStore(128), offset: 0 },
  elementBytes: 4,
  dims: [32, 1],
  strides: [128],
  box: [32, 1],
  swizzle: 'none',
});
const load = (destination: number, barrier: number): Instruction => ({
  op: 'cp.async.bulk.tensor.shared.global',
  map,
  coordinates: [0, 0],
  destination,
  barrier,
  name: 'X',
});
const init = (barrier: number): Instruction => ({
  op: 'mbarrier.init',
  barrier,
  count: 1,
  name: 'mine',
});
const inval = (barrier: number): Instruction => ({ op: 'mbarrier.inval', barrier });
const initFence: Instruction = { op: 'fence.mbarrier_init' };
const proxyFence: Instruction = { op: 'fence.proxy.async' };
const meet: Instruction = { op: 'bar.sync', barrier: 1, threads: 64 };

/** Where the barriers of these programs lie: not where the first ones do. */
const own = 512;
const use: readonly Instruction[] = [expectBytes(own, 128), load(data, own), wait(own, 0)];

function found(warps: SmallProgram['warps'], model: MemoryModelName = 'practice') {
  return kindsOf(runProgram({ barriers: { full: 1 }, warps }, { model: memoryModels[model] }));
}

describe('the words of a live mbarrier', () => {
  const whole = { barriers: { full: 1 } };

  it.each<[string, readonly Instruction[]]>([
    ['a store', [words('st.shared', 0)]],
    ['a load', [words('ld.shared', 0)]],
    ['a box of TMA', [initFence, expectBytes(0, 128), load(0, 0), wait(0, 0)]],
  ])('are not to be touched by %s', (_, body) => {
    expect(found([body])).toContain('barrier-memory');
  });

  it('are told by their byte, with who has initialised them', () => {
    const [message] = messagesOf(runProgram({ ...whole, warps: [[words('st.shared', 0)]] }));
    expect(message).toBe(
      'shared memory, byte 0 (barriers): an access to a live mbarrier that is no operation on it: ' +
        'CTA 0 warp 0 (mbarrier.init) and CTA 0 warp 0 (st.shared)',
    );
  });

  it('are memory like any other when the barrier has been ended', () => {
    expect(found([[inval(0), words('st.shared', 0), words('ld.shared', 0)]])).toEqual([]);
    expect(found([[inval(0), initFence, expectBytes(0, 128)]])).toEqual(['barrier-initialisation']);
  });

  it.each(['warp 0 first', 'warp 1 first'])(
    'race with a store that may come before or after their life (%s)',
    (name) => {
      const run = (warps: SmallProgram['warps']) =>
        kindsOf(runProgram({ warps }, { scheduler: scheduleNamed(name, 2) }));
      const life = [init(own), inval(own)];
      expect(run([life, [words('st.shared', own)]])).toEqual(['race']);
      expect(
        run([
          [...life, meet],
          [meet, words('st.shared', own)],
        ]),
      ).toEqual([]);
      expect(
        run([
          [meet, ...life],
          [words('st.shared', own), meet],
        ]),
      ).toEqual([]);
    },
  );
});

describe('an mbarrier that the async proxy uses', () => {
  const strict = ['ptx', 'ptx-9.2'] as const;
  const lenient = ['practice', 'pipe'] as const;

  it.each<[string, readonly (readonly Instruction[])[], boolean]>([
    ['of one thread, without a fence', [[init(own), ...use]], false],
    [
      'behind a barrier of the CTA alone',
      [
        [init(own), meet],
        [meet, ...use],
      ],
      false,
    ],
    [
      'with a fence of who uses it alone',
      [
        [init(own), meet],
        [meet, initFence, ...use],
      ],
      false,
    ],
    ['with a fence before the initialisation', [[initFence, init(own), ...use]], false],
    [
      'with fence.mbarrier_init',
      [
        [init(own), initFence, meet],
        [meet, ...use],
      ],
      true,
    ],
    [
      'with fence.proxy.async',
      [
        [init(own), proxyFence, meet],
        [meet, ...use],
      ],
      true,
    ],
    [
      'with fence.proxy.async of who uses it',
      [
        [init(own), meet],
        [meet, proxyFence, ...use],
      ],
      true,
    ],
  ])('needs a fence after its initialisation: %s', (_, warps, isFenced) => {
    for (const model of strict) expect(found(warps, model)).toEqual(isFenced ? [] : ['race']);
    for (const model of lenient)
      expect(found(warps, model)).toEqual(isFenced ? [] : ['unfenced-initialisation']);
  });

  it('takes nothing from what a run proves, where compilers go without the fence', () => {
    const run = runProgram({ warps: [[init(own), ...use]] });
    expect(run.speaksForAllSchedules).toBe(true);
  });

  it('needs none for threads that arrive and wait after a barrier of the CTA', () => {
    for (const model of strict)
      expect(
        found(
          [
            [init(own), meet, arrive(own)],
            [meet, wait(own, 0)],
          ],
          model,
        ),
      ).toEqual([]);
  });

  it('is not to be used by a thread in no order with its initialisation', () => {
    const run = runProgram(
      { warps: [[init(own)], [arrive(own)]] },
      { scheduler: scheduleNamed('warp 0 first', 2) },
    );
    expect(kindsOf(run)).toEqual(['phase']);
  });
});

describe('bytes that a phase counts', () => {
  const half = 2 ** 19;

  it('are less than 2^20 in one instruction and in all', () => {
    const expecting = (...bytes: number[]): SmallProgram => ({
      barriers: { full: bytes.length + 1 },
      warps: [bytes.map((count) => expectBytes(0, count))],
    });
    const run = (...bytes: number[]) => runProgram(expecting(...bytes));
    expect(kindsOf(run(half, half - 1))).toEqual([]);
    expect(messagesOf(run(half, half))).toEqual([
      expect.stringContaining('may lack 1048576 bytes'),
    ]);
    expect(kindsOf(run(2 ** 20))).toEqual(['instruction-shape']);
  });
});

describe('a wait that returns twice for one phase', () => {
  const poll = wait(0, 0, 'waits');

  it('is told of where the run goes wrong', () => {
    // Both parties go round twice; the second never flips its parity.
    const program = (flips: boolean): SmallProgram => ({
      barriers: { full: 1, empty: 1 },
      warps: [
        function* () {
          for (const parity of [1, 0] as const) {
            yield wait(8, parity, 'empty');
            yield words('st.shared', data);
            yield arrive(0);
          }
        },
        function* () {
          for (const parity of [0, 1] as const) {
            yield wait(0, flips ? parity : 0, 'full');
            yield words('ld.shared', data);
            yield arrive(8);
          }
        },
      ],
    });
    expect(messagesOf(runProgram(program(true)))).toEqual([]);
    const messages = messagesOf(runProgram(program(false)));
    expect(messages).toContain(
      'full: waits for a phase it has already seen (0): CTA 0 warp 1 (full) and CTA 0 warp 1 (full)',
    );
  });

  it('is nothing by itself', () => {
    const run = runProgram({ barriers: { full: 1 }, warps: [[arrive(0), poll, poll]] });
    expect(run.findings).toEqual([]);
    expect(run.speaksForAllSchedules).toBe(true);
  });
});
