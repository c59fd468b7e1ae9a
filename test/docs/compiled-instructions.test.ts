import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readDocument } from './shell-document.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('docs/reference/compiled-instructions.md', () => {
  it('lists the instructions as their rows have them', { timeout: 60_000 }, () => {
    const script = 'scripts/documents/write-instructions.mjs';
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, '--print'], {
      cwd: root,
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const page = readDocument('docs/reference/compiled-instructions.md');
    expect(page === stdout, `run node ${script}`).toBe(true);
  });
});
