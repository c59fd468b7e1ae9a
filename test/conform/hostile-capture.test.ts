import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readCapture } from '../../src/conform/capture.js';
import { targets } from '../../src/conform/targets.js';
import { RequestError } from '../../src/request-error.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-hostile-capture-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What a folder is refused with. */
async function refusalOf(folder: string): Promise<string> {
  const refused = await readCapture(folder, targets).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(RequestError);
  return (refused as RequestError).message;
}

const printableLine = /^[^\p{C}\p{Zl}\p{Zp}]+$/u;

describe('captures of which a file is no regular one are refused at once', () => {
  const hash = 'hash_ex2_approx_ftz_f32.bin';

  it.skipIf(process.platform === 'win32')('as a named pipe, which nobody writes to', async () => {
    const folder = mkdtempSync(join(scratch, 'pipe-'));
    expect(spawnSync('mkfifo', [join(folder, hash)]).status).toBe(0);
    expect(await refusalOf(folder)).toMatch(/is a pipe, socket or device, not a regular file; /);
  });

  it('as a folder', async () => {
    const folder = mkdtempSync(join(scratch, 'folder-'));
    mkdirSync(join(folder, hash));
    expect(await refusalOf(folder)).toMatch(/is a folder, not a regular file; /);
  });
});

describe('a refusal is one printable line', () => {
  const hostile = '\u001b[2J\u009b31m\r\n\u2028\u202e';

  it.each([
    ['content that is no JSON', `${hostile}{`],
    ['content that ends early', `{"gpu": "${hostile}`],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x9b, 0x1b])],
    ['a value that is no line', JSON.stringify({ gpu: hostile })],
  ])('whatever the description holds: %s', async (_, content) => {
    const folder = mkdtempSync(join(scratch, 'text-'));
    writeFileSync(join(folder, 'capture.json'), content);
    const message = await refusalOf(folder);
    expect(message).toMatch(printableLine);
    expect(message).toContain('capture.json: ');
  });

  it.skipIf(process.platform === 'win32')('whatever the folder is called', async () => {
    const folder = join(scratch, `name${hostile}`);
    expect(await refusalOf(folder)).toMatch(printableLine);
    mkdirSync(folder);
    writeFileSync(join(folder, 'capture.json'), '3');
    const message = await refusalOf(folder);
    expect(message).toMatch(printableLine);
    // Nothing is lost: what is not shown as it is can be read.
    expect(message).toContain(
      'name\\u{1b}[2J\\u{9b}31m\\u{d}\\u{a}\\u{2028}\\u{202e}/capture.json',
    );
  });
});
