import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { recurrentLawIds } from '../../properties/index.js';
import type { CheckList } from '../../src/cli/check/publish.js';
import type { CheckReport } from '../../src/report/json/check/index.js';
import { validateCheckReport } from '../../src/report/validation/index.js';
import { testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { refusal, runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);
const scratch = mkdtempSync(join(tmpdir(), 'flashproof-check-recurrent-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const recurrent = ['check', '--contract', 'recurrent'];
const kernel = ['--kernel', 'chunked'];

async function reported(...options: readonly string[]) {
  const saved = ['--save-dir', join(scratch, 'failures')];
  const { status, stdout } = await runInProcess(...recurrent, ...options, ...saved, '--json', '-');
  const report = JSON.parse(stdout) as CheckReport;
  await validateCheckReport(report);
  return { status, report };
}

describe('flashproof check --contract recurrent, an emulated kernel', () => {
  // A check that outlives its test would write into the next one's output.
  inTurn(
    'passes one that computes linear attention, with its gradients',
    { timeout: 300_000 },
    async () => {
      const model = 'naive-recurrent';
      const { status, report } = await reported(
        ...['--kernel', model, '--runs', '2', '--seed', String(testSeed)],
      );
      expect(report.verdict.sentence).toMatch(/^PASS: \d+ properties hold/);
      expect(status).toBe(0);
      expect(report).toMatchObject({ contract: 'recurrent', kernel: { model }, outOfTime: false });
      expect(report.properties.map(({ name }) => name)).toEqual(recurrentLawIds);
      const tried = report.properties.filter(({ result }) => result === 'holds');
      expect(tried.map(({ name }) => name)).toContain('gradients-within-bound');
    },
  );

  inTurn('finds a bug, and simplifies its problem', async () => {
    const { status, report } = await reported(
      ...['--kernel', 'naive-recurrent', '--variant', 'beta-missing', '--seed', '3'],
      ...['--property', 'within-bound,zero-strength', '--runs', '20'],
    );
    expect(status).toBe(1);
    expect(report.verdict.sentence).toMatch(/^FAIL: 2 of 2 properties are violated/);
    const { violation } = report.properties.find(({ name }) => name === 'zero-strength')!;
    expect(violation!.problem).toMatchObject({ tokens: 1, keyHeads: 1, valueHeads: 1 });
    expect(violation!.simplifications).toBeGreaterThan(0);
  });

  it('tries the properties and regimes that are named, the same by the same seed', async () => {
    const asked = [
      ...['--kernel', 'chunked', '--property', 'determinism', '--property', 'causality'],
      ...['--regime', 'one-token,chunk-edges', '--runs', '3', '--seed', '11'],
    ];
    const untimed = ({ created: _, seconds: __, verdict: ___, ...report }: CheckReport) => ({
      ...report,
      properties: report.properties.map(({ seconds: ____, ...property }) => property),
    });
    const [one, two] = [await reported(...asked), await reported(...asked)];
    expect(one.report.properties.map(({ name }) => name)).toEqual(['determinism', 'causality']);
    expect(untimed(one.report)).toEqual(untimed(two.report));
  });

  it('draws what a file promises, unless a flag says otherwise', async () => {
    const { report } = await reported(
      ...['--kernel', 'naive-recurrent', '--property', 'determinism', '--runs', '3'],
      ...promising('file', { families: ['gla'], dims: [4], formats: ['fp16'], gradients: false }),
      ...['--formats', 'bf16', '--promise', 'recall=none'],
    );
    expect(report.promises).toMatchObject({ families: ['gla'], dims: [4], formats: ['bf16'] });
    expect(report.promises).toMatchObject({ gradients: false, deterministic: true });
  });

  it('stops when the time is up, and says so', async () => {
    const { report } = await reported('--kernel', 'chunked', '--seconds', '0.05');
    expect(report.outOfTime).toBe(true);
    expect(report.verdict.sentence).toContain('the time was up');
  });

  it('writes text and JUnit XML', async () => {
    const junit = join(scratch, 'report.xml');
    const { stdout } = await runInProcess(
      ...[...recurrent, '--kernel', 'naive-recurrent', '--variant', 'decay-missing'],
      ...['--property', 'within-bound', '--runs', '30'],
      ...['--seed', '1', '--junit', junit, '--save-dir', join(scratch, 'failures')],
    );
    expect(stdout).toMatch(/^FAIL: 1 of 1 property is violated/);
    expect(stdout).toMatch(
      /^ {2}Problem +(simple-gla|gla|gated-delta|kda|retention), .*\d+ tokens?,/m,
    );
    const xml = readFileSync(junit, 'utf8');
    expect(xml).toContain('failures="1"');
    expect(xml).toMatch(/Problem: (simple-gla|gla|gated-delta|kda|retention), /);
  });

  it('lists properties and regimes', async () => {
    const { stdout } = await runInProcess(...recurrent, '--list', '--json', '-');
    const { properties, regimes, features } = JSON.parse(stdout) as CheckList;
    expect(properties.map(({ name }) => name)).toEqual(recurrentLawIds);
    expect(regimes.map(({ name }) => name)).toContain('steep-gates');
    expect(features).toEqual([]);
    const text = (await runInProcess(...recurrent, '--list')).stdout;
    expect(text).toContain('  token-by-token\n');
    expect(text).not.toContain('Features');
  });
});

/** A file of promises in the scratch folder. */
function promising(name: string, promises: object): readonly string[] {
  const path = join(scratch, `${name}.json`);
  writeFileSync(path, JSON.stringify(promises));
  return ['--promises', path];
}

const script = fileURLToPath(new URL('recurrent-protocol-kernel.mjs', import.meta.url));

/** The options of a check of the script with one fault, on small problems. */
function live(fault: string): string[] {
  return [
    ...['--exec', `"${process.execPath}" "${script}" ${fault}`, '--timeout', '60'],
    ...promising('live', { formats: ['bf16'], dims: [4], chunk: 4 }),
  ];
}

/** What a report says whatever the time, the order and the number of shards. */
function found({ created: _, seconds: __, shards: ___, verdict, ...report }: CheckReport) {
  return {
    ...report,
    pass: verdict.pass,
    properties: report.properties.map(({ seconds: ____, violation, ...property }) => ({
      ...property,
      violation: violation && { ...violation, seconds: 0, saved: null, replay: null },
    })),
  };
}

describe('settings of an emulated kernel of linear attention', () => {
  const asked = ['--property', 'configurations,within-bound', '--runs', '4', '--seed', '4'];
  const small = promising('small', { dims: [4], formats: ['bf16'] });

  inTurn('are other configurations, in which it is right too', async () => {
    const { status, report } = await reported(...kernel, ...asked, ...small);
    expect(status).toBe(0);
    expect(report.properties.map(({ result }) => result)).toEqual(['holds', 'holds']);
  });

  it('are chosen by --set, and reported; by what they declare it is judged', async () => {
    const { status, report } = await reported(
      ...[...kernel, '--set', 'chunk=8', '--set', 'state=bf16', ...asked, ...small],
    );
    expect(status).toBe(0);
    expect(report.kernel.settings).toEqual({ chunk: '8', state: 'bf16' });
    expect(report.promises).toMatchObject({
      chunk: 8,
      declared: { form: 'chunked', chunk: 8, state: 'bf16' },
    });
  });

  inTurn('do not hide a bug', async () => {
    const { status, report } = await reported(
      ...[...kernel, '--set', 'inverse=substitution', '--variant', 'beta-missing', ...asked],
      ...small,
    );
    expect(status).toBe(1);
    expect(report.properties.map(({ result }) => result)).toEqual(['violated', 'violated']);
    expect(report.properties[0].violation!.statement).toMatch(/^with chunk=\d+, /);
  });
});

describe('a divided check of linear attention', () => {
  const asked = [
    ...['--kernel', 'naive-recurrent', '--variant', 'beta-missing', '--seed', '3', '--runs', '10'],
    ...['--property', 'within-bound,determinism,zero-strength', '--regime', 'one-token'],
  ];

  inTurn(
    'finds what one finds that is not, in shards, merged, and from a journal',
    { timeout: 300_000 },
    async () => {
      const whole = await reported(...asked);
      const parts = [1, 2].map((index) => join(scratch, `part-${index}.json`));
      for (const [i, part] of parts.entries()) {
        const shard = ['--shard', `${i + 1}/2`, '--save-dir', join(scratch, 'failures')];
        await runInProcess(...recurrent, ...asked, ...shard, '--json', part);
      }
      const merged = await runInProcess('merge', ...parts, '--json', '-');
      expect(merged.status).toBe(1);
      const report = JSON.parse(merged.stdout) as CheckReport;
      await validateCheckReport(report);
      expect(report.shards).toEqual({ count: 2, included: [1, 2], outOfTime: [] });
      expect(found(report)).toEqual(found(whole.report));
      expect(report.properties.map(({ result }) => result)).toEqual([
        ...['violated', 'holds', 'violated'],
      ]);
      const journal = ['--journal', join(scratch, 'check.journal')];
      await reported(...asked, ...journal);
      const again = await reported(...asked, ...journal);
      expect(found(again.report)).toEqual(found(whole.report));
    },
  );
});

describe('flashproof check --contract recurrent, a live kernel', () => {
  inTurn(
    'passes one that computes the recurrence, for any family and shape',
    { timeout: 300_000 },
    async () => {
      const { status, report } = await reported(
        ...live('none'),
        ...['--runs', '2', '--seed', String(testSeed)],
      );
      expect(report.verdict.sentence).toMatch(/^PASS: \d+ properties hold/);
      expect(status).toBe(0);
      expect(report.kernel.command).toContain('recurrent-protocol-kernel.mjs');
    },
  );

  const faults: readonly (readonly [fault: string, statement: RegExp])[] = [
    ['no-decay', /final state|output/],
    ['misspelt', /it holds "final_stat" and no "final_state"; call it so, or leave it out$/],
  ];
  inTurn.each(faults)(
    'finds that it does wrong, simplifies, and replays: %s',
    async (fault, words) => {
      const { status, report } = await reported(
        ...live(fault),
        ...['--property', 'within-bound', '--regime', 'one-token', '--runs', '20', '--seed', '2'],
      );
      expect(status).toBe(1);
      const { violation } = report.properties[0];
      expect(violation!.statement).toMatch(words);
      expect(violation!.simplifications).toBeGreaterThan(0);
      expect(violation!.values?.[0]).toMatch(/^q: bf16 \[/);
      const replay = await runInProcess('check', ...violation!.replay!.slice(2), '--quiet');
      expect(replay.status).toBe(1);
      expect(replay.stdout).toContain(violation!.statement);
    },
  );

  it('says of one that gives no gradients which it promised', async () => {
    const { status, report } = await reported(
      ...live('none'),
      ...['--gradients', '--property', 'gradients-within-bound', '--runs', '1', '--seed', '2'],
    );
    expect(status).toBe(1);
    expect(report.properties[0].violation!.statement).toBe('the kernel gave no tensor for dQ (dq)');
  });

  inTurn('fails one that ends before its first answer, and saves the problem', async () => {
    const { status, report } = await reported(...live('crash'), '--seed', '2');
    expect(status).toBe(1);
    expect(report.execution).toMatch(/ended with status 3 before its first answer.*execution-2/);
  });

  it('judges none that declines all', async () => {
    expect(await refusal(...recurrent, ...live('decline'), '--runs', '1')).toMatch(
      /^nothing was checked: .*declined the problem: "no such shape"/,
    );
  });
});

describe('a check of Mamba-2', () => {
  const own = promising('mamba2', {
    families: ['mamba2'],
    formats: ['bf16'],
    dims: [4],
    chunk: 4,
  });

  inTurn('passes a live kernel of it', { timeout: 300_000 }, async () => {
    const { status, report } = await reported(
      ...[...live('none'), ...own, '--runs', '2', '--seed', String(testSeed)],
    );
    expect(report.verdict.sentence).toMatch(/^PASS: \d+ properties hold/);
    expect(status).toBe(0);
    const holds = report.properties.filter(({ result }) => result === 'holds');
    expect(holds.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['zero-step', 'long-step', 'skip-alone', 'superposition']),
    );
  });

  inTurn.each([
    ['no-skip', 'skip-alone', /for D x of .* with C of 0$/],
    ['no-decay', 'long-step', /^(out|final_states) at .* before the long step of token/],
  ])('finds what a live kernel does wrong, and replays it: %s', async (fault, law, words) => {
    const { status, report } = await reported(
      ...[...live(fault), ...own, '--property', law, '--runs', '20', '--seed', '2'],
    );
    expect(status).toBe(1);
    const { violation } = report.properties[0];
    expect(violation!.statement).toMatch(words);
    expect(violation!.problem).toMatchObject({ family: 'mamba2' });
    const replay = await runInProcess('check', ...violation!.replay!.slice(2), '--quiet');
    expect(replay.status).toBe(1);
    expect(replay.stdout).toContain(violation!.statement);
  });

  it('finds a bug of an emulated one in its gradients, and replays it', async () => {
    const { status, report } = await reported(
      ...['--kernel', 'naive-recurrent', '--variant', 'dt-bias-missing', '--seed', '5', ...own],
      ...['--property', 'gradients-within-bound', '--regime', 'one-token', '--runs', '20'],
    );
    expect(status).toBe(1);
    const { saved, replay } = report.properties[0].violation!;
    expect((await runInProcess('check', ...replay!.slice(2))).status).toBe(1);
    const right = await runInProcess(...recurrent, ...kernel, '--replay', saved!, '--quiet');
    expect(right).toMatchObject({ status: 0, stdout: 'PASS: gradients-within-bound holds.\n' });
  });
});

describe('the saved problem of an emulated kernel', () => {
  it('is replayed, with gradients, as a violation of the bug alone', async () => {
    const { report } = await reported(
      ...['--kernel', 'naive-recurrent', '--variant', 'beta-missing-in-gradients', '--seed', '5'],
      ...['--property', 'gradients-within-bound', '--regime', 'one-token', '--runs', '20'],
    );
    const { saved, replay, statement } = report.properties[0].violation!;
    const again = await runInProcess('check', ...replay!.slice(2));
    expect(again.status).toBe(1);
    expect(again.stdout).toContain(statement);
    expect(again.stdout).toContain('\ndout: ');
    const right = await runInProcess(...recurrent, ...kernel, '--replay', saved!, '--quiet');
    expect(right).toMatchObject({ status: 0, stdout: 'PASS: gradients-within-bound holds.\n' });
  });
});

describe('flashproof check --contract recurrent, refused in a line', () => {
  it.each([
    [
      ['--softcap'],
      /^--softcap is for attention; leave it out of a check with --contract recurrent$/,
    ],
    [['--no-window'], /^--no-window is for attention/],
    [['--as', 'fa4'], /^--as is for attention/],
    [['--shard', '1/2'], /^shards try the problems of one seed; give all of them the same --seed$/],
    [
      ['--threads', '2', '--bail'],
      /^--bail stops at the first violation, which one thread looks for/,
    ],
    [
      ['--set', 'degree=3'],
      /^the chunked model has no setting "degree"; it has chunk, inverse, state$/,
    ],
    [['--set', 'chunk=0'], /^chunk is "0"; give a whole number from 1 to 1024$/],
    [['--set', 'inverse=fast'], /^inverse is "fast"; give substitution, or the rows of a block/],
    [['--features', 'mask'], /^--features is for attention/],
    [
      ['--property', 'padding'],
      /^--property names no property "padding"; flashproof check --contract recurrent --list lists all \d+$/,
    ],
    [['--regime', 'normal'], /^--regime names no regime "normal"; choose from typical/],
    [['--variant', 'causal-one-more'], /^no bug of kernels of linear attention "causal-one-more"/],
    [['--formats', 'e4m3'], /^--formats names no format "e4m3"; choose from bf16, fp16, fp32$/],
    [['--promise', 'recall=bits'], /property recall can be promised as bound, none$/],
    [['--runs', '0'], /--runs/],
    [['--exec', 'true'], /^--kernel and --exec name two kernels/],
  ])('%j', async (options, message) => {
    expect(await refusal(...recurrent, ...kernel, ...options)).toMatch(message);
  });

  it('promises that are none', async () => {
    const promised = (promises: object) =>
      refusal(...recurrent, ...kernel, ...promising('wrong', promises));
    expect(await promised({ families: ['mamba'] })).toMatch(
      /\/families\/0 must be .*"gated-delta"/,
    );
    expect(await promised({ window: true })).toMatch(
      /wrong.json: has "window", which it does not know; it may have families, /,
    );
    expect(await promised({ laws: { padding: 'bits' } })).toMatch(
      /: \/laws has "padding", which it does not know/,
    );
  });

  it('kernels of the other contract', async () => {
    expect(await refusal(...recurrent, '--kernel', 'fa4')).toMatch(
      /^no kernel model of linear attention "fa4"; there are naive-recurrent, chunked$/,
    );
    expect(await refusal('check', '--kernel', 'chunked')).toMatch(/add --contract recurrent$/);
    expect(await refusal('check', '--contract', 'softmax', ...kernel)).toMatch(
      /^--contract names no contract "softmax"; choose from attention, recurrent$/,
    );
    expect(await refusal(...recurrent)).toMatch(/^there is no kernel to check/);
  });
});
