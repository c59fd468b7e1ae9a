import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';

const folder = mkdtempSync(join(tmpdir(), 'decode-chain-'));
after(() => rmSync(folder, { recursive: true }));
const shell = process.platform === 'win32';

/** Records a step of a script with a fault, and judges it: the exit status, and the report. */
function judge(script, fault) {
  const chain = join(folder, 'chain.safetensors');
  const json = join(folder, 'report.json');
  const recorded = spawnSync('python3', [script, chain, ...fault], {
    encoding: 'utf8',
    shell,
  });
  assert.equal(recorded.status, 0, recorded.stderr);
  const words = ['flashproof', 'audit', chain, '--json', json];
  const { status, stderr } = spawnSync('npx', words, { encoding: 'utf8', shell });
  assert.ok(status === 0 || status === 1, stderr);
  return { status, report: JSON.parse(readFileSync(json, 'utf8')) };
}

/** Each fault with the link or the hand-over that it is found in, and its cause. */
const faults = [
  ['prologue=pairs', 'prologue', 'rope-interleaved'],
  ['write=slot', 'write', 'slot-shifted'],
  ['selection=relu', 'selection', 'activation-missing'],
  ['attention=group', 'attention', 'wrong-kv-head'],
  ['attention=early', 'write.key_cache=attention.k', 'link-input-differs'],
  ['merge=base', 'merge', 'base-2'],
];

describe('a decode step, link by link', () => {
  it('passes', () => {
    const { status, report } = judge('record.py', []);
    assert.equal(status, 0, report.verdict.sentence);
    assert.equal(report.links.length, 5);
  });

  for (const [fault, quantity, cause] of faults)
    it(`is not right with ${fault}, and the report says so`, () => {
      const { status, report } = judge('record.py', [fault]);
      assert.equal(status, 1);
      assert.equal(report.verdict.findings[0].quantity, quantity);
      assert.equal(report.verdict.diagnosis.id, cause, report.verdict.sentence);
    });
});

const hasTorch = spawnSync('python3', ['-c', 'import torch'], { shell: false }).status === 0;

/** Faults of the step on PyTorch, and the link that each is found in. */
const torchFaults = [
  ['norm_rope=next', 'prologue', 'rope-position'],
  ['reshape_and_cache=inverse', 'cache-write', 'factor-multiplied'],
  ['top_keys=pages', 'selection', 'unexplained'],
];

describe('on PyTorch', { skip: hasTorch ? false : 'PyTorch is not installed' }, () => {
  it('passes', () => {
    const { status, report } = judge('torch_step.py', []);
    assert.equal(status, 0, report.verdict.sentence);
    assert.equal(report.links.length, 4);
  });

  for (const [fault, quantity, cause] of torchFaults)
    it(`is not right with ${fault}, and the report says so`, () => {
      const { status, report } = judge('torch_step.py', [fault]);
      assert.equal(status, 1);
      assert.equal(report.verdict.findings[0].quantity, quantity);
      assert.equal(report.verdict.diagnosis.id, cause, report.verdict.sentence);
    });
});
