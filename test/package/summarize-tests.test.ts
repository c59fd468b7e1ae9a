import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const script = fileURLToPath(new URL('../../scripts/summarize-tests.mjs', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'flashproof-summary-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

type Status = 'passed' | 'failed' | 'skipped';

/** Results as vitest's JSON reporter writes them: the status of each file, and of its tests. */
function summarize(files: readonly (readonly [Status, readonly Status[]])[], success: boolean) {
  const path = join(scratch, 'results.json');
  const passed = files.flatMap(([, tests]) => tests).filter((test) => test === 'passed').length;
  const results = {
    success,
    numPassedTests: passed,
    testResults: files.map(([status, tests]) => ({
      status,
      assertionResults: tests.map((test) => ({ status: test })),
    })),
  };
  writeFileSync(path, JSON.stringify(results));
  return spawnSync(process.execPath, [script, path], { encoding: 'utf8' });
}

describe('the summary of a test run', () => {
  inTurn.each([
    ['passes', [['passed', ['passed', 'passed', 'skipped']]], true, '2 passed, 0 failed\n', 0],
    [
      'counts failures',
      [['failed', ['passed', 'failed', 'failed']]],
      false,
      '1 passed, 2 failed\n',
      1,
    ],
    [
      'counts a set-up',
      [
        ['failed', ['skipped']],
        ['passed', ['passed']],
      ],
      false,
      '1 passed, 1 failed\n',
      1,
    ],
    ['counts stray errors', [['passed', ['passed']]], false, '1 passed, 1 failed\n', 1],
  ] as const)('%s', (_, files, success, line, exit) => {
    const { stdout, status } = summarize(files, success);
    expect(stdout).toBe(line);
    expect(status).toBe(exit);
  });

  it('fails without results', () => {
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      [script, join(scratch, 'none')],
      {
        encoding: 'utf8',
      },
    );
    expect(stdout).toBe('');
    expect(stderr).toMatch(/no test results/);
    expect(status).toBe(1);
  });
});
