import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';

const here = import.meta.dirname;
const manifest = createRequire(import.meta.url).resolve('flashproof/package.json');
const { bin } = JSON.parse(readFileSync(manifest, 'utf8'));
const commandLine = join(dirname(manifest), bin.flashproof);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-triton-'));
after(() => rmSync(scratch, { recursive: true, force: true }));

function flashproof(...words) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [commandLine, ...words], {
    cwd: scratch,
    encoding: 'utf8',
  });
  return { status, text: `${stdout}${stderr}`.replace(/\s+/g, ' ') };
}

const promises = '--formats bf16 --dims 64 --no-causal --no-window --no-softcap --no-grouped-heads';

for (const target of ['sm_90', 'sm_100', 'sm_120'])
  describe(`the kernel for ${target}`, () => {
    const folder = join(here, 'recorded', target);
    const template = join(folder, 'template.json');

    it('runs without a finding', () => {
      const { status, text } = flashproof('run', join(folder, 'launch.json'));
      assert.match(text, /^PASS under model practice: no race, deadlock or illegal\s+access;/);
      assert.equal(status, 0);
    });

    it('passes an audit', () => {
      const problem = join(folder, 'tensors.safetensors');
      const { status, text } = flashproof('audit', problem, '--launch', template);
      assert.match(text, /^PASS: the output and the LSE/);
      assert.equal(status, 0, text);
    });

    it('obeys the laws of attention', () => {
      const asked = ['--runs', '1', '--seed', process.env.FLASHPROOF_SEED ?? '1'];
      const { status, text } = flashproof(
        'check',
        '--launch',
        template,
        ...promises.split(' '),
        ...asked,
      );
      assert.match(text, /^PASS/);
      assert.equal(status, 0, text);
    });
  });

for (const [format, declared] of [
  ['nvfp4', ['--format', 'q=e2m1x2', '--format', 'k=e2m1x2']],
  ['mxfp8', []],
])
  describe(`the kernel with scores of ${format}`, () => {
    it('passes an audit of the elements with their factors, and fails one without', () => {
      const folder = join(here, 'recorded', `${format}-sm_120`);
      const tensors = join(folder, 'tensors.safetensors');
      const saved = join(scratch, `${format}.safetensors`);
      const run = flashproof('run', join(folder, 'launch.json'), '--save', saved);
      assert.match(run.text, /^PASS under model practice.* Evidence for sm_120: .*MMA-Sim/);
      const outputs = ['--output', `${saved}:o`, '--lse', `${saved}:lse`];
      const { status, text } = flashproof('audit', tensors, ...declared, ...outputs);
      assert.match(text, /^PASS: the output and the LSE .* q_block_scale, k_block_scale/);
      assert.equal(status, 0, text);
      // Values with the factors of the first row for every row.
      const bytes = readFileSync(tensors);
      const start = 8 + Number(bytes.readBigUInt64LE(0));
      const { q_block_scale: factors } = JSON.parse(bytes.toString('utf8', 8, start));
      const [first, end] = factors.data_offsets.map((offset) => start + offset);
      const perRow = factors.shape.at(-1);
      for (let at = first + perRow; at < end; at += perRow)
        bytes.copy(bytes, at, first, first + perRow);
      const wrong = join(scratch, `${format}-wrong.safetensors`);
      writeFileSync(wrong, bytes);
      const failed = flashproof('audit', wrong, ...declared, ...outputs);
      assert.match(failed.text, /^FAIL/);
      assert.equal(failed.status, 1);
    });
  });

/** A copy of a recorded kernel without its n-th barrier. */
function withoutBarrier(target, n) {
  const folder = join(scratch, `${target}-${n}`);
  cpSync(join(here, 'recorded', target), folder, { recursive: true });
  const path = join(folder, 'kernel.ptx');
  let count = 0;
  const lines = readFileSync(path, 'utf8').split('\n');
  writeFileSync(
    path,
    lines.filter((line) => !/^\tbar\.sync/.test(line) || ++count !== n).join('\n'),
  );
  return folder;
}

describe('a kernel without one of its barriers', () => {
  it('is found where its numbers are right', () => {
    const folder = withoutBarrier('sm_100', 1);
    const problem = join(folder, 'tensors.safetensors');
    const { status, text } = flashproof(
      'audit',
      problem,
      '--launch',
      join(folder, 'template.json'),
    );
    assert.match(
      text,
      /^FAIL: the compiled kernel has a finding, race: .* its numbers alone: PASS/,
    );
    assert.equal(status, 1);
  });

  it('is found where the ISA asks for it and an H200 does not', () => {
    const folder = withoutBarrier('sm_90', 2);
    const launch = join(folder, 'launch.json');
    const byIsa = flashproof('run', launch, '--model', 'ptx');
    assert.match(byIsa.text, /race .*shared memory.* wgmma\.mma_async/);
    assert.equal(byIsa.status, 1);
    assert.match(flashproof('run', launch).text, /^PASS under model practice/);
  });

  it('is found where MMAs read tensor memory', () => {
    const folder = withoutBarrier('sm_100', 8);
    const { status, text } = flashproof('run', join(folder, 'launch.json'));
    assert.match(text, /race .*tensor memory/);
    assert.equal(status, 1);
  });
});

const python = process.env.PYTHON ?? 'python3';
const canImport = (modules) => spawnSync(python, ['-c', `import ${modules}`]).status === 0;

describe('the recorder', () => {
  it(
    'writes the same launch files from the same PTX',
    { skip: !canImport('flashproof') && 'needs the Python package: pip install ../../python' },
    () => {
      const { status, stderr } = spawnSync(python, ['-m', 'unittest'], {
        cwd: here,
        encoding: 'utf8',
      });
      assert.equal(status, 0, stderr);
    },
  );

  const missing =
    !canImport('triton, numpy, flashproof') &&
    'needs Triton, numpy and the Python package: pip install -r requirements.txt -e ../../python';
  it('records what Triton compiles without a GPU', { skip: missing }, () => {
    const folder = join(scratch, 'anew');
    const words = [join(here, 'attention.py'), '--target', 'sm_100', '--to', folder];
    const { status, stderr } = spawnSync(python, words, { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    const problem = join(folder, 'tensors.safetensors');
    const audited = flashproof('audit', problem, '--launch', join(folder, 'template.json'));
    assert.equal(audited.status, 0, audited.text);
  });
});
