import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect } from 'vitest';
import { openTensorFile } from '../../src/io/index.js';
import { filesOf, readDocument } from './shell-document.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const program = `#include "write_npy.hpp"
int main() {
  const float q[6] = {0, 1, -2.5, 3, 4, 65504};
  const uint16_t k[4] = {0x3f80, 0x8000, 0x7f80, 0xc2f7};
  const uint8_t v[3] = {0x00, 0x7e, 0x88};
  const float one[1] = {7};
  write_npy("dump/q.npy", q, sizeof q, "<f4", {1, 2, 3});
  write_npy("dump/k.npy", k, sizeof k, "<V2", {2, 2});
  write_npy("dump/v.npy", v, sizeof v, "|V1", {3});
  write_npy("dump/out.npy", one, sizeof one, "<f4", {1, 1, 1, 1});
}
`;

const hasCompiler = spawnSync('c++', ['--version']).status === 0;

describe.runIf(hasCompiler)('write_npy of docs/guide/auditing.md', () => {
  const folder = mkdtempSync(join(tmpdir(), 'flashproof-npy-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  inTurn('writes what flashproof reads, in every format', async () => {
    const { name, text } = filesOf(readDocument('docs/guide/auditing.md')).find(({ name }) =>
      name.endsWith('.hpp'),
    )!;
    writeFileSync(join(folder, name), text);
    writeFileSync(join(folder, 'main.cpp'), program);
    mkdirSync(join(folder, 'dump'));
    const flags = ['-std=c++17', '-Wall', '-Wextra', '-Werror', 'main.cpp', '-o', 'dumper'];
    const compilation = spawnSync('c++', flags, { cwd: folder, encoding: 'utf8' });
    expect(compilation.stderr).toBe('');
    expect(spawnSync('./dumper', { cwd: folder }).status).toBe(0);

    const file = await openTensorFile(join(folder, 'dump'), { formats: { v: 'e4m3' } });
    const [q, k, v, out] = await Promise.all(
      ['q', 'k', 'v', 'out'].map((tensor) => file.read(tensor)),
    );
    await file.close();
    expect([q.format, q.shape, [...q.data]]).toEqual([
      'fp32',
      [1, 2, 3],
      [0, 1, -2.5, 3, 4, 65504],
    ]);
    expect([k.format, k.shape]).toEqual(['bf16', [2, 2]]);
    expect([...k.data]).toEqual([0x3f80, 0x8000, 0x7f80, 0xc2f7]);
    expect([v.format, v.shape, [...v.data]]).toEqual(['e4m3', [3], [0x00, 0x7e, 0x88]]);
    expect([out.shape, [...out.data]]).toEqual([[1, 1, 1, 1], [7]]);
  });
});
