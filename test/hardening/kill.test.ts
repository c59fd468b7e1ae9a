import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { builtDist } from '../setup/built-dist.js';

const script = fileURLToPath(new URL('../../scripts/kill-test.mjs', import.meta.url));

describe.runIf(process.platform === 'linux')('a command that is killed while it writes', () => {
  it('leaves what was there before, or all of the new file', { timeout: 300_000 }, async () => {
    const main = process.env['FLASHPROOF_MAIN'] ?? join(await builtDist(), 'src', 'cli', 'main.js');
    const kills = process.env['KILLS'] ?? '3';
    const child = spawn(process.execPath, [script, '--cli', main], {
      env: { ...process.env, KILLS: kills },
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes: Buffer) => (text += bytes.toString()));
    const status = await new Promise((resolve) => child.once('close', resolve));
    expect(text).toMatch(/^\d+ runs, \d+ killed, 0 faults, \d+ temporary files/);
    expect(status).toBe(0);
  });
});
