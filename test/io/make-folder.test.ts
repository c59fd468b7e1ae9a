import { statSync } from 'node:fs';
import { expect, it } from 'vitest';
import { makeFolder } from '../../src/io/index.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';

const root = temporaryFolder();

it('makes a folder and those above it, also twice and at once', async () => {
  const path = root.at('a/b/c');
  await Promise.all([makeFolder(path), makeFolder(path), makeFolder(root.at('a/b/d'))]);
  await makeFolder(path);
  expect(statSync(path).isDirectory()).toBe(true);
  expect(statSync(root.at('a/b/d')).isDirectory()).toBe(true);
});

it('says what stands in the way', async () => {
  const file = root.write('file', 'text');
  await expectRefusal(() => makeFolder(file), file, 'cannot make the folder', 'is a file');
  await expectRefusal(() => makeFolder(`${file}/a`), `${file}/a`, 'is a file');
  await expectRefusal(() => makeFolder(root.at('a\0b')), 'zero byte');
  await expectRefusal(() => makeFolder(root.at('n'.repeat(300))), 'too long');
});
