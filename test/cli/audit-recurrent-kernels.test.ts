import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emulateRecurrence, findRecurrentModel } from '../../kernels/index.js';
import { randomValues } from '../../properties/problems/values.js';
import { writeRecurrence } from '../../src/io/index.js';
import type { RecurrentProblem } from '../../src/problem/index.js';
import type { RecurrentReport } from '../../src/report/json/index.js';
import { validateFileReport } from '../../src/report/validation/index.js';
import { mamba2Problem } from '../setup/mamba2-problems.js';
import { tensor } from '../setup/problems.js';
import { refusal, runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-audit-recurrent-kernels-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const at = (name: string) => join(scratch, `${name}.safetensors`);

const softmax = 'fixtures/attention/12-tiny-128x256-d64-bf16.safetensors';
/** Three chunks of 64 tokens; packed sequences. Both have dO. */
const [long, packed] = ['long', 'packed'];

/** A gated delta rule with keys of length 1 or so, and its dO. */
async function writeDelta(name: string, lengths: readonly number[]): Promise<void> {
  const random = randomValues(7);
  const tokens = lengths.reduce((sum, length) => sum + length, 0);
  const vectors = (heads: number, scale: number) =>
    tensor('bf16', [1, tokens, heads, 16], () => scale * random.normal());
  const ends = lengths.map((_, i) => lengths.slice(0, i + 1).reduce((sum, one) => sum + one, 0));
  const problem: RecurrentProblem = {
    family: 'gated-delta',
    q: vectors(1, 1),
    k: vectors(1, 0.25),
    v: vectors(2, 1),
    g: tensor('fp32', [1, tokens, 2], () => -0.02 * random.uniform()),
    beta: tensor('bf16', [1, tokens, 2], random.uniform),
    ...(lengths.length > 1 && { cuSeqlens: [0, ...ends] }),
  };
  await writeRecurrence(at(name), { problem, gradients: { dout: vectors(2, 1) } });
}
beforeAll(async () => {
  await writeDelta(long, [192]);
  await writeDelta(packed, [37, 64, 5]);
});

const protocolKernel = fileURLToPath(new URL('recurrent-protocol-kernel.mjs', import.meta.url));
const live = (fault: string) => ['--exec', `"${process.execPath}" "${protocolKernel}" ${fault}`];

async function audited(path: string, ...options: readonly string[]) {
  const { status, stdout } = await runInProcess('audit', path, ...options, '--json', '-');
  const report = JSON.parse(stdout) as RecurrentReport;
  await validateFileReport(report);
  return { status, report };
}

const namesOf = ({ quantities }: RecurrentReport) => quantities.map(({ name }) => name);

describe('an audit of a model of linear attention', () => {
  it('judges its output, its state and, beside dO, its gradients', async () => {
    const { status, report } = await audited(
      at(packed),
      '--kernel',
      'chunked',
      '--set',
      'chunk=32',
    );
    expect(report.verdict.sentence).toMatch(/^PASS: /);
    expect(status).toBe(0);
    expect(namesOf(report)).toEqual([...['out', 'final_state', 'dq', 'dk', 'dv', 'dg', 'dbeta']]);
    expect(report.arithmetic).toBe('chunks of 32 tokens, intermediates in bf16, state in fp32');
    expect(report.inputs.command).toBe(
      `flashproof audit ${at(packed)} --kernel chunked --set chunk=32`,
    );
    const sources = report.inputs.outputs.map(({ name, path }) => [name, path !== null]);
    expect(sources).toContainEqual(['dout', true]);
    expect(sources).toContainEqual(['dq', false]);
    expect(report.verdict.notes).toEqual([]);
  });

  it('judges a model by its own form, gradients of delta writes among them', async () => {
    const { status, report } = await audited(at(packed), '--kernel', 'naive-recurrent');
    expect(status).toBe(0);
    expect(report.arithmetic).toBe('token by token, state in fp32');
    expect(report.quantities.map(({ name }) => name)).toContain('dbeta');
  });

  it('names the bug of a variant, with its place', async () => {
    const variant = 'variant=state-left-out-of-second-chunk';
    const { status, report } = await audited(
      ...([at(long), '--kernel', 'chunked', '--ignore', 'dout', '--set', variant] as const),
    );
    expect(status).toBe(1);
    expect(report.verdict.sentence).toBe(
      'FAIL: delta writes of the second chunk lack the state before it.',
    );
    expect(namesOf(report)).toEqual(['out', 'final_state']);
    const [worst] = report.quantities[0].structure.filter(({ test }) => test === 'chunk');
    expect(worst).toMatchObject({ scope: 'tile', firstRow: 64, lastRow: 127 });
  });

  it('judges Mamba-2, and says what is not judged beside a gate', async () => {
    const problem = mamba2Problem({ seed: 5, lengths: [20, 9] });
    const dout = tensor('bf16', problem.v.shape, (i) => Math.sin(i));
    await writeRecurrence(at('mamba2'), { problem, gradients: { dout } });
    const { status, report } = await audited(at('mamba2'), '--kernel', 'chunked');
    expect(status).toBe(0);
    expect(namesOf(report)).toEqual(['out', 'final_states']);
    expect(report.verdict.notes).toEqual([
      'dC, dB, dx, dinitial_states, ddt, dA, dD and ddt_bias are not judged, since gradients beside a gate z are not judged',
    ]);
    const wrong = await audited(
      ...([at('mamba2'), '--kernel', 'chunked', '--set', 'variant=dt-bias-missing'] as const),
    );
    expect(wrong.report.verdict.status).toBe('FAIL');
  });

  it.each([
    [
      ['--kernel', 'fa4'],
      /^no kernel model of linear attention "fa4"; there are naive-recurrent, chunked$/,
    ],
    [['--kernel', 'chunked', '--set', 'degree=3'], /has no setting "degree"; it has chunk/],
    [
      ['--kernel', 'chunked', '--set', 'variant=dt-bias-missing'],
      /^no kernel can have the bug dt-bias-missing on this problem; leave out variant/,
    ],
    [
      ['--kernel', 'chunked', '--set', 'variant=none'],
      /^no bug of kernels of linear attention "none"/,
    ],
    [
      ['--kernel', 'chunked', '--premise', 'chunk=32'],
      /--premise changes .* chunked says all of itself/,
    ],
    [['--kernel', 'chunked', '--as', 'fla'], /--kernel judges its output by its own arithmetic/],
    [
      ['--kernel', 'chunked', '--final-state', ':a'],
      /^--final-state is of results in files; leave/,
    ],
    [
      ['--exec', 'true', '--results', 'chunk'],
      /^--results is of results in files; leave out --exec/,
    ],
    [['--exec', 'true', '--dg', ':dg'], /^--dg is of results in files/],
  ] as const)('is refused in a line: %j', async (options, message) => {
    const line = await refusal('audit', at(packed), ...options);
    expect(line).toMatch(message);
    expect(line).not.toContain('\n');
  });

  it('is refused beside softmax attention', async () => {
    expect(await refusal('audit', softmax, '--kernel', 'chunked')).toMatch(
      /: chunked is a model of linear attention, and the file's metadata has no family; give --family/,
    );
  });
});

describe('a sample of heads', () => {
  const rows = (...options: string[]) => ['--rows', '100', '--seed', '3', ...options];
  /** A kernel that is wrong on one of eight heads of q and k. */
  async function writeWrong(name: string, wrongHead: number): Promise<void> {
    const random = randomValues(3);
    const vectors = (heads: number) => tensor('bf16', [1, 40, heads, 8], random.normal);
    const problem: RecurrentProblem = {
      family: 'retention',
      q: vectors(8),
      k: vectors(8),
      v: vectors(16),
    };
    const model = findRecurrentModel('naive-recurrent')!;
    const { out, final_state } = emulateRecurrence(problem, model.arithmetic(problem));
    const data = out!.data.slice();
    // The sign of an element of token 5, of the first of two value heads.
    data[(5 * 16 + 2 * wrongHead) * 8] ^= 0x8000;
    await writeRecurrence(at(name), {
      problem,
      results: { out: { ...out!, data }, final_state: final_state! },
    });
  }

  it('are judged with all of their tokens, and the others are said not to be', async () => {
    await writeWrong('heads', 0);
    const { report } = await audited(at('heads'), ...rows());
    const { sample, verdict } = report;
    expect(sample).toMatchObject({ seed: 3, rows: 160, of: 640, ofKeyHeads: 8 });
    expect(sample!.keyHeads).toHaveLength(2);
    expect(verdict.sentence).toContain('160 sampled rows of 640');
    expect(report.quantities.map(({ elements }) => elements.elements)).toEqual([160 * 8, 4 * 64]);
    const { stdout } = await runInProcess('audit', at('heads'), ...rows());
    expect(stdout.replace(/\s+/g, ' ')).toContain(
      'Not judged 480 of 640 rows, those of the other heads: a fault in one head is in the sample with probability 0.25',
    );
    const junit = await runInProcess('audit', at('heads'), ...rows('--junit', '-'));
    expect(junit.stdout).toContain('Not judged: 480 of 640 rows');
  });

  it('see a fault of their own, at its place, and none of another head', async () => {
    await writeWrong('heads', 0);
    const { sample } = (await audited(at('heads'), ...rows())).report;
    for (let wrong = 0; wrong < 8; wrong++) {
      await writeWrong('wrong', wrong);
      const { status, report } = await audited(at('wrong'), ...rows());
      const isSampled = sample!.keyHeads.includes(wrong);
      expect([wrong, status]).toEqual([wrong, isSampled ? 1 : 0]);
      if (!isSampled) continue;
      expect(report.quantities[0].elements.worst?.at).toMatchObject({ head: 2 * wrong, token: 5 });
      expect(report.verdict.sentence).toContain(`head ${2 * wrong}`);
      expect(report.verdict.diagnosis).toBeNull();
    }
    expect((await audited(at('wrong'), '--rows', 'all')).status).toBe(1);
  });

  it('are heads of all batch entries, sequences and gradients', async () => {
    const { report } = await audited(
      ...([at(packed), '--kernel', 'chunked', '--rows', '1000'] as const),
    );
    // One head of q and k, of which all rows are.
    expect(report.sample).toBeNull();
    const whole = await audited(at('heads'), '--rows', '640');
    expect(whole.report.sample).toBeNull();
  });
});

describe('an audit of a live kernel of linear attention', () => {
  it('judges what it gives, and says what it does not give', async () => {
    const { status, report } = await audited(at(packed), ...live('none'));
    expect(status).toBe(0);
    expect(namesOf(report)).toEqual(['out', 'final_state']);
    expect(report.verdict.notes).toEqual([
      'dq, dk, dv, dg and dbeta are not judged, since the kernel gave none',
    ]);
    const without = await audited(at(packed), ...live('no-state'), '--ignore', 'dout');
    expect(without.report.verdict).toMatchObject({
      sentence: expect.stringMatching(/^PASS: the output stays within/) as string,
      notes: ['final_state is not judged, since the kernel gave none'],
    });
  });

  inTurn('names the chunk that one loses', async () => {
    const { status, report } = await audited(at(long), ...live('lost-chunk'));
    expect(status).toBe(1);
    expect(report.verdict.findings[0].quantity).toBe('out');
    const [worst] = report.quantities[0].structure.filter(({ test }) => test === 'chunk');
    expect(worst).toMatchObject({ scope: 'tile', firstRow: 128, lastRow: 191 });
    const { stdout } = await runInProcess('audit', at(long), ...live('lost-chunk'));
    expect(stdout).toMatch(/^ {2}output chunk, tile .* tokens 128 to 191$/m);
  });

  inTurn.each([
    [
      'misspelt',
      /^FAIL: .* its output cannot be used: it holds "final_stat" and no "final_state"; .*; replay with the problem /,
    ],
    [
      'misshapen',
      /^FAIL: .*: final_state has shape \[2, 3, 16, 16\] in place of \[3, 2, 16, 16\];/,
    ],
    ['crash', /^FAIL: the kernel's process ended with status 3/],
  ])('fails one that gives nothing to judge: %s', async (fault, sentence) => {
    const documents = ['junit', 'html'].map((kind) => join(scratch, `${fault}.${kind}`));
    const [junit, html] = documents;
    const { status, report } = await audited(
      ...([at(packed), ...live(fault), '--junit', junit, '--html', html] as const),
    );
    expect(status).toBe(1);
    expect(report.verdict.sentence).toMatch(sentence);
    expect(report.quantities).toEqual([]);
    expect(report.verdict.findings).toMatchObject([{ quantity: null, test: 'execution' }]);
    expect(readFileSync(junit, 'utf8')).toMatch(/name="execution"[^>]*>\s*<failure/);
    expect(readFileSync(html, 'utf8')).toContain('FAIL');
  });

  it('judges nothing of one that declines, which is no pass', async () => {
    const { status, report } = await audited(at(packed), ...live('decline'));
    expect(status).toBe(1);
    expect(report.verdict).toMatchObject({ status: 'NOT JUDGED', pass: false, findings: [] });
  });

  it('is refused where the command cannot be run', async () => {
    expect(await refusal('audit', at(packed), '--exec', 'no-such-kernel')).toMatch(
      /^--exec is "no-such-kernel", which cannot be run/,
    );
  });
});
