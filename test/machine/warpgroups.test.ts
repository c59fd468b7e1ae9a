import { describe, expect, it } from 'vitest';
import {
  memoryModels,
  mostRegisters,
  runCluster,
  type Fragment,
  type Instruction,
  type MemoryModel,
  type RunOptions,
} from '../../src/machine/index.js';
import { arrive, data, fragment, kindsOf, launchOf, messagesOf, wait, words } from './launch.js';

const set = (action: 'inc' | 'dec', registers: number): Instruction => ({
  op: 'setmaxnreg',
  action,
  registers,
});
const meet: Instruction = { op: 'bar.sync', barrier: 1, threads: 128 };
const fence: Instruction = { op: 'wgmma.fence', site: 'line 3' };

/** Warps that start with so many registers a thread; left out, nobody knows how many. */
function run(
  warps: readonly (readonly Instruction[])[],
  registersPerThread?: number,
  options: RunOptions = {},
) {
  return runCluster({ ...launchOf({ warps }), registersPerThread }, options);
}

/** The same in each warp of a warpgroup. */
const group = (...body: Instruction[]) => Array.from({ length: 4 }, () => body);
const all = Object.values(memoryModels) as MemoryModel[];

describe('setmaxnreg', () => {
  it('hands registers from one warpgroup to another, which waits for them', () => {
    const warps = [...group(set('inc', 232)), ...group(set('dec', 24))];
    expect(messagesOf(run(warps, 128))).toEqual([]);
    expect(run(warps, 128).isComplete).toBe(true);
  });

  it('waits for ever for more registers than the CTA has', () => {
    const { findings } = run([...group(set('inc', 240)), ...group(set('dec', 24))], 128);
    expect(findings.map(({ kind }) => kind)).toEqual(['deadlock']);
    expect(findings[0].message).toContain(
      'waits for 112 more registers a thread, and 80 registers of a thread are free in its CTA',
    );
  });

  it.each([
    ['inc', 64, 'setmaxnreg.inc to 64 registers of a warp that has 128'],
    ['dec', 200, 'setmaxnreg.dec to 200 registers of a warp that has 128'],
  ] as const)(
    'changes registers in the direction that it says: %s to %d',
    (action, to, message) => {
      const lent = group(set('dec', 24));
      const { findings } = run([...group(set(action, to)), ...lent], 128);
      expect(findings.every(({ kind }) => kind === 'instruction-shape')).toBe(true);
      expect(findings[0].message).toContain(message);
      expect(kindsOf(run([...group(set(action, to)), ...lent]))).toEqual([]);
    },
  );

  it('belongs to all warps of a warpgroup', () => {
    const [first, ...others] = group(set('dec', 64));
    const apart = [first, ...others.map(() => [])];
    for (const model of all) {
      expect(kindsOf(run(group(set('dec', 64)), 128, { model }))).toEqual([]);
      expect(messagesOf(run(apart, 128, { model }))).toEqual([
        expect.stringMatching(
          /CTA 0 warp 0 executes setmaxnreg\.dec.*all warps.*not CTA 0 warp 1, CTA 0 warp 2, CTA 0 warp 3/,
        ),
      ]);
      expect(kindsOf(run([first], 128, { model }))).toEqual(['convergence']);
    }
    const opposite = [[set('inc', 64)], ...others];
    for (const model of all)
      expect(kindsOf(run(opposite, undefined, { model }))).toContain('convergence');
  });

  it('has one number in a warpgroup, whose warps meet before the next one, by the letter of the ISA', () => {
    const numbers = [[set('dec', 24)], ...group(set('dec', 48)).slice(1)];
    const twice = group(set('dec', 64), set('dec', 24));
    for (const model of all) {
      const due = model.registerGroups ? ['convergence'] : [];
      expect(kindsOf(run(numbers, 128, { model })), model.name).toEqual(due);
      expect(kindsOf(run(twice, 128, { model })), model.name).toEqual(due);
      const meeting = group(set('dec', 64), meet, set('dec', 24));
      expect(kindsOf(run(meeting, 128, { model })), model.name).toEqual([]);
    }
  });

  it('has what an SM has', () => {
    expect([128, 256, 384, 512, 1024].map(mostRegisters)).toEqual([256, 256, 168, 128, 64]);
  });
});

describe('instructions of a warpgroup', () => {
  it('are executed by all of its warps, in one order', () => {
    const commit: Instruction = { op: 'wgmma.commit_group', site: 'line 4' };
    expect(messagesOf(run(group(fence, commit)))).toEqual([]);
    expect(messagesOf(run([[commit, fence], ...group(fence, commit).slice(1)])).join()).toMatch(
      /comes to line (3|4) where CTA 0 warp \d of its warpgroup has come to line (4|3)/,
    );
    const messages = messagesOf(run([...group(fence), ...group(fence).slice(1), []]));
    expect(messages).toEqual([
      'CTA 0 warp 4 executes line 3, which all warps of its warpgroup have to, and not CTA 0 warp 7',
    ]);
  });
});

describe('a wgmma', () => {
  const groupWarps = 4;
  const rowBytes = 512;
  const [a, b] = [data, data + groupWarps * rowBytes];
  const descriptor = {
    leadingByteOffset: 128,
    strideByteOffset: 256,
    swizzle: 'none',
    major: 'k',
  } as const;
  const one = 0x3f80;
  const constant = (bf16: number) => fragment(1, () => (bf16 << 16) | bf16);
  const toAsync: Instruction = { op: 'fence.proxy.async' };
  const sync = (warps: number): Instruction => ({
    op: 'bar.sync',
    barrier: 2,
    threads: 32 * warps,
  });
  const commit: Instruction = { op: 'wgmma.commit_group', site: 'commit' };
  const await0: Instruction = { op: 'wgmma.wait_group', pending: 0, site: 'wait' };
  /** A warp's 16 rows of A, 16 columns of one number. */
  const rows = (warp: number, bf16: number): Instruction[] =>
    Array.from({ length: rowBytes / 128 }, (_, i) =>
      words('st.shared', a + warp * rowBytes + 128 * i, constant(bf16)),
    );
  /** 8 columns of B. */
  const columns = (bf16: number): Instruction[] =>
    [0, 128].map((offset) => words('st.shared', b + offset, constant(bf16)));
  const product = (d: Fragment): Instruction[] => [
    fence,
    {
      op: 'wgmma.mma_async',
      a: 'bf16',
      b: 'bf16',
      accumulator: 'fp32',
      n: 8,
      accumulate: false,
      negateA: false,
      negateB: false,
      aOperand: { space: 'shared', descriptor: { ...descriptor, address: a } },
      bOperand: { ...descriptor, address: b },
      d,
      site: 'product',
    },
    commit,
  ];
  const numbers = (d: Fragment) => new Set(new Float32Array(d.words.buffer));
  const warps = [0, 1, 2, 3];

  it('comes after what each of its warps has written for it, in practice', () => {
    for (const model of all) {
      const sums = warps.map(() => fragment(4));
      const { findings, isComplete } = run(
        warps.map((warp) => [
          ...(warp === 0 ? columns(one) : []),
          toAsync,
          sync(groupWarps),
          ...rows(warp, 0x4000),
          toAsync,
          ...product(sums[warp]),
          await0,
        ]),
        undefined,
        { model },
      );
      expect(isComplete).toBe(true);
      expect(sums.map(numbers)).toEqual(warps.map(() => new Set([32])));
      expect(
        findings.some(({ kind }) => kind === 'race'),
        model.name,
      ).toBe(!model.warpgroupOrder);
    }
  });

  it('is complete in all warps when it is in one, in practice: that one may release what they read', () => {
    for (const model of all) {
      const sums = warps.map(() => fragment(4));
      const consumer = (warp: number): Instruction[] => [
        ...rows(warp, one),
        ...(warp === 0 ? columns(one) : []),
        toAsync,
        sync(groupWarps),
        ...product(sums[warp]),
        await0,
        ...(warp === 0 ? [arrive(0)] : []),
      ];
      const refill: Instruction[] = [wait(0, 0), ...columns(0x4000)];
      const { findings } = runCluster(
        launchOf({ barriers: { released: 1 }, warps: [...warps.map(consumer), refill] }),
        { model },
      );
      expect(sums.map(numbers)).toEqual(warps.map(() => new Set([16])));
      expect(
        findings.some(({ kind }) => kind === 'race'),
        model.name,
      ).toBe(!model.warpgroupOrder);
    }
  });

  it('has its registers until a wait', () => {
    const out = b + 1024;
    const kinds = (model: MemoryModel, ofWarp: (sums: Fragment, out: number) => Instruction[]) => {
      const programs = warps.map((warp) => [
        ...rows(warp, one),
        ...(warp === 0 ? columns(one) : []),
        toAsync,
        sync(groupWarps),
        ...ofWarp(fragment(4), out + 512 * warp),
      ]);
      return kindsOf(run(programs, undefined, { model }));
    };
    for (const model of all) {
      const store = (sums: Fragment, to: number) => words('st.shared', to, sums);
      const before = kinds(model, (sums, to) => [...product(sums), store(sums, to), await0]);
      const after = kinds(model, (sums, to) => [...product(sums), await0, store(sums, to)]);
      // Where registers are waited for, who reads them waits.
      expect(before, model.name).toEqual(model.registerDependencies ? [] : ['race']);
      expect(after, model.name).toEqual([]);
    }
  });

  it('is not under way before all four warps have come to it', () => {
    const [first, ...others] = warps.map((warp) => [
      ...rows(warp, one),
      ...columns(one),
      toAsync,
      ...product(fragment(4)),
    ]);
    const apart = run([[...first, await0], ...others.map(() => [])]);
    expect(apart.findings.map(({ message }) => message).join()).toMatch(
      /deadlock: CTA 0 warp 0 .*waits for 1 wgmma\.mma_async/,
    );
  });
});
