import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openTensorFile } from '../../src/io/index.js';
import { fileError } from '../../src/io/file-error.js';
import { nearestName } from '../../src/words/index.js';
import { RequestError } from '../../src/request-error.js';
import { numpyFiles, referenceSafetensors } from './reference-files.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();

describe('what a file is, is told by its content', () => {
  it.each([
    ['safetensors', referenceSafetensors, 'lse'],
    ['npy', numpyFiles.half, 'misnamed'],
    ['npz', numpyFiles.stored, 'k'],
  ])('%s under every ending', async (_kind, content, tensor) => {
    for (const ending of ['.safetensors', '.npz', '.bin', '']) {
      const file = await openTensorFile(folder.write(`misnamed${ending}`, content));
      const found = [...file.entries.keys()];
      expect(found).toContain(tensor === 'misnamed' ? `misnamed${ending}` : tensor);
      await file.close();
    }
  });

  it('a symbolic link is followed', async () => {
    symlinkSync(folder.write('real.npy', numpyFiles.half), folder.at('link.npy'));
    const file = await openTensorFile(folder.at('link.npy'));
    expect([...file.entries.keys()]).toEqual(['link']);
    await file.close();
  });
});

describe('what is no tensor file is refused with the path and a way out', () => {
  it.each<[string, string, Uint8Array | string, ...string[]]>([
    ['an empty file', 'x.npy', '', 'is empty'],
    ['text', 'x.txt', 'hello, world', 'no safetensors, npy or npz'],
    ['one byte', 'x', 'x', 'no safetensors, npy or npz'],
    ['a pickle', 'x.pt', Uint8Array.of(0x80, 2, 0x8a, 10), 'pickle', 'safetensors'],
    ['HDF5', 'x.h5', Buffer.from('\x89HDF\r\n\x1a\n', 'latin1'), 'HDF5', 'convert'],
    ['gzip', 'x.npy.gz', Uint8Array.of(0x1f, 0x8b, 8, 0), 'gzip', 'decompress'],
    [
      'a Git LFS pointer',
      'x.safetensors',
      'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n',
      'git lfs pull',
    ],
    ['random bytes named safetensors', 'x.safetensors', Buffer.alloc(64, 0x99), 'header'],
    ['random bytes named npz', 'x.npz', Buffer.alloc(64, 0x99), 'zip archive'],
  ])('%s', async (_what, name, content, ...parts) => {
    const path = folder.write(name, content);
    await expectRefusal(() => openTensorFile(path), path, ...parts);
  });

  it('a path that is not there, passes through a file, is too long, or holds a zero byte', async () => {
    const file = folder.write('file', 'x');
    await expectRefusal(() => openTensorFile(folder.at('absent')), folder.at('absent'), 'no such');
    await expectRefusal(() => openTensorFile(join(file, 'x')), join(file, 'x'), 'not a folder');
    await expectRefusal(() => openTensorFile(folder.at('x'.repeat(300))), 'too long');
    await expectRefusal(() => openTensorFile('a\0b'), 'a\\u0000b', 'zero byte');
    await expectRefusal(() => openTensorFile(''), 'cannot open');
  });

  it('a pipe, without waiting for its writer', async () => {
    const pipe = folder.at('pipe');
    execFileSync('mkfifo', [pipe]);
    await expectRefusal(() => openTensorFile(pipe), pipe, 'pipe');
  });

  it.skipIf(process.getuid?.() === 0)('a file without permission', async () => {
    const path = folder.write('locked.npy', numpyFiles.half);
    chmodSync(path, 0);
    await expectRefusal(() => openTensorFile(path), path, 'permission denied');
  });

  it('a folder that loops', async () => {
    symlinkSync(folder.at('loop'), folder.at('loop'));
    await expectRefusal(() => openTensorFile(folder.at('loop')), folder.at('loop'), 'loop');
  });

  it('a path of several lines', async () => {
    mkdirSync(folder.at('a\nb'));
    writeFileSync(folder.at('a\nb/q.npy'), 'x');
    await expectRefusal(() => openTensorFile(folder.at('a\nb')), 'a\\u000ab', 'tensor "q"');
  });
});

describe('fileError', () => {
  it.each([
    ['ENOENT', 'check the path'],
    ['EACCES', 'permission denied'],
    ['EISDIR', 'is a folder'],
    ['EMFILE', 'ulimit -n'],
    ['ENOSPC', 'no space'],
    ['EROFS', 'read-only'],
    ['EWHATEVER', 'EWHATEVER'],
  ])('says what %s means', (code, meaning) => {
    const cause = Object.assign(new Error(`${code}: syscall\nfailed`), { code });
    const error = fileError(cause, '/data/q.npy', 'open');
    expect(error).toBeInstanceOf(RequestError);
    expect(error.message).toMatch(/^\/data\/q\.npy: cannot open: .*;? ?.*$/);
    expect(error.message).toContain(meaning);
    expect(error.message).not.toContain('\n');
  });

  it('passes on errors that are not the file system’s', () => {
    const defect = new TypeError('x is not a function');
    expect(fileError(defect, 'q.npy', 'open')).toBe(defect);
    const request = new RequestError('q.npy: is empty');
    expect(fileError(request, 'q.npy', 'open')).toBe(request);
  });
});

describe('nearestName', () => {
  it.each([
    ['fa4.ot', 'fa4.out'],
    ['FA4.OUT', 'fa4.out'],
    ['queri', 'query'],
    ['q', 'Q'],
    ['gradient', null],
    ['', null],
  ])('of %j is %j', (mistyped, expected) => {
    expect(nearestName(mistyped, ['fa4.out', 'fa4.lse', 'query', 'Q'])).toBe(expected);
  });
});
