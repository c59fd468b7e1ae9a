import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { RunDocument } from '../../src/jobs/index.js';
import { runInProcess } from './run-in-process.js';
import { smallTensor, writeLaunch, x } from './small-launch.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-run-verdict-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const inputs = [smallTensor('x', x), smallTensor('y', new Float32Array(96))];

/** A launch of a body in whose CTA %r1 is the thread, %rd1 the thread's word of `y`. */
async function launchOf(
  body: string,
  {
    block = 64,
    head = '',
    declarations = '',
  }: { block?: number; head?: string; declarations?: string } = {},
) {
  const folder = mkdtempSync(join(scratch, 'launch-'));
  const path = await writeLaunch(folder, inputs, {
    entry: 'k',
    grid: [1, 1, 1],
    block: [block, 1, 1],
    parameters: [{ tensor: 'x' }, { tensor: 'y' }],
  });
  writeFileSync(
    join(folder, 'kernel.ptx'),
    `.version 8.7
.target sm_90a
.address_size 64
${head}
.visible .entry k(.param .u64 x, .param .u64 y) {
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  .shared .align 4 .b8 data[4096];
  ${declarations}
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [y];
  and.b32 %r2, %r1, 63;
  mad.wide.u32 %rd1, %r2, 4, %rd1;
  mov.u32 %r3, data;
  mad.lo.u32 %r4, %r1, 4, %r3;
${body}
  ret;
}
`,
  );
  return path;
}

/** Each thread stores a word and loads that of a thread `distance` further on, with or without a barrier between. */
const exchange = (barrier: string, distance: number, threads: number) => `
  st.shared.u32 [%r4], %r1;
  ${barrier}
  add.u32 %r5, %r1, ${distance};
  and.b32 %r5, %r5, ${threads - 1};
  mad.lo.u32 %r5, %r5, 4, %r3;
  ld.shared.u32 %r6, [%r5];
  setp.lt.u32 %p1, %r1, 64;
  @%p1 st.global.u32 [%rd1], %r6;`;

const firstLine = (text: string) => text.slice(0, text.search(/\n\n/)).replaceAll(/\s+/g, ' ');
const allSchedules = /\b(every|all|any|no) schedules?\b/i;

describe('the verdict of a run', () => {
  it('comes first, and names the memory model and the stricter one', async () => {
    const path = await launchOf(exchange('bar.sync 0;', 32, 64));
    const { stdout, status } = await runInProcess('run', path);
    expect(firstLine(stdout)).toMatch(/^PASS under model practice: /);
    expect(firstLine(stdout)).toMatch(/--model ptx is stricter/);
    expect(firstLine(stdout)).toMatch(allSchedules);
    expect(status).toBe(0);
    const strict = await runInProcess('run', path, '--model', 'ptx-9.2');
    expect(firstLine(strict.stdout)).toMatch(/^PASS under model ptx-9\.2: /);
    expect(firstLine(strict.stdout)).not.toContain('stricter');
  });

  it('says of a barrier within a warp that is missing under which model it is not needed', async () => {
    const path = await launchOf(exchange('', 5, 32), { block: 32 });
    const { stdout, status } = await runInProcess('run', path);
    expect(status).toBe(0);
    expect(firstLine(stdout)).toMatch(/^PASS under model practice.*--model ptx is stricter/);
    const strict = await runInProcess('run', path, '--model', 'ptx');
    expect(firstLine(strict.stdout)).toMatch(/^FAIL under model ptx: race at lines /);
    expect(strict.status).toBe(1);
  });

  it.each([[[]], [['--schedules', '20']]])(
    'says nothing of all schedules where one races: %j',
    async (args) => {
      const path = await launchOf(exchange('', 32, 64));
      const { stdout, status } = await runInProcess('run', path, ...args);
      expect(firstLine(stdout)).toMatch(/^FAIL under model practice: race at lines /);
      expect(stdout.replaceAll(/do not stand for all schedules/g, '')).not.toMatch(allSchedules);
      expect(status).toBe(1);
    },
  );

  it('says nothing of other schedules where no races were looked for', async () => {
    const path = await launchOf(exchange('', 32, 64));
    const { stdout, status } = await runInProcess('run', path, '--no-races');
    expect(firstLine(stdout)).toMatch(/^PASS under model practice: .*races not looked for/);
    expect(firstLine(stdout)).not.toMatch(allSchedules);
    expect(status).toBe(0);
  });

  it('is in the document too, as a value', async () => {
    const path = await launchOf(exchange('', 32, 64));
    const { stdout } = await runInProcess('run', path, '--json', '-');
    const { verdict, hasFailed } = JSON.parse(stdout) as RunDocument;
    expect(verdict.pass).toBe(false);
    expect(hasFailed).toBe(true);
    expect(verdict.sentence).toMatch(/^FAIL under model practice: /);
  });
});

describe('findings of a run', () => {
  it('at one pair of lines are one, with their count; another pair is another', async () => {
    // 32 warps race at each of two pairs of lines.
    const twice = `${exchange('', 32, 1024)}\n  bar.sync 0;\n${exchange('', 64, 1024)}`;
    const path = await launchOf(twice, { block: 1024 });
    const { stdout } = await runInProcess('run', path, '--json', '-');
    const { findings } = JSON.parse(stdout) as RunDocument;
    expect(findings.filter(({ kind }) => kind === 'race').length).toBeGreaterThan(50);
    const { stdout: text } = await runInProcess('run', path);
    const groups = [...text.matchAll(/^race at lines (\d+) and (\d+), \d+ times/gm)];
    expect(new Set(groups.map(([, one, other]) => `${one} ${other}`)).size).toBe(groups.length);
    expect(groups.length).toBe(2);
    expect(text).toMatch(/the first of \d+: shared memory/);
  });

  it('are not kept out by hints, however many these are', async () => {
    // More places of the program that read what nobody has written than a cluster has findings of one.
    const reads = Array.from({ length: 210 }, (_, i) => `  ld.shared.u32 %r6, [data+${4 * i}];`);
    const body = `${reads.join('\n')}\n  bar.sync 0;${exchange('', 32, 64)}`;
    const { stdout, status } = await runInProcess('run', await launchOf(body));
    expect(firstLine(stdout)).toMatch(/^FAIL under model practice: race at lines /);
    expect(status).toBe(1);
  });

  it('leave hints out but for their number, unless they are asked for', async () => {
    const path = await launchOf('  ld.shared.u32 %r6, [%r4];');
    const { stdout, status } = await runInProcess('run', path);
    expect(firstLine(stdout)).toMatch(/^PASS/);
    expect(stdout).toMatch(/^1 hint; --hints prints it$/m);
    expect(stdout).not.toContain('uninitialised');
    expect(status).toBe(0);
    const all = await runInProcess('run', path, '--hints');
    expect(all.stdout).toMatch(/^uninitialised at line \d+/m);
  });

  it('name the lines of the source that .loc gives', async () => {
    const body = `
  .loc 1 42 7
  st.shared.u32 [%r4], %r1;
  .loc 2 7 3, function_name $L__info_string0, inlined_at 1 45 9
  ld.shared.u32 %r6, [data];
  .loc 1 50 1
  st.global.u32 [%rd1], %r6;`;
    const head = '.file 1 "/somewhere/kernel.py"\n.file 2 "standard.py"';
    const path = await launchOf(body, { head });
    const { stdout } = await runInProcess('run', path);
    expect(firstLine(stdout)).toContain('(kernel.py:42, standard.py:7, inlined at kernel.py:45)');
    expect(stdout).toMatch(/line \d+: st\.shared\.u32 +kernel\.py:42/);
    const { stdout: json } = await runInProcess('run', path, '--json', '-');
    const [race] = (JSON.parse(json) as RunDocument).findings;
    expect(race.accesses.map(({ source }) => source)).toEqual([
      { file: '/somewhere/kernel.py', line: 42, column: 7, inlinedAt: null },
      {
        file: 'standard.py',
        line: 7,
        column: 3,
        inlinedAt: { file: '/somewhere/kernel.py', line: 45, column: 9 },
      },
    ]);
  });
});
