import { describe, expect, it } from 'vitest';
import {
  hasAtomic,
  randomScheduler,
  type AtomicOperation,
  type AtomicType,
  type Instruction,
  type MemoryScope,
} from '../../src/machine/index.js';
import {
  fragment,
  kindsOf,
  launchMemory,
  messagesOf,
  places,
  runProgram,
  transfer,
} from './launch.js';

const one = (address: number, bytes = 4) => places('global', address, bytes, 1);

/** An atomic operation of one lane on a word of 32 bits. */
function atomic(
  address: number,
  operation: AtomicOperation,
  operand: number,
  {
    order = 'relaxed',
    scope = 'gpu',
    result = fragment(),
  }: {
    order?: 'relaxed' | 'acq_rel' | 'acquire' | 'release';
    scope?: MemoryScope;
    result?: ReturnType<typeof fragment>;
  } = {},
): Instruction {
  return {
    op: 'atom',
    ...one(address),
    order,
    scope,
    operation,
    type: operation === 'exch' ? 'b32' : 'u32',
    elements: 1,
    operands: fragment(1, () => operand),
    compared: operation === 'cas' ? fragment() : null,
    result,
    site: operation,
  };
}

describe('a message passed from one warp to another', () => {
  /** Two CTAs: one writes data and then a flag, the other reads the flag until it is set, and then the data. */
  function pass(
    release: (flag: number) => Instruction[],
    acquire: (flag: number, result: ReturnType<typeof fragment>) => Instruction[],
    ctas: 1 | 2 = 2,
  ) {
    const memory = launchMemory();
    const words = memory.global.allocate({ name: 'w', contents: new Uint8Array(512) });
    const [message, flag] = [words.base, words.base + 256];
    const read = fragment();
    const send = [
      transfer(
        'st',
        one(message),
        fragment(1, () => 42),
      ),
      ...release(flag),
    ];
    function* receive(): Generator<Instruction> {
      for (;;) {
        const seen = fragment();
        yield* acquire(flag, seen);
        if (seen.words[0] !== 0) break;
      }
      yield transfer('ld', one(message), read);
    }
    // A schedule that lets the reader go on for ever would never see the flag.
    const run = runProgram(
      {
        memory,
        ctas,
        warps: ctas === 2 ? [({ cta }) => (cta === 0 ? send : receive())] : [send, receive],
      },
      { scheduler: randomScheduler(1), mostSteps: 1000 },
    );
    return { kinds: kindsOf(run), read: read.words[0] };
  }
  const set = fragment(1, () => 1);
  const store =
    (order: 'weak' | 'relaxed' | 'release', scope: MemoryScope = 'gpu') =>
    (flag: number) => [transfer('st', one(flag), set, { order, scope })];
  const load =
    (order: 'weak' | 'relaxed' | 'acquire', scope: MemoryScope = 'gpu') =>
    (flag: number, result: ReturnType<typeof fragment>) => [
      transfer('ld', one(flag), result, { order, scope }),
    ];
  const fence = (scope: MemoryScope): Instruction => ({ op: 'fence', scope });
  const after =
    (acquire: ReturnType<typeof load>, scope: MemoryScope) =>
    (flag: number, result: ReturnType<typeof fragment>) => [...acquire(flag, result), fence(scope)];
  const before = (release: ReturnType<typeof store>, scope: MemoryScope) => (flag: number) => [
    fence(scope),
    ...release(flag),
  ];

  it.each([
    ['release and acquire', store('release'), load('acquire')],
    ['fences and relaxed accesses', before(store('relaxed'), 'gpu'), after(load('relaxed'), 'gpu')],
    ['a fence and an acquire', before(store('relaxed'), 'sys'), load('acquire')],
    [
      'an atomic exchange and an atomic read',
      (flag: number) => [atomic(flag, 'exch', 1, { order: 'release' })],
      (flag: number, result: ReturnType<typeof fragment>) => [
        atomic(flag, 'add', 0, { order: 'acquire', result }),
      ],
    ],
    [
      'a relaxed atomic operation on what was released',
      (flag: number) => [...store('release')(flag), atomic(flag, 'add', 1)],
      load('acquire'),
    ],
  ])('arrives by %s', (_how, release, acquire) => {
    expect(pass(release, acquire)).toEqual({ kinds: [], read: 42 });
  });

  it.each([
    ['a relaxed write', store('relaxed'), load('acquire')],
    ['a relaxed read', store('release'), load('relaxed')],
    ['weak accesses', store('weak'), load('weak')],
    ['a fence on one side alone', before(store('relaxed'), 'gpu'), load('relaxed')],
    ['the scope of a CTA', store('release', 'cta'), load('acquire')],
    [
      'a fence with the scope of a CTA',
      before(store('relaxed'), 'cta'),
      after(load('relaxed'), 'gpu'),
    ],
    [
      'a released value that a weak write has replaced',
      (flag: number) => [...store('release')(flag), ...store('weak')(flag)],
      load('acquire'),
    ],
  ])('does not arrive by %s', (_how, release, acquire) => {
    expect(pass(release, acquire).kinds).toContain('race');
  });

  it('within a CTA needs its scope alone', () => {
    expect(pass(store('release', 'cta'), load('acquire', 'cta'), 1).kinds).toEqual([]);
  });
});

describe('strong accesses', () => {
  const memory = launchMemory();
  const { base } = memory.global.allocate({ name: 'w', contents: new Uint8Array(64) });
  const run = (...warps: Instruction[][]) => kindsOf(runProgram({ memory, warps }));

  it('are no races among themselves, and are with weak ones', () => {
    expect(run([atomic(base, 'add', 1)], [atomic(base, 'add', 1)])).toEqual([]);
    expect(run([atomic(base, 'add', 1)], [transfer('ld', one(base))])).toEqual(['race']);
    expect(run([transfer('st', one(base))], [atomic(base, 'add', 1)])).toEqual(['race']);
    const strong = transfer('st', one(base), fragment(), { order: 'relaxed' });
    expect(
      run([strong], [strong], [transfer('ld', one(base), fragment(), { order: 'relaxed' })]),
    ).toEqual([]);
  });

  it('in no order let a run speak for its schedule alone', () => {
    const meet: Instruction = { op: 'bar.sync', barrier: 1, threads: 64 };
    const speaks = (...warps: Instruction[][]) =>
      runProgram({ memory, warps }).speaksForAllSchedules;
    expect(speaks([atomic(base, 'add', 1)], [atomic(base, 'add', 1)])).toBe(false);
    expect(speaks([atomic(base, 'add', 1), meet], [meet, atomic(base, 'add', 1)])).toBe(true);
    expect(speaks([atomic(base, 'add', 1)], [atomic(base + 4, 'add', 1)])).toBe(true);
  });

  it('of which a later one is ordered still race by the earlier ones', () => {
    const twoWarps: Instruction = { op: 'bar.sync', barrier: 1, threads: 64 };
    // Warp 2's weak read comes after warp 1's atomic operation, and in no order with warp 0's.
    expect(
      run(
        [atomic(base, 'add', 1)],
        [atomic(base, 'add', 1), twoWarps],
        [twoWarps, transfer('ld', one(base))],
      ),
    ).toEqual(['race']);
  });
});

describe('atomic operations', () => {
  const float = (value: number) => new Uint32Array(Float32Array.of(value).buffer)[0];
  const laws: readonly [AtomicOperation, AtomicType, number[], number[], number[]][] = [
    ['add', 'u32', [0xffffffff], [2], [1]],
    ['add', 's32', [5], [0xfffffffe], [3]],
    ['add', 'u64', [0xffffffff, 7], [1, 0], [0, 8]],
    ['inc', 'u32', [4], [5], [5]],
    ['inc', 'u32', [5], [5], [0]],
    ['dec', 'u32', [0], [5], [5]],
    ['dec', 'u32', [6], [5], [5]],
    ['dec', 'u32', [3], [5], [2]],
    ['min', 's32', [1], [0xffffffff], [0xffffffff]],
    ['min', 'u32', [1], [0xffffffff], [1]],
    ['max', 's64', [1, 0], [0, 0x80000000], [1, 0]],
    ['max', 'u64', [1, 0], [0, 0x80000000], [0, 0x80000000]],
    ['and', 'b32', [12], [10], [8]],
    ['or', 'b32', [12], [10], [14]],
    ['xor', 'b64', [12, 1], [10, 1], [6, 0]],
    ['exch', 'b128', [1, 2, 3, 4], [5, 6, 7, 8], [5, 6, 7, 8]],
    ['cas', 'b32', [0], [9], [9]],
    ['cas', 'b32', [1], [9], [1]],
    ['cas', 'b16', [0x70000], [9], [0x70009]],
    ['add', 'f32', [float(1.5)], [float(2.25)], [float(3.75)]],
    ['add', 'f64', [0, 0x3ff00000], [0, 0x3ff00000], [0, 0x40000000]],
    ['add', 'f16x2', [0x3c003c00], [0x40003c00], [0x42004000]],
    ['max', 'bf16x2', [0x3f80bf80], [0x7fff4000], [0x3f804000]],
  ];
  const bytesOf = { b16: 2, b128: 16 } as Partial<Record<AtomicType, number>>;

  it.each(laws)('%s.%s of %j and %j', (operation, type, before, operand, after) => {
    const memory = launchMemory();
    const contents = new Uint8Array(16);
    new Uint32Array(contents.buffer).set(before);
    const { base, store } = memory.global.allocate({ name: 'w', contents });
    const { words } = store;
    const bytes = bytesOf[type] ?? (type.endsWith('64') ? 8 : 4);
    const count = Math.ceil(bytes / 4);
    const operands = fragment(count);
    operands.words.set(operand);
    const result = fragment(count);
    const compared = operation === 'cas' ? fragment(count) : null;
    const common = {
      ...one(base, bytes),
      order: 'relaxed',
      scope: 'gpu',
      operation,
      type,
      elements: 1,
      operands,
      compared,
    } as const;
    const run = runProgram({ memory, warps: [[{ op: 'atom', ...common, result }]] });
    expect(messagesOf(run)).toEqual([]);
    expect([...words.subarray(0, after.length)]).toEqual(after);
    expect([...result.words.subarray(0, count)]).toEqual(
      before.slice(0, count).map((word) => (bytes === 2 ? word & 0xffff : word)),
    );
    new Uint32Array(contents.buffer).set(before);
    runProgram({ memory, warps: [[{ op: 'red', ...common, result: null }]] });
    expect([...words.subarray(0, after.length)]).toEqual(after);
  });

  it('of lanes on one word add up, and see each other', () => {
    const memory = launchMemory();
    const { base, store } = memory.global.allocate({ name: 'w', contents: new Uint8Array(4) });
    const { words } = store;
    const result = fragment();
    const addresses = new Float64Array(32).fill(base);
    runProgram({
      memory,
      warps: [
        [
          {
            op: 'atom',
            space: 'global',
            addresses,
            bytes: 4,
            order: 'relaxed',
            scope: 'gpu',
            operation: 'add',
            type: 'u32',
            elements: 1,
            operands: fragment(1, () => 3),
            compared: null,
            result,
          },
        ],
      ],
    });
    expect(words[0]).toBe(96);
    expect([...result.words].sort((a, b) => a - b)).toEqual(
      Array.from({ length: 32 }, (_, i) => 3 * i),
    );
  });

  it('of f32 flush subnormals in global memory and keep them in shared memory', () => {
    const memory = launchMemory();
    const { base, store } = memory.global.allocate({ name: 'w', contents: new Uint8Array(4) });
    const { words } = store;
    const add = (
      space: 'global' | 'shared::cta',
      address: number,
      operand: number,
    ): Instruction => ({
      op: 'red',
      ...places(space, address, 4, 1),
      order: 'relaxed',
      scope: 'gpu',
      operation: 'add',
      type: 'f32',
      elements: 1,
      operands: fragment(1, () => operand),
      compared: null,
      result: null,
    });
    const kept = fragment();
    runProgram({
      memory,
      warps: [
        [
          add('global', base, 5),
          transfer('st', places('shared::cta', 1024, 4, 1)),
          add('shared::cta', 1024, 5),
          transfer('ld', places('shared::cta', 1024, 4, 1), kept),
        ],
      ],
    });
    expect([words[0], kept.words[0]]).toEqual([0, 5]);
  });

  it('that PTX has not are refused', () => {
    expect(hasAtomic('min', 'f32')).toBe(false);
    const memory = launchMemory();
    const { base } = memory.global.allocate({ name: 'w', contents: new Uint8Array(4) });
    const wrong = { ...atomic(base, 'min', 1), type: 'f32' } as Instruction;
    expect(messagesOf(runProgram({ memory, warps: [[wrong]] }))).toEqual([
      'CTA 0 warp 0, min: there is no atom.min.f32',
    ]);
  });
});
