import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTensorFile, writeSafetensors } from '../../src/io/index.js';
import type { AuditReport } from '../../src/report/json/index.js';
import { tensor } from '../setup/problems.js';
import { refusal, runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-audit-launch-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const at = (name: string) => join(scratch, name);

/**
 * Attention with one key, whose output is V: the first warp puts a row of V into shared memory, and both write it. And its dV
 * of two queries: the sum of their rows of dO.
 */
const ptx = `.version 8.7
.target sm_90a
.address_size 64
.visible .entry attend(.param .u64 v, .param .u64 o, .param .u64 notes) {
  .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<5>;
  .shared .align 16 .b8 row[256];
  ld.param.u64 %rd1, [v];
  ld.param.u64 %rd2, [o];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.y;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %nctaid.x;
  mad.lo.s32 %r5, %r2, 64, %r1;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd3, %rd1, %rd3;
  mov.u32 %r6, row;
  mad.lo.s32 %r6, %r1, 4, %r6;
  setp.ge.u32 %p, %r1, 32;
  @%p bra shared;
  ld.global.f32 %f1, [%rd3];
  ld.global.f32 %f2, [%rd3+128];
  st.shared.f32 [%r6], %f1;
  st.shared.f32 [%r6+128], %f2;
shared:
  bar.sync 0;
  ld.shared.f32 %f3, [%r6];
  mad.lo.s32 %r7, %r2, %r4, %r3;
  mad.lo.s32 %r7, %r7, 64, %r1;
  mul.wide.u32 %rd4, %r7, 4;
  add.s64 %rd4, %rd2, %rd4;
  st.global.f32 [%rd4], %f3;
  ret;
}
.visible .entry gradient(.param .u64 dout, .param .u64 dv) {
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<5>;
  ld.param.u64 %rd1, [dout];
  ld.param.u64 %rd2, [dv];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.s32 %r3, %r2, 128, %r1;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd3, %rd1, %rd3;
  ld.global.f32 %f1, [%rd3];
  ld.global.f32 %f2, [%rd3+256];
  add.f32 %f3, %f1, %f2;
  mad.lo.s32 %r4, %r2, 64, %r1;
  mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd4, %rd2, %rd4;
  st.global.f32 [%rd4], %f3;
  ret;
}
`;
const racy = ptx.replace('  bar.sync 0;\n', '');
/** Reads scratch that nobody has written, and does not use it. */
const curious = ptx.replace(
  '  mov.u32 %r6, row;',
  '  ld.param.u64 %rd5, [notes];\n  ld.global.f32 %f4, [%rd5];\n  mov.u32 %r6, row;',
);

const forward = {
  entry: 'attend',
  grid: ['sq', 'heads'],
  block: [64],
  parameters: [{ tensor: 'v' }, { tensor: 'O' }, { scratch: 4 }],
  outputs: [{ name: 'O', as: 'out' }],
  requires: ['sk == 1 && dv == 64'],
};
const backward = {
  entry: 'gradient',
  grid: ['heads'],
  block: [64],
  parameters: [{ tensor: 'dout' }, { tensor: 'dv' }],
  outputs: [{ name: 'dv', as: 'dv' }],
  requires: ['sk == 1 && sq == 2'],
};

/** Writes a template with its PTX; returns its path. */
function template(name: string, file: object, text = ptx): string {
  writeFileSync(at(`${name}.ptx`), text);
  writeFileSync(at(`${name}.json`), JSON.stringify({ ptx: `${name}.ptx`, ...file }));
  return at(`${name}.json`);
}

/** Problems of one key, and of two. */
const problems = [at('one.safetensors'), at('two.safetensors')];
const wave = (...shape: number[]) => tensor('fp32', shape, (i) => Math.sin(1 + i * i));
beforeAll(async () => {
  for (const [i, path] of problems.entries()) {
    const [q, k, v] = [wave(1, 2, 2, 64), wave(1, 2, i + 1, 64), wave(1, 2, i + 1, 64)];
    await writeSafetensors(path, { q, k, v, dout: wave(1, 2, 2, 64) });
  }
});

async function audit(launch: string, ...args: readonly string[]) {
  const { stdout, status } = await runInProcess(
    'audit',
    ...args,
    '--launch',
    launch,
    '--json',
    '-',
  );
  return { status, report: JSON.parse(stdout) as AuditReport };
}

describe('flashproof audit --launch', () => {
  it('judges what the kernel gives', async () => {
    const { status, report } = await audit(template('right', forward), problems[0]);
    expect(status).toBe(0);
    expect(report.verdict.pass).toBe(true);
    expect(report.verdict.notes.join()).toContain('arithmetic of sm_90: 0 findings, 0 hints');
    expect(report.inputs).toMatchObject({
      outputs: [{ name: 'out', path: null, format: 'fp32' }],
      command: `flashproof run ${at('right.json')} --problem ${problems[0]}`,
    });
    const { stdout } = await runInProcess('run', at('right.json'), '--problem', problems[0]);
    expect(stdout).toMatch(/O +F32 \[1, 2, 2, 64\]/);
  });

  it('fails a kernel with a race whose numbers are right', async () => {
    const junit = at('race.xml');
    const { status, report } = await audit(
      template('racy', forward, racy),
      ...[problems[0], '--junit', junit],
    );
    expect(status).toBe(1);
    const { sentence, findings } = report.verdict;
    expect(sentence).toMatch(/^FAIL: the compiled kernel has a finding, race: .*line 2[0-9]/);
    expect(sentence).toContain('its numbers alone: PASS');
    // That of four CTAs is told once.
    expect(findings.map(({ test }) => test)).toEqual(['machine']);
    expect(sentence).toContain('(and 3 others like it)');
    expect(readFileSync(junit, 'utf8')).toMatch(/name="execution"[^>]*>\s*<failure[^>]*race/);
  });

  it('fails wrong numbers', async () => {
    const wrong = ptx.replace('st.global.f32 [%rd4], %f3', 'st.global.f32 [%rd4], %f1');
    const { status, report } = await audit(template('wrong', forward, wrong), problems[0]);
    expect(status).toBe(1);
    expect(report.verdict.findings.some(({ quantity }) => quantity === 'out')).toBe(true);
    expect(report.verdict.findings.some(({ test }) => test === 'machine')).toBe(false);
  });

  it('fails no kernel for a hint', async () => {
    const { status, report } = await audit(template('curious', forward, curious), problems[0]);
    expect(report.verdict.notes.join()).toMatch(/0 findings, [1-9][0-9]* hint/);
    expect(status).toBe(0);
  });

  it('judges nothing where the template declines', async () => {
    const { status, report } = await audit(template('declining', forward), problems[1]);
    expect(status).toBe(1);
    expect(report.verdict).toMatchObject({ judged: false, findings: [] });
    expect(report.verdict.sentence).toMatch(/^NOT JUDGED: .* declines .* requires sk == 1/);
  });

  inTurn('judges gradients, from tensors of the file in its layout', async () => {
    const path = template('gradient', backward);
    const { status, report } = await audit(path, problems[0]);
    expect(status).toBe(0);
    expect(report.gradients?.gradients.map(({ name }) => name)).toEqual(['dv']);
    expect(report.warnings).toEqual([]);
    const swapped = at('swapped.safetensors');
    const [q, k, v] = [wave(1, 2, 2, 64), wave(1, 1, 2, 64), wave(1, 1, 2, 64)];
    await writeSafetensors(swapped, { q, k, v, dout: wave(1, 2, 2, 64) });
    expect((await audit(path, swapped, '--layout', 'bshd')).status).toBe(0);
    // Where the file says itself how it lies, run needs no option.
    const noted = at('noted.safetensors');
    const dout = wave(1, 2, 2, 64);
    await writeSafetensors(noted, { q, k, v, dout }, { layout: 'bshd' });
    const saved = at('saved.safetensors');
    await runInProcess('run', path, '--problem', noted, '--save', saved);
    const file = await openTensorFile(saved);
    const { data } = await file.read('dv');
    await file.close();
    const given = dout.data as Float32Array;
    // Head 1 of queries 0 and 1.
    expect(data.slice(64)).toEqual(
      Float32Array.from({ length: 64 }, (_, i) => given[64 + i] + given[192 + i]),
    );
    const wrong = ptx.replace('add.f32 %f3, %f1, %f2', 'sub.f32 %f3, %f1, %f2');
    expect((await audit(template('other', backward, wrong), problems[0])).status).toBe(1);
  });

  it.each([
    [['--output', ':o'], /--launch makes its own output/],
    [['--dv', ':o'], /--launch makes its own gradients; leave out --dv/],
    [['--dout', ':q'], /takes no tensor "dout" and gives no gradient/],
  ])('does not go with %j', async (args, message) => {
    const path = template('refused', forward);
    expect(await refusal('audit', problems[0], '--launch', path, ...args)).toMatch(message);
  });

  it('wants something to judge', async () => {
    const path = template('nothing', { ...forward, outputs: ['O'] });
    expect(await refusal('audit', problems[0], '--launch', path)).toMatch(/no output is given as/);
  });
});
