import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openTensorFile, writeSafetensors } from '../../src/io/index.js';
import type { Tensor } from '../../src/problem/index.js';
import { expectTrace, threadNames } from '../machine/trace/trace-format.js';
import { refusal, runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-emulate-machine-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const fixture = 'fixtures/attention/12-tiny-128x256-d64-bf16.safetensors';
const machine = ['emulate', 'fa4', fixture, '--machine'];

interface MachineReport {
  readonly kind: string;
  readonly machine: Readonly<Record<string, unknown>>;
  readonly findings: readonly {
    readonly kind: string;
    readonly accesses: readonly { readonly who: string; readonly step: number }[];
  }[];
  readonly clocks: number | null;
  readonly counters: { readonly mmaFlops: Readonly<Record<string, number>> };
  readonly roofline: {
    readonly lines: readonly { readonly unit: string; readonly clocks: number }[];
  };
  readonly evidence: readonly string[];
}

async function reportOf(...args: readonly string[]) {
  const { stdout, status } = await runInProcess(...args, '--json', '-');
  return { report: JSON.parse(stdout) as MachineReport, status };
}

/** Writes a problem whose values do not matter. */
async function problemOf(name: string, qkDim: number): Promise<string> {
  const path = join(scratch, `${name}.safetensors`);
  const tensor: Tensor = { format: 'bf16', shape: [1, 8, qkDim], data: new Uint16Array(8 * qkDim) };
  await writeSafetensors(path, { q: tensor, k: tensor, v: tensor });
  return path;
}

describe('flashproof emulate --machine', () => {
  inTurn.each([
    ['one CTA in order', []],
    ['a pair, at random, with a setting', ['--ctas', '2', '--schedule', 'random:7', '--no-races']],
    ['an adversarial schedule', ['--schedule', 'mma late', '--no-races', '--clusters', '1']],
  ])('saves what the model saves: %s', async (name, options) => {
    const set = ['--set', 'rescale.threshold=0'];
    const files = [];
    for (const args of [
      [...machine, ...options],
      ['emulate', 'fa4', fixture, '--threads', '1'],
    ]) {
      const path = join(scratch, `${name} ${files.length}.safetensors`);
      const { status } = await runInProcess(...args, ...set, '--save', path, '--quiet');
      expect(status).toBe(0);
      const file = await openTensorFile(path);
      files.push({ out: await file.sha256('out'), lse: await file.sha256('lse'), file });
    }
    const [own, model] = files;
    expect([own.out, own.lse]).toEqual([model.out, model.lse]);
    expect(own.file.metadata['settings']).toBe(model.file.metadata['settings']);
    expect(JSON.parse(own.file.metadata['machine'])).toMatchObject({
      ctas: name.startsWith('a pair') ? 2 : 1,
    });
    for (const { file } of files) await file.close();
  });

  it('says what follows from a run without findings, and from what', async () => {
    const { stdout, status } = await runInProcess(...machine);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^fa4: out bf16 \[1, 128, 64\] by 1 × 1 CTAs in /);
    expect(stdout).toContain('0 findings: no race, deadlock or misuse; holds for every schedule');
    expect(stdout).toMatch(/exp2 of scores by MUFU +[\d,]+\n/);
    expect(stdout).toMatch(/K → mma +[\d,]+\n/);
    expect(stdout).toContain('Roofline, sm_100');
    expect(stdout).toMatch(/of 512 columns of tensor memory/);
    expect(stdout).toContain('nothing of the execution was compared');
    const blind = await runInProcess(...machine, '--no-races');
    expect(blind.stdout).toContain('races were not looked for, so nothing follows');
  });

  it('counts the same under every schedule, and clocks in a timed one alone', async () => {
    const { report } = await reportOf(...machine, '--no-races');
    const timed = await reportOf(...machine, '--no-races', '--schedule', 'timed');
    expect(report).toMatchObject({
      kind: 'emulate',
      isComplete: true,
      findings: [],
      clocks: null,
      saved: null,
      machine: { ctas: 1, clusters: 1, schedule: 'in-order', races: false, mutant: null },
    });
    expect(timed.report.clocks).toBeGreaterThan(0);
    expect(timed.report.counters.mmaFlops).toEqual(report.counters.mmaFlops);
    const clocksOf = ({ roofline }: MachineReport) =>
      roofline.lines.map(({ unit, clocks }) => [unit, clocks]);
    expect(clocksOf(timed.report)).toEqual(clocksOf(report));
    // Both products over whole tiles: 128 queries, 256 keys, 64 elements.
    const flops = 2 * 128 * 256 * 64;
    expect(report.counters.mmaFlops).toEqual({ S: flops, O: flops });
  });

  it('finds a mutant, names both accesses and exits with 1', async () => {
    const mutant = ['--mutant', 'remove: statistics empty: softmax waits'];
    const path = join(scratch, 'mutant.json');
    const { stdout, status } = await runInProcess(...machine, ...mutant, '--json', path);
    const report = JSON.parse(readFileSync(path, 'utf8')) as MachineReport;
    expect(status).toBe(1);
    expect(report.machine['mutant']).toBe(mutant[1]);
    const race = report.findings.find(({ kind }) => kind === 'race');
    expect(race?.accesses.map(({ who }) => who).sort()).toEqual([
      expect.stringMatching(/^CTA 0 warp \d+ \(softmax 0\)$/),
      expect.stringMatching(/^CTA 0 warp \d+ \(correction\)$/),
    ]);
    expect(stdout).toMatch(/^\d+ findings \(memory model practice, schedule in-order\)/m);
    expect(stdout.match(/^ {2}(race|phase|deadlock) \(cluster/gm)!.length).toBeLessThanOrEqual(20);
    expect(stdout).toMatch(/^ +step \d+ +CTA 0 warp \d+ \(softmax 0\) +α: stored$/m);
  });

  it.each([
    [[], 0, /^0 findings: no race, deadlock or misuse; holds for every schedule \([^)]*\)\n$/],
    [
      ['--mutant', 'remove: statistics empty: softmax waits'],
      1,
      /^\d+ findings \(memory model practice, schedule in-order\); what is computed may [^\n]*\n$/,
    ],
    [
      ['--no-races', '--mutant', 'remove: Q taken: epilogue waits'],
      0,
      /^0 findings: [^\n]*races were not looked for[^\n]*; "Q taken: epilogue waits" is nowhere in this program: the mutant changed nothing\n$/,
    ],
  ] as const)('says its verdict in a line with --quiet: %j', async (options, wanted, line) => {
    const { stdout, status } = await runInProcess(...machine, ...options, '--quiet');
    expect(stdout).toMatch(line);
    expect(status).toBe(wanted);
  });

  it('says when a mutant changed nothing', async () => {
    const { stdout, status } = await runInProcess(
      ...machine,
      '--no-races',
      '--mutant',
      'remove: Q taken: epilogue waits',
    );
    expect(status).toBe(0);
    expect(stdout).toContain('"Q taken: epilogue waits" is nowhere in this program');
  });

  it('needs the fences of the PTX ISA under its memory model', async () => {
    const model = ['--model', 'ptx'];
    const fenced = await reportOf(...machine, ...model, '--isa-fences');
    expect(fenced.report.findings).toEqual([]);
    expect(fenced.report.machine).toMatchObject({ model: 'ptx', isaFences: true });
    const bare = await reportOf(...machine, ...model);
    expect(bare.status).toBe(1);
    expect(bare.report.findings.some(({ kind }) => kind === 'race')).toBe(true);
  });

  it('writes a trace in clocks, or in steps of the schedule that is given', async () => {
    const path = join(scratch, 'trace.json');
    const { stdout } = await runInProcess(...machine, '--no-races', '--trace', path);
    expect(stdout).toContain('ui.perfetto.dev');
    expect(stdout).toContain('schedule timed');
    const timed = expectTrace(readFileSync(path, 'utf8'));
    expect(timed.otherData).toMatchObject({ schedule: 'timed', time: '1 ns is 1 clock' });
    expect([...threadNames(timed).values()]).toContain('warp 12 (MMA)');
    await runInProcess(...machine, '--no-races', '--trace', path, '--schedule', 'in-order', '-q');
    const stepped = expectTrace(readFileSync(path, 'utf8'));
    expect(stepped.otherData).toMatchObject({ schedule: 'in-order', time: '1 ns is 1 step' });
    expect(readdirSync(scratch).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('lists schedules, memory models and mutants', async () => {
    const { stdout } = await runInProcess('emulate', 'list', '--machine');
    expect(stdout).toContain('random:<seed>');
    expect(stdout).toMatch(/^ {2}mma-late$/m);
    expect(stdout).toMatch(/^ {2}ptx-9\.2 /m);
    expect(stdout).toContain('remove: K/V empty: load waits');
  });

  it('refuses what it cannot do, in one line, and writes nothing', async () => {
    const odd = await problemOf('odd', 80);
    const saved = join(scratch, 'never');
    const all = ['--save', `${saved}.safetensors`, '--trace', `${saved}.json`];
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [['emulate', 'fa4', odd, '--machine'], /head dimension 80; the machine runs the program for/],
      [['emulate', 'naive-fp32', fixture, '--machine'], /"naive-fp32" has no program/],
      [[...machine, '--set', 'variant=stale-max'], /runs no variant; leave out/],
      [[...machine, '--set', 'splits=2'], /splits is 2; the machine runs the program for 1/],
      [[...machine, '--set', 'a=1'], /has no setting "a"/],
      [[...machine, '--threads', '2'], /one thread; leave out --threads/],
      [[...machine, '--schedule', 'tmed'], /no schedule "tmed"; the nearest is timed/],
      [[...machine, '--schedule', 'nonsense'], /emulate list --machine names them/],
      [[...machine, '--schedule', 'random:-1'], /give random:<seed>/],
      [[...machine, '--schedule', 'random'], /give random:<seed>/],
      [[...machine, '--model', 'ptx9.2'], /no memory model "ptx9.2"; the nearest is ptx-9\.2/],
      [
        [...machine, '--mutant', 'remove: Q ful: MMA waits'],
        /nearest is "remove: Q full: MMA waits"/,
      ],
      [
        [...machine, '--mutant', 'other CTA alone: S full: MMA commits'],
        /one in pairs of CTAs only; add --ctas 2/,
      ],
      [[...machine, '--ctas', '3'], /give 1 or 2/],
      [[...machine, '--clusters', '0'], /whole number from 1/],
    ];
    for (const [args, message] of cases) {
      const words = await refusal(...args, ...all);
      expect(words).toMatch(message);
      expect(words).not.toContain('\n');
    }
    expect(await refusal(...machine, '--trace', join(scratch, 'no/f.json'))).toMatch(
      /does not exist/,
    );
    expect(existsSync(`${saved}.safetensors`) || existsSync(`${saved}.json`)).toBe(false);
  });

  it.each([
    ...[['--ctas', '1'], ['--clusters', '2'], ['--schedule', 'timed'], ['--no-races']],
    ...[['--model', 'ptx'], ['--isa-fences'], ['--mutant', 'x'], ['--trace', 't.json']],
  ])('refuses %s without --machine', async (...option) => {
    const words = await refusal('emulate', 'fa4', fixture, ...option);
    expect(words).toBe(`${option[0]} is about the emulated machine; add --machine`);
  });
});
