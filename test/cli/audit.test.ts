import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTensorFile, writeSafetensors } from '../../src/io/index.js';
import { writeNpy } from '../io/write-npy.js';
import { writeNpz } from '../io/write-npz.js';
import type { Tensor } from '../../src/problem/index.js';
import { validateReport } from '../../src/report/validation/index.js';
import type { AuditReport } from '../../src/report/json/audit-report.js';
import { decode, encode } from '../audit/damage.js';
import { builtDist } from '../setup/built-dist.js';
import { turns } from '../setup/turns.js';
import { refusal, runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);

const root = fileURLToPath(new URL('../../', import.meta.url));
const fixture = 'fixtures/attention/03-sink-256x256-d64-bf16-causal.safetensors';

const audit = (...args: string[]) => runInProcess('audit', ...args);

/** The first rows of a tensor of one head: with a causal mask, those of the first queries and keys. */
function firstRows({ format, shape, data }: Tensor, count: number): Tensor {
  const [heads, , ...rest] = shape;
  if (heads !== 1) throw new Error('one head');
  const width = rest.reduce((product, size) => product * size, 1);
  return { format, shape: [1, count, ...rest], data: data.slice(0, count * width) };
}

/** Heads and rows exchanged: the layout of kernels that keep heads innermost. */
function transpose(tensor: Tensor): Tensor {
  const [heads, rows, dim] = tensor.shape as [number, number, number];
  const from = decode(tensor);
  const to = new Float64Array(from.length);
  for (let h = 0; h < heads; h++)
    for (let i = 0; i < rows; i++)
      for (let c = 0; c < dim; c++) to[(i * heads + h) * dim + c] = from[(h * rows + i) * dim + c];
  return encode(to, tensor.format, [rows, heads, dim]);
}

describe('flashproof audit', () => {
  let folder = '';
  let main = '';
  /** The captured problem cut to its first rows, and what kernels made of them: judged sooner. */
  let small = '';
  /** The program as users run it. */
  const spawned = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, NO_COLOR: '1' },
    });
    return { status, stdout, stderr };
  };
  const tensors: Record<string, Tensor> = {};
  beforeAll(async () => {
    main = join(await builtDist(), 'src/cli/main.js');
    folder = await mkdtemp(join(tmpdir(), 'flashproof-test-'));
    small = join(folder, 'small.safetensors');
    const file = await openTensorFile(join(root, fixture));
    const outputs = ['torch_cudnn.out', 'torch_cudnn.lse', 'fa4.out', 'fa4.lse'];
    for (const name of ['q', 'k', 'v', ...outputs])
      tensors[name] = firstRows(await file.read(name), 48);
    await file.close();
    await writeSafetensors(small, tensors, { causal: 'true', scale: '0.125' });
    for (const name of ['out', 'lse']) tensors[name] = tensors[`torch_cudnn.${name}`];
  });
  afterAll(() => rm(folder, { recursive: true }));

  const named = (...names: string[]) =>
    Object.fromEntries(names.map((name) => [name, tensors[name]]));

  inTurn('sets other outputs beside the judged one, whose verdict alone counts', async () => {
    const compared = [
      '--compare',
      'fa4=:fa4.out',
      '--compare',
      ':v',
      '--compare',
      'again=:torch_cudnn.out',
    ];
    const { status, stdout } = await audit(
      ...[small, '--output', ':torch_cudnn.out', ...compared, '--json', '-'],
    );
    expect(status).toBe(0);
    const report = JSON.parse(stdout) as AuditReport;
    await validateReport(report);
    const { outputs, differences } = report.comparison!;
    expect(outputs.map(({ name, pass }) => [name, pass])).toEqual([
      ['torch_cudnn.out', true],
      ['fa4', true],
      ['v', false],
      ['again', true],
    ]);
    expect(differences.map(({ name, closer }) => [name, closer])).toEqual([
      ['fa4', null],
      ['v', 'torch_cudnn.out'],
      ['again', null],
    ]);
    expect(differences[2]!.differing).toBe(0);
    const many = await audit(
      small,
      small.replace(/small/, './small'),
      '--output',
      ':fa4.out',
      '--compare',
      ':torch_cudnn.out',
      '--json',
      '-',
    );
    const [one] = (JSON.parse(many.stdout) as { files: { report: AuditReport }[] }).files;
    expect(one!.report.comparison!.differences).toHaveLength(1);
    const other = ['--compare', `x=${small}:fa4.out`];
    expect(await refusal('audit', small, 'b.npz', ...other)).toMatch(
      /^--compare is .* one file for/,
    );
  });

  inTurn('passes a real kernel: verdict first, exit status 0', () => {
    const {
      status,
      stdout,
      stderr: written,
    } = spawned('audit', fixture, '--output', ':torch_cudnn.out', '--lse', ':torch_cudnn.lse');
    // Progress, which a busy machine gets to see.
    const stderr = written.replace(/^audit: \d+ %, \d+ s left\n/gm, '');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^PASS: the output and the LSE/);
    expect(stdout).not.toContain('\x1b[');
  });

  inTurn('fails with exit status 1 when the mask is another, and says what is off', () => {
    const { status, stdout } = spawned(
      'audit',
      small,
      '--output',
      ':torch_cudnn.out',
      '--no-causal',
      '--quiet',
    );
    expect(status).toBe(1);
    expect(stdout).toMatch(/^FAIL: .*\n$/);
  });

  inTurn('judges "out" and "lse" of the problem file when no output is named', async () => {
    const path = join(folder, 'dump.safetensors');
    await writeSafetensors(path, named('q', 'k', 'v', 'out', 'lse'), { causal: 'true' });
    const { status, stdout } = await audit(path, '--quiet');
    expect(stdout).toMatch(/^PASS: the output and the LSE/);
    expect(status).toBe(0);
  });

  inTurn('names inputs of the problem file that it does not use', async () => {
    const path = join(folder, 'masked.safetensors');
    const given = named('q', 'k', 'v', 'out', 'lse');
    await writeSafetensors(
      path,
      { ...given, attn_mask: given['lse'], dq: given['q'], unheard: given['lse'] },
      {
        causal: 'true',
        dropout_p: '0.1',
      },
    );
    const { stdout, status } = await audit(path, '--quiet');
    expect(stdout).toMatch(
      /^PASS: .*; judged without the file's attn_mask and metadata dropout_p\.\n$/,
    );
    expect(status).toBe(0);
    const text = (await audit(path)).stdout;
    expect(text).toMatch(
      /^Not used .*attn_mask, metadata dropout_p: attention is judged without them$/m,
    );
    expect(text).toMatch(/dq: these gradients are not judged$/m);
    const report = JSON.parse((await audit(path, '--json', '-')).stdout) as AuditReport;
    expect(report.warnings.map(({ kind }) => kind)).toEqual([
      'unused-input',
      'unused-gradient',
      'unknown-tensor',
    ]);
    expect((await audit(path, '--junit', '-')).stdout).toContain(
      'Not used: attn_mask, metadata dropout_p: attention is judged without them.',
    );
    expect((await audit(path, '--html', '-')).stdout).toMatch(
      /<p class="warning">Not used: attn_mask, metadata dropout_p: /,
    );
    const { stderr } = await runInProcess('bound', path, '--quiet');
    expect(stderr).toMatch(
      /^warning: .*: not used: attn_mask, metadata dropout_p; .*\nwarning: .*: not used: unheard; .*\n$/,
    );
  });

  inTurn('reads an npz, a folder of npy and the other layout alike', async () => {
    const npz = join(folder, 'dump.npz');
    await writeNpz(npz, named('q', 'k', 'v', 'out', 'lse'));
    expect((await audit(npz, '--causal')).status).toBe(0);

    const npy = join(folder, 'npy');
    await mkdir(npy);
    for (const name of ['q', 'k', 'v', 'out', 'lse'])
      await writeNpy(join(npy, `${name}.npy`), tensors[name]);
    await writeFile(join(npy, 'metadata.json'), JSON.stringify({ causal: true }));
    expect((await audit(npy)).status).toBe(0);
    expect((await audit(npy, '--output', join(npy, 'out.npy'))).status).toBe(0);

    const bshd = join(folder, 'bshd.safetensors');
    const turned = Object.entries(named('q', 'k', 'v', 'out')).map(
      ([name, tensor]) => [name, transpose(tensor)] as const,
    );
    await writeSafetensors(bshd, Object.fromEntries(turned), { causal: '1', layout: 'bshd' });
    expect((await audit(bshd)).stdout).toMatch(/^PASS/);
    expect((await audit(bshd, '--layout', 'bhsd')).status).toBe(1);
  });

  inTurn('writes a report that fits the schema, to a file or to standard output', async () => {
    const path = join(folder, 'report.json');
    const args = [small, '--output', ':fa4.out', '--lse', ':fa4.lse'];
    expect((await audit(...args, '--json', path)).stdout).toMatch(/^PASS/);
    const report = JSON.parse(await readFile(path, 'utf8')) as AuditReport;
    await validateReport(report);
    expect(report.inputs.outputs[0]).toMatchObject({ tensor: 'fa4.out', format: 'bf16' });
    const { stdout } = await audit(...args, '--json', '-');
    await validateReport(JSON.parse(stdout));
    expect((await audit(...args, '--junit', '-')).stdout).toMatch(/^<\?xml/);
  });

  inTurn('takes the settings from flags before metadata', async () => {
    const args = [small, '--output', ':torch_cudnn.out', '--json', '-'];
    const problem = async (...more: string[]) =>
      (JSON.parse((await audit(...args, ...more)).stdout) as AuditReport).problem;
    expect(await problem()).toMatchObject({
      scale: 0.125,
      causal: true,
      window: null,
      softcap: null,
    });
    expect(
      await problem('--scale', '-0.5', '--no-causal', '--window', '16,-1', '--softcap', '30'),
    ).toMatchObject({
      scale: -0.5,
      causal: false,
      window: { left: 16, right: -1 },
      softcap: 30,
    });
  });

  const wrong: readonly [what: string, args: string[], message: RegExp][] = [
    ['a missing file', ['no-such-file.safetensors'], /no such file/],
    ['no output', [fixture], /no tensor "out".*--output/],
    [
      'a misspelt tensor',
      [fixture, '--output', ':torch_cudn.out'],
      /did you mean "torch_cudnn.out"/,
    ],
    ['an output of the wrong shape', [fixture, '--output', ':fa4.lse'], /has shape \[1, 256\]/],
    ['a scale that is no number', [fixture, '--output', ':q', '--scale', 'half'], /finite number/],
    ['a window of one number', [fixture, '--output', ':q', '--window', '3'], /left,right/],
    ['a negative softcap', [fixture, '--output', ':q', '--softcap', '-3'], /positive/],
    ['an unknown layout', [fixture, '--output', ':q', '--layout', 'sbhd'], /bhsd or bshd/],
    ['an unknown format', [fixture, '--output', ':q', '--format', 'q=fp12'], /one of fp64/],
    ['an unknown flag', [fixture, '--outptu', ':q'], /[Dd]id you mean --output/],
    [
      'an unknown kernel model',
      [fixture, '--kernel', 'fa5'],
      /^no kernel model "fa5"; did you mean fa4; there are (.+, )?fa4(, .+)?, naive-fp32, naive-input/,
    ],
    ['both --exec and --output', [fixture, '--output', ':q', '--exec', 'true'], /leave out/],
  ];
  it.each(wrong)('refuses %s', async (_, args, message) => {
    expect(await refusal('audit', ...args)).toMatch(message);
  });

  inTurn.each([wrong[0], wrong[9]])(
    'answers %s with one line and exit status 2',
    (_, args, message) => {
      const { status, stdout, stderr } = spawned('audit', ...args);
      expect(stdout).toBe('');
      expect(stderr).toMatch(message);
      expect(stderr).not.toMatch(/\n\s+at /);
      expect(status).toBe(2);
    },
  );

  inTurn('runs a live kernel, and reports one that breaks, with exit status 1', async () => {
    const script = join(folder, 'kernel.mjs');
    const io = JSON.stringify(join(root, '.vitest/src/io/index.js'));
    await writeFile(
      script,
      `import { createInterface } from 'node:readline';
       import { openTensorFile, writeSafetensors } from ${io};
       for await (const line of createInterface({ input: process.stdin })) {
         const request = JSON.parse(line);
         if (process.argv[2] === 'decline') {
           console.log(JSON.stringify({ id: request.id, ok: false, error: 'dim 64', unsupported: true }));
           continue;
         }
         const answers = await openTensorFile(${JSON.stringify(small)});
         const lse = await answers.read('fa4.lse');
         await writeSafetensors(request.output, { out: await answers.read(process.argv[2]), lse });
         await answers.close();
         console.log(JSON.stringify({ id: request.id, ok: request.causal && request.scale === 0.125 }));
       }`,
    );
    const run = (tensor: string) =>
      audit(small, '--exec', `"${process.execPath}" "${script}" ${tensor}`, '--json', '-');
    const good = await run('fa4.out');
    expect(good.status).toBe(0);
    await validateReport(JSON.parse(good.stdout));
    const declined = await run('decline');
    expect(declined.status).toBe(1);
    const unjudged = JSON.parse(declined.stdout) as AuditReport;
    await validateReport(unjudged);
    expect(unjudged.verdict).toMatchObject({ pass: false, judged: false, findings: [] });
    expect(unjudged.verdict.sentence).toMatch(
      /^NOT JUDGED: the kernel's process declined the problem: .*dim 64.*; replay with the problem /,
    );
    const misshapen = await run('fa4.lse');
    expect(misshapen.status).toBe(1);
    const report = JSON.parse(misshapen.stdout) as AuditReport;
    await validateReport(report);
    expect(report.verdict.sentence).toMatch(/its output cannot be used: the output has shape/);
  });

  inTurn('leaves a closed pipe without a word', () => {
    const { stderr } = spawnSync(
      'sh',
      ['-c', `"${process.execPath}" "${main}" audit "${small}" --output :fa4.out | head -1`],
      { cwd: root, encoding: 'utf8' },
    );
    expect(stderr).toBe('');
  });
});
