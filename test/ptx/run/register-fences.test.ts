import { describe, expect, it } from 'vitest';
import { createRegisterFences } from '../../../src/ptx/run/cluster-warps.js';
import { createMutantJudge, programMutants } from '../../../src/ptx/mutants/index.js';
import { prepareLaunch, runLaunch } from '../../../src/ptx/run/index.js';
import type { Slot } from '../../../src/ptx/instructions/index.js';
import { turns } from '../../setup/turns.js';
import { openCaptured } from './captured-launch.js';
import { runBody } from './run-body.js';

const inTurn = turns(import.meta.url);

const slots = (...offsets: number[]): Slot[] => offsets.map((offset) => ({ offset, width: 32 }));
const [d, a] = [slots(0, 4), slots(8, 12)];

describe('wgmma.fence', () => {
  it('comes before the first product', () => {
    const fences = createRegisterFences();
    expect(fences.multiply(d, a, 'm64n8k16')).toContain('before the first product');
    fences.fence();
    expect(fences.multiply(d, a, 'm64n8k16')).toBe(null);
  });

  it.each([
    ['D', 4],
    ['A', 8],
  ])('comes after each access to registers of %s', (what, offset) => {
    const fences = createRegisterFences();
    fences.fence();
    fences.touch([offset]);
    expect(fences.multiply(d, a, 'm64n8k16')).toContain(`registers of ${what} were accessed`);
    fences.fence();
    expect(fences.multiply(d, a, 'm64n8k16')).toBe(null);
  });

  it('is not due between products of one shape into one accumulator, but of two', () => {
    const fences = createRegisterFences();
    fences.fence();
    for (let i = 0; i < 3; i++) expect(fences.multiply(d, a, 'm64n8k16')).toBe(null);
    expect(fences.multiply(d, a, 'm64n8k32')).toContain('another shape (m64n8k16)');
    expect(fences.multiply(slots(16), d, 'm64n8k16')).toContain('accumulated in registers of A');
  });
});

inTurn(
  'a compiled kernel without its wgmma.fence has a finding at each product after it',
  async () => {
    const withFences = /^\s*wgmma\.fence\.sync\.aligned;$/gm;
    const findings = async (edit: (ptx: string) => string) => {
      const { module, launch, options } = await openCaptured('triton-wgmma-d64', edit);
      const runs = (cluster: number) => cluster === 0;
      return runLaunch(module, launch, { ...options, runs }).findings.map(({ message }) => message);
    };
    let number = 0;
    const without = (which: number) => (ptx: string) =>
      ptx.replace(withFences, (fence) => (number++ === which ? '' : fence));
    expect(await findings(without(-1))).toEqual([]);
    number = 0;
    expect((await findings(without(0))).join()).toMatch(
      /line \d+: wgmma\.mma_async.*no wgmma\.fence/,
    );
    number = 0;
    expect((await findings(without(1))).join()).toMatch(
      /no wgmma\.fence since registers of [AD] were/,
    );
  },
);

inTurn(
  'a mutant without its wgmma.fence is found, or with it behind the first product',
  async () => {
    const { module, launch, options } = await openCaptured('triton-matmul-fp16');
    const prepared = prepareLaunch(module, launch, options);
    const { judge } = createMutantJudge(prepared);
    const mutants = programMutants(prepared.program).filter(({ mnemonic }) =>
      mnemonic.startsWith('wgmma.fence'),
    );
    expect(mutants.length).toBeGreaterThan(1);
    for (const mutant of mutants) expect(judge(mutant).verdict, mutant.change).toBe('found');
  },
);

describe('setmaxnreg of a compiled kernel', () => {
  const body = (change: string) => `
  setp.lt.u32 %p1, %r0, 128;
  @%p1 bra first;
  setmaxnreg.dec.sync.aligned.u32 24;
  bra.uni end;
first:
  ${change}
end:`;
  const run = async (change: string) => {
    const extra = { block: [256], dynamicSharedBytes: 0 };
    const options = { extra, directives: '.maxnreg 128', output: new Uint8Array(1024) };
    const { result } = await runBody(body(change), options);
    return result.findings.map(({ kind, message }) => `${kind}: ${message}`).join();
  };

  it('gets the registers that .maxnreg leaves to the CTA, and no more', async () => {
    expect(await run('setmaxnreg.inc.sync.aligned.u32 232;')).toBe('');
    expect(await run('setmaxnreg.inc.sync.aligned.u32 240;')).toMatch(
      /deadlock.*112 more registers/,
    );
  });

  it('is executed by one warp alone', async () => {
    const alone = 'setp.ge.u32 %p2, %r0, 32;\n @%p2 bra end;\n setmaxnreg.inc.sync.aligned.u32 64;';
    expect(await run(alone.replace('inc', 'dec'))).toContain('convergence: CTA 0 warp 0 executes');
  });
});
