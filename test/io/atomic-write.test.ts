import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { atomicWriteFile, writeSafetensors } from '../../src/io/index.js';
import { writeNpz } from './write-npz.js';
import { compiledPath } from '../setup/native-sources.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';
import { countingTensor } from './tensors.js';

const root = temporaryFolder();

function fresh(name: string): string {
  mkdirSync(root.at(name));
  return root.at(name);
}

describe('atomicWriteFile', () => {
  it('writes strings, and chunks of iterables of both kinds', async () => {
    const folder = fresh('kinds');
    const path = join(folder, 'file');
    await atomicWriteFile(path, 'grüße\n');
    expect(readFileSync(path, 'utf8')).toBe('grüße\n');
    await atomicWriteFile(path, [Uint8Array.of(1), new Uint8Array(0), Uint8Array.of(2, 3)]);
    expect([...readFileSync(path)]).toEqual([1, 2, 3]);
    await atomicWriteFile(
      path,
      (async function* () {
        yield Uint8Array.of(4);
        await Promise.resolve();
        yield Uint8Array.of(5, 6);
      })(),
    );
    expect([...readFileSync(path)]).toEqual([4, 5, 6]);
    await atomicWriteFile(path, []);
    expect(statSync(path).size).toBe(0);
    expect(readdirSync(folder)).toEqual(['file']);
  });

  it('leaves the old file and no other when the chunks fail midway', async () => {
    const folder = fresh('failing');
    const path = join(folder, 'file');
    const failure = new Error('the source broke');
    const failing = function* (): Generator<Uint8Array> {
      yield new Uint8Array(1 << 20);
      throw failure;
    };
    await expect(atomicWriteFile(path, failing())).rejects.toBe(failure);
    expect(readdirSync(folder)).toEqual([]);
    writeFileSync(path, 'before');
    await expect(atomicWriteFile(path, failing())).rejects.toBe(failure);
    expect(readdirSync(folder)).toEqual(['file']);
    expect(readFileSync(path, 'utf8')).toBe('before');
  });

  it('shows the new content only when it is whole', async () => {
    const folder = fresh('visible');
    const path = join(folder, 'file');
    writeFileSync(path, 'before');
    const seen: string[] = [];
    const watched = function* (): Generator<Uint8Array> {
      for (const part of ['new ', 'content']) {
        seen.push(readFileSync(path, 'utf8'));
        yield Buffer.from(part);
      }
      seen.push(readFileSync(path, 'utf8'));
    };
    await atomicWriteFile(path, watched());
    expect(seen).toEqual(['before', 'before', 'before']);
    expect(readFileSync(path, 'utf8')).toBe('new content');
  });

  it('leaves the old file when the process is killed while it writes', async () => {
    const folder = fresh('killed');
    const path = join(folder, 'file');
    writeFileSync(path, 'before');
    const library = compiledPath('src/io/atomic-write.ts');
    const script = `
      import { atomicWriteFile } from ${JSON.stringify(pathToFileURL(library).href)};
      await atomicWriteFile(process.argv[1], (async function* () {
        yield new Uint8Array(1 << 20);
        process.stdout.write('half');
        await new Promise((resolve) => setTimeout(resolve, 60_000));
      })());`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, path]);
    await new Promise((resolve) => child.stdout.once('data', resolve));
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    const [temporary, ...others] = readdirSync(folder).filter((name) => name !== 'file');
    expect(others).toEqual([]);
    expect(statSync(join(folder, temporary!)).size).toBe(1 << 20);
    expect(readFileSync(path, 'utf8')).toBe('before');
    await atomicWriteFile(path, 'after');
    expect(readFileSync(path, 'utf8')).toBe('after');
  });

  it('keeps permissions, and writes through a symbolic link', async () => {
    const folder = fresh('linked');
    const path = join(folder, 'file');
    writeFileSync(path, 'before');
    // Wider than any usual umask grants, so that it is kept on purpose or not at all.
    chmodSync(path, 0o666);
    symlinkSync(path, join(folder, 'link'));
    await atomicWriteFile(join(folder, 'link'), 'after');
    expect(readFileSync(path, 'utf8')).toBe('after');
    expect(statSync(path).mode & 0o777).toBe(0o666);
    expect(readdirSync(folder).sort()).toEqual(['file', 'link']);
  });

  it('gives concurrent writers whole files', async () => {
    const folder = fresh('concurrent');
    const path = join(folder, 'file');
    await Promise.all(
      ['a', 'b', 'c', 'd'].map((letter) =>
        atomicWriteFile(path, Array(8).fill(Buffer.alloc(10_000, letter)) as Uint8Array[]),
      ),
    );
    expect(readFileSync(path, 'utf8')).toMatch(/^(a{80000}|b{80000}|c{80000}|d{80000})$/);
    expect(readdirSync(folder)).toEqual(['file']);
  });

  it('refuses what cannot be written, with the path and a way out', async () => {
    const folder = fresh('refused');
    const absent = join(folder, 'absent', 'file');
    await expectRefusal(() => atomicWriteFile(absent, 'x'), absent, 'does not exist', 'create it');
    await expectRefusal(() => atomicWriteFile(folder, 'x'), folder, 'is a folder');
    await expectRefusal(() => atomicWriteFile('', 'x'), 'empty');
    const file = join(folder, 'file');
    writeFileSync(file, 'kept');
    await expectRefusal(() => atomicWriteFile(join(file, 'x'), 'x'), 'not a folder');
    await expectRefusal(() => atomicWriteFile(join(folder, 'x'.repeat(300)), 'x'), 'too long');
    expect(readdirSync(folder)).toEqual(['file']);
    expect(readFileSync(file, 'utf8')).toBe('kept');
  });

  it.skipIf(!existsSync('/dev/null'))('refuses to replace a device', async () => {
    await expectRefusal(() => atomicWriteFile('/dev/null', 'x'), '/dev/null', 'device');
    expect(statSync('/dev/null').isCharacterDevice()).toBe(true);
  });

  it.skipIf(process.getuid?.() === 0)('refuses a read-only folder', async () => {
    const folder = fresh('read-only');
    chmodSync(folder, 0o555);
    await expectRefusal(() => atomicWriteFile(join(folder, 'x'), 'x'), 'permission denied');
    chmodSync(folder, 0o755);
  });
});

describe('the tensor writers', () => {
  it('leave nothing behind when they fail', async () => {
    const folder = fresh('writers');
    const tensors = { q: countingTensor('fp32', [4]) };
    mkdirSync(join(folder, 'taken'));
    await expectRefusal(() => writeSafetensors(join(folder, 'taken'), tensors), 'is a folder');
    await expectRefusal(() => writeNpz(join(folder, 'taken'), tensors), 'is a folder');
    await expectRefusal(() => writeNpz(join(folder, 'no', 'x.npz'), tensors), 'does not exist');
    expect(readdirSync(folder)).toEqual(['taken']);
  });
});
