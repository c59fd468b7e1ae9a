import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { refusal } from './run-in-process.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-promises-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('a file of promises with a name that is none', () => {
  it.each([
    [
      { format: ['fp32'] },
      /promises\.json: has "format", which it does not know; did you mean formats; it may have formats, /,
    ],
    [
      { sizes: { batches: { max: 1 } } },
      /promises\.json: \/sizes has "batches", .*; did you mean batch; /,
    ],
    [{ zzz: 1 }, /promises\.json: has "zzz", which it does not know; it may have formats, /],
  ])('is refused with the nearest: %j', async (promises, message) => {
    const path = join(scratch, 'promises.json');
    writeFileSync(path, JSON.stringify(promises));
    expect(await refusal('check', '--kernel', 'naive-fp32', '--promises', path)).toMatch(message);
  });
});
