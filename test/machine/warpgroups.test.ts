import { describe, expect, it } from 'vitest';
import {
  memoryModels,
  mostRegisters,
  runCluster,
  type Instruction,
  type MemoryModel,
  type RunOptions,
} from '../../src/machine/index.js';
import { kindsOf, launchOf, messagesOf } from './launch.js';

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
