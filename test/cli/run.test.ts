import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openTensorFile, type RawTensor, writeRawTensors } from '../../src/io/index.js';
import type { ExploredLaunch, MutantResults, RunDocument } from '../../src/jobs/index.js';
import { expectTrace, threadNames } from '../machine/trace/trace-format.js';
import { refusal, runInProcess } from './run-in-process.js';
import { fused, smallKernel, smallTensor, unfused, writeLaunch, x } from './small-launch.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-run-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A folder with the kernel, some tensors and a launch file, whose path is returned. */
const prepare = (name: string, changes: object, tensors: readonly RawTensor[]) =>
  writeLaunch(mkdtempSync(join(scratch, `${name}-`)), tensors, changes);

const inputs = [smallTensor('x', x), smallTensor('y', new Float32Array(96).fill(77))];
const recorded = [...inputs, smallTensor('y.fused', fused), smallTensor('y.unfused', unfused)];

describe('flashproof run', () => {
  it('executes the kernel, compares with what was recorded, and saves', async () => {
    const path = await prepare('both', {}, recorded);
    const saved = join(scratch, 'saved.safetensors');
    const { stdout, status } = await runInProcess('run', path, '--save', saved);
    expect(stdout).toContain('scale: 2 CTAs (2 × 1 × 1) of 48 threads (48 × 1 × 1)');
    expect(stdout).toMatch(/y +F32 \[2, 48\] +equals y\.unfused in all 96 elements/);
    expect(stdout).toMatch(/^PASS under model practice: no race, deadlock or illegal access; the/);
    expect(stdout).toContain('Contraction: 1 pair of mul and add that an assembler may contract');
    expect(status).toBe(0);
    const file = await openTensorFile(saved);
    expect(await file.readBytes('y')).toEqual(new Uint8Array(unfused.buffer));
    await file.close();
  });

  it('executes it as an assembler may, and says that it matters', async () => {
    expect(fused).not.toEqual(unfused);
    const path = await prepare('contracted', {}, recorded);
    const { stdout, status } = await runInProcess('run', path, '--contract');
    expect(stdout).toMatch(/equals y\.fused in all 96 elements/);
    expect(stdout).toContain('1 pair of mul and add executed as one fma');
    expect(status).toBe(0);
  });

  it('fails where the result is another than was recorded', async () => {
    const wrong = unfused.slice();
    wrong[50] += 1;
    const path = await prepare('other', {}, [...inputs, smallTensor('y.fused', wrong)]);
    const { stdout, status } = await runInProcess('run', path);
    expect(stdout).toContain('differs from y.fused in 1 of 96 elements, first at [1, 2]');
    expect(status).toBe(1);
  });

  it('finds accesses outside of tensors, with line and place', async () => {
    const path = await prepare('outside', { grid: [3, 1, 1] }, inputs);
    const { stdout, status } = await runInProcess('run', path, '--json', '-');
    const report = JSON.parse(stdout) as RunDocument;
    expect(status).toBe(1);
    expect(report).toMatchObject({ kind: 'run', hasFailed: true, clusters: 3 });
    const messages = report.findings.map(({ message }) => message).join('\n');
    expect(messages).toMatch(/"x"/);
    expect(messages).toMatch(/line 16/);
  });

  it('counts instructions by line', async () => {
    const path = await prepare('lines', {}, inputs);
    const { stdout } = await runInProcess('run', path, '--lines');
    // 48 threads are a warp and a half; two CTAs.
    expect(stdout).toMatch(/^16 +4 +24\.0 +ld\.global\.f32 %f2, \[%rd4\];$/m);
    expect(stdout).toMatch(/^ 4 +\.visible \.entry scale/m);
  });

  it('writes a trace, of both CTAs', async () => {
    const launch = await prepare('trace', {}, inputs);
    const path = join(scratch, 'trace.json');
    const { stdout } = await runInProcess('run', launch, '--trace', path);
    expect(stdout).toContain('trace of 2 clusters in');
    const stepped = expectTrace(readFileSync(path, 'utf8'));
    expect(stepped.otherData).toMatchObject({ schedule: 'in-turns', time: '1 ns is 1 step' });
    expect([...new Set(threadNames(stepped).values())]).toEqual(['warp 0', 'warp 1']);
    const loads = stepped.traceEvents.filter(({ name }) => name.startsWith('line 16'));
    // Two CTAs of two warps each load once.
    expect(loads.length).toBe(4);
    await runInProcess('run', launch, '--trace', path, '--schedule', 'timed', '-q');
    const timed = expectTrace(readFileSync(path, 'utf8'));
    expect(timed.otherData).toMatchObject({ schedule: 'timed', time: '1 ns is 1 clock' });
  });

  it('prints the registers of a thread, and of a warp', async () => {
    const path = await prepare('break', {}, inputs);
    const one = await runInProcess('run', path, '--break', '17,40');
    expect(one.stdout).toContain(
      'Before line 17, CTA 0, thread 40 (warp 1, lane 8), time 1: mul.f32',
    );
    const hex = (value: number) =>
      `0x${new Uint32Array(Float32Array.of(value).buffer)[0].toString(16).padStart(8, '0')}`;
    expect(one.stdout).toContain(`%f2  ${hex(x[40])}  `);
    // CTA 1 begins at element 48; the last warp has 16 threads.
    const { stdout } = await runInProcess('run', path, '--break', '17,w1,1', '--json', '-');
    const [{ lanes, registers }] = (JSON.parse(stdout) as RunDocument).breaks;
    expect(lanes).toBe(0xffff);
    const f2 = registers.find(({ name }) => name === '%f2')!;
    expect(f2.values.slice(0, 16).map(Number)).toEqual([
      ...new Uint32Array(x.slice(80, 96).buffer),
    ]);
  });

  it.each([
    [['--break', '17,'], /give <line>, <line>,<thread> or/],
    [['--break', '2'], /line 2 has no instruction that the kernel executes; the nearest is 6/],
    [['--break', '17', '--break-times', '0'], /--break-times is "0"/],
    [['--break-times', '2'], /give --break <line> too/],
    [['--problem', 'a', '--tensors', 'b'], /--problem is where the tensors of a template are/],
  ])('refuses %j', async (args, message) => {
    const path = await prepare('options', {}, inputs);
    expect(await refusal('run', path, ...args)).toMatch(message);
  });

  it('takes other tensors and another schedule', async () => {
    const path = await prepare('others', {}, inputs);
    const other = join(scratch, 'other.safetensors');
    await writeRawTensors(other, [
      smallTensor(
        'x',
        x.map((value) => 2 * value),
      ),
      ...recorded.slice(1),
    ]);
    const args = ['--tensors', other, '--schedule', 'random:3', '--no-races'];
    const { stdout, status } = await runInProcess('run', path, ...args);
    expect(stdout).toContain('schedule random:3');
    expect(stdout).toContain('differs from y.unfused');
    expect(status).toBe(1);
  });

  it('runs the orders that the schedule decides, says what differs, and gives each again', async () => {
    const path = await prepare('orders', {}, inputs);
    const other = join(scratch, 'orders.ptx');
    // The last one leaves its number.
    const last = 'atom.global.exch.b32 %r3, [%rd2], %r4;';
    writeFileSync(other, smallKernel.replace('st.global.f32 [%rd5], %f4;', last));
    const same = await runInProcess('run', path, '--schedules', '5');
    expect(same.stdout).toContain('Schedules: 1 run in');
    expect(same.stdout).toContain('No schedule that the memory model allows has another order');
    expect(same.status).toBe(0);
    const { stdout } = await runInProcess(
      ...['run', path, '--ptx', other, '--schedules', '4', '--json', '-'],
    );
    const { exploration } = JSON.parse(stdout) as { exploration: ExploredLaunch };
    expect(exploration).toMatchObject({ runs: 4, isExhausted: false, mostRuns: 4 });
    const all = await runInProcess('run', path, '--ptx', other, '--schedules', '200');
    expect(all.status).toBe(1);
    expect(all.stdout).toContain('They stand for all schedules');
    expect(all.stdout).toContain('4 results: the outputs depend on the schedule');
    const [name] = /explored:\S+/.exec(all.stdout)!;
    const again = await runInProcess('run', path, '--ptx', other, '--schedule', name);
    expect(again.stdout).toContain(`schedule ${name}`);
    const line = await refusal('run', path, '--schedule', 'explored:5-99999');
    expect(line).toContain('give a schedule that --schedules has printed for this launch');
  });

  inTurn('runs the CTAs on threads, with the same result', async () => {
    const path = await prepare('threads', {}, recorded);
    const { stdout, status } = await runInProcess('run', path, '--threads', '2');
    expect(stdout).toMatch(/y +F32 \[2, 48\] +equals y\.unfused in all 96 elements/);
    expect(stdout).toContain('scale: 2 CTAs');
    expect(status).toBe(0);
  });

  it('judges mutants of what orders others', async () => {
    const path = await prepare('mutants', {}, recorded);
    const other = join(scratch, 'mutants.ptx');
    const barrier = '  bar.sync 0;\n  bar.sync 1, 32;\n  st.global';
    writeFileSync(other, smallKernel.replace('  st.global', barrier));
    // The second barrier waits for one of two warps.
    const one = ['--mutants', '--threads', '1', '--most-mutants', '1'];
    const wrong = await runInProcess('run', path, '--ptx', other, ...one);
    expect(wrong.status).toBe(1);
    expect(wrong.stdout).toMatch(/The kernel itself has \d+ findings?:/);
    writeFileSync(other, smallKernel.replace('  st.global', '  bar.sync 0;\n  st.global'));
    const args = ['--ptx', other, '--mutants', '--json'];
    const { stdout, status } = await runInProcess('run', path, ...args, '-');
    expect(status).toBe(0);
    const { mutants } = JSON.parse(stdout) as RunDocument & { readonly mutants: MutantResults };
    expect(mutants).toMatchObject({ mutants: 4, instructions: 1, ownFindings: 0 });
    expect(mutants.judged.map(({ line, change, verdict }) => [line, change, verdict])).toEqual([
      [19, 'removed', 'redundant'],
      [19, 'waits for one warp less', 'found'],
      [19, 'before line 16: ld.global.f32', 'redundant'],
      [19, 'after line 20: st.global.f32', 'redundant'],
    ]);
    const some = await runInProcess(
      'run',
      path,
      ...args,
      join(scratch, 'm.json'),
      '--most-mutants',
      '2',
    );
    expect(some.stdout).toContain('Mutants: 2 of 4 mutants of 1 instruction');
    expect(some.stdout).toContain('line 19: bar.sync: removed, before line 16');
  });

  it.each([
    [['--mutants', '--no-races'], '--mutants looks for races'],
    [['--most-mutants', '3'], '--most-mutants counts mutants; give --mutants too'],
  ])('refuses %j', async (args, message) => {
    const path = await prepare('refused-mutants', {}, inputs);
    expect(await refusal('run', path, ...args)).toContain(message);
  });

  it.each([
    [{ entry: 'scal' }, 'launch.json: the PTX has no kernel "scal"; did you mean "scale"?'],
    [{ ptx: 'none.ptx' }, 'none.ptx: cannot open: no such file or folder'],
    [{ tensors: 'none.safetensors' }, 'none.safetensors: cannot open: no such file or folder'],
    [{ outputs: ['y', 'y'] }, 'launch.json: outputs name "y" twice; name it once'],
    [{ parameters: [] }, 'launch.json: the kernel has 3 parameters, and the launch gives 0'],
  ])('refuses %j', async (changes, message) => {
    const path = await prepare('refused', changes, inputs);
    expect(await refusal('run', path)).toContain(message);
  });

  it('names all that is not supported, with lines', async () => {
    const path = await prepare('unsupported', {}, inputs);
    const text = smallKernel.replace('  ret;', '  foo.b32 %r1;\n  bar.foo %r2;\n  ret;');
    const other = join(scratch, 'unsupported.ptx');
    writeFileSync(other, text);
    const message = await refusal('run', path, '--ptx', other);
    expect(message).toMatch(
      /unsupported\.ptx: not supported: line 20: foo\.b32 .*line 21: bar\.foo/,
    );
  });
});
