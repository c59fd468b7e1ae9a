import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { laws, recurrentLaws } from '../../properties/index.js';
import { replayCommand, suiteSettings } from '../../properties/vitest/describe-laws.js';
import { RequestError } from '../../src/request-error.js';
import { builtDist } from '../setup/built-dist.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const root = fileURLToPath(new URL('../..', import.meta.url));
const file = 'test/properties/described/kernels.ts';
const title = `within-bound: ${laws['within-bound'].statement}`;
const recurrent = `too large a scale within-bound: ${recurrentLaws['within-bound'].statement}`;

interface TestOutcome {
  readonly fullName: string;
  readonly status: 'passed' | 'failed' | 'skipped';
  readonly failureMessages: readonly string[];
}

interface Outcome {
  readonly tests: readonly TestOutcome[];
  /** What the file said when its tests could not be collected. */
  readonly message: string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the suites of described/kernels.ts by a shell's command line for vitest. */
function runSuites(command: string): Outcome {
  const runner = `'${process.execPath}' test/properties/described/run.mjs run`;
  const { stdout, stderr } = spawnSync(
    'sh',
    ['-c', command.replace('npx vitest run', () => runner)],
    {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, FLASHPROOF_SEED: '', FLASHPROOF_RUNS: '' },
    },
  );
  const json = stdout.split('\n').find((line) => line.startsWith('{'));
  if (json === undefined) throw new Error(`no results:\n${stdout}${stderr}`);
  const { testResults } = JSON.parse(json) as {
    testResults: [{ assertionResults: TestOutcome[]; message: string }];
  };
  const [{ assertionResults: tests, message }] = testResults;
  return { tests, message, stdout, stderr };
}

describe.skipIf(process.platform === 'win32')('describeAttentionKernel', () => {
  const broken = `somebody's (own) 1.5 × too large ${title}`;
  let outcome: Outcome;
  let failure = '';
  beforeAll(async () => {
    await builtDist();
    outcome = runSuites(`FLASHPROOF_RUNS=6 npx vitest run ${file}`);
    failure = outcome.tests.find(({ fullName }) => fullName === broken)!.failureMessages[0];
  });

  it('registers a test for each law, and says why one is skipped', () => {
    expect(outcome.tests.map(({ fullName, status }) => [fullName, status])).toEqual([
      [`exact ${title}`, 'passed'],
      [broken, 'failed'],
      [`takes nothing ${title}`, 'skipped'],
      ['promises nothing something is tried', 'failed'],
      [`promises nothing ${title} (skipped: not promised)`, 'skipped'],
      [recurrent, 'failed'],
    ]);
    const untried = outcome.tests.at(-3)!.failureMessages[0];
    expect(untried).toMatch(/nothing was checked: .*\(within-bound: not promised\); give /);
  });

  it('fails a suite in which nothing was tried, also where each law is skipped', () => {
    expect(outcome.stderr).toMatch(
      /takes nothing fails: nothing was checked: .*\(within-bound: none of its problems could be tried: not today\)/,
    );
  });

  it('says what is wrong, on which problem, and how to see it again', () => {
    expect(failure).toMatch(/^Error: within-bound: .*\.\n/);
    for (const part of [
      `Law:    ${laws['within-bound'].statement}.`,
      /Found: {2}problem \d of this law, regime (normal|ones), /,
      /\nattention problem, scale .*\nq: fp32 \[1, 1, 1, 1\] = .*\nk: fp32 .*\nv: fp32 /,
      'Seed 7; to see it again:\nFLASHPROOF_SEED=7 FLASHPROOF_RUNS=6 npx vitest run ',
    ])
      expect(failure).toMatch(part);
  });

  it('says the same of a kernel of linear attention, and where it is described', () => {
    const { failureMessages } = outcome.tests.find(({ fullName }) => fullName === recurrent)!;
    for (const part of [
      /^Error: within-bound: .*\.\n/,
      `Law:    ${recurrentLaws['within-bound'].statement}.`,
      /Found: {2}problem \d of this law, regime one-token, /,
      /\nrecurrence, linear, /,
      'Seed 9; to see it again:\nFLASHPROOF_SEED=9 FLASHPROOF_RUNS=6 npx vitest run ',
    ])
      expect(failureMessages[0]).toMatch(part);
    const [, line] = /described\/kernels\.ts:(\d+)/.exec(failureMessages[0].split('\n    at ')[1])!;
    const source = readFileSync(`${root}/${file}`, 'utf8').split('\n');
    expect(source[Number(line) - 1]).toBe('describeRecurrentKernel(');
  });

  it('points to the line that describes the kernel', () => {
    const [, line] = /described\/kernels\.ts:(\d+)/.exec(failure.split('\n    at ')[1])!;
    const source = readFileSync(`${root}/${file}`, 'utf8').split('\n');
    expect(source[Number(line) - 1]).toContain("describeAttentionKernel('1.5 × too large'");
  });

  it('prints the seed of each suite that runs, once', () => {
    const printed = outcome.stderr.match(/.*: FLASHPROOF_SEED=.*/g) ?? [];
    expect(
      printed.map((line) =>
        line.replace(/^(exact|takes nothing|promises nothing): (.*=)\d+$/, '$1: $2'),
      ),
    ).toEqual([
      'exact: FLASHPROOF_SEED=',
      '1.5 × too large: FLASHPROOF_SEED=7',
      'takes nothing: FLASHPROOF_SEED=',
      'promises nothing: FLASHPROOF_SEED=',
      'too large a scale: FLASHPROOF_SEED=9',
    ]);
  });

  inTurn('replays the same failure by the command that it gives, and nothing else', () => {
    const command = failure.split('\n').find((line) => line.startsWith('FLASHPROOF_SEED='))!;
    const { tests } = runSuites(command);
    const ran = tests.filter(({ status }) => status !== 'skipped');
    expect(ran.map(({ fullName }) => fullName)).toEqual([broken]);
    expect(ran[0].failureMessages[0]).toBe(failure);
  });
});

describe('the settings of a suite', () => {
  it('come from the environment, else from the options, else there are 25 runs', () => {
    const environment = { FLASHPROOF_RUNS: '500', FLASHPROOF_SEED: ' -3 ' };
    expect(suiteSettings({ runs: 7, seed: 8 }, environment)).toEqual({
      runs: 500,
      seed: -3,
      fromEnvironment: ['FLASHPROOF_RUNS=500'],
    });
    const empty = { FLASHPROOF_RUNS: '', FLASHPROOF_SEED: undefined };
    expect(suiteSettings({ runs: 7, seed: 8 }, empty)).toMatchObject({ runs: 7, seed: 8 });
    const { runs, seed } = suiteSettings({}, {});
    expect(runs).toBe(25);
    expect(Number.isSafeInteger(seed)).toBe(true);
  });

  it('refuse what is no whole number', () => {
    for (const FLASHPROOF_SEED of ['x', '1.5', '1e30', 'NaN'])
      expect(() => suiteSettings({}, { FLASHPROOF_SEED })).toThrow(RequestError);
    for (const FLASHPROOF_RUNS of ['0', '-1', 'many'])
      expect(() => suiteSettings({}, { FLASHPROOF_RUNS })).toThrow(
        /^FLASHPROOF_RUNS is ".*"; set it to a positive whole number, or not at all$/,
      );
  });
});

describe('the command that replays a failure', () => {
  const settings = { runs: 25, seed: 9, fromEnvironment: [] };

  it.each([
    [['fa'], 'a.test.ts', 'FLASHPROOF_SEED=9 npx vitest run a.test.ts -t "^fa exact:"'],
    [['x', 'y'], 'my a.ts', 'FLASHPROOF_SEED=9 npx vitest run "my a.ts" -t "^x y exact:"'],
    [['a.b'], 't/a.ts', "FLASHPROOF_SEED=9 npx vitest run t/a.ts -t '^a\\.b exact:'"],
    [["it's $1"], 'a.ts', "FLASHPROOF_SEED=9 npx vitest run a.ts -t '^it'\\''s \\$1 exact:'"],
  ])('quotes %j in %s', (names, path, command) => {
    const suite = names.reduce<{ name: string; suite?: never } | undefined>(
      (outer, name) => ({ name, suite: outer }) as { name: string },
      undefined,
    );
    const test = { name: 'exact: …', suite, file: { filepath: `/home/me/${path}` } };
    expect(replayCommand(test, 'exact:', settings, '/home/me')).toBe(command);
  });
});
