import { statSync } from 'node:fs';
import { expect, it } from 'vitest';
import { makeFolder } from '../../src/io/index.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';

const root = temporaryFolder();

it('makes a folder and those above it, also twice and at once', async () => {
  const path = root.at('a/b/c');
  await Promise.all([
    makeFolder(path, '--out'),
    makeFolder(path, '--out'),
    makeFolder(root.at('a/b/d'), '--out'),
  ]);
  await makeFolder(path, '--out');
  expect(statSync(path).isDirectory()).toBe(true);
  expect(statSync(root.at('a/b/d')).isDirectory()).toBe(true);
});

it('says what stands in the way', async () => {
  const file = root.write('file', 'text');
  await expectRefusal(
    () => makeFolder(file, '--out'),
    file,
    'cannot make the folder of --out',
    'is a file',
  );
  await expectRefusal(() => makeFolder(`${file}/a`, '--out'), `${file}/a`, 'is a file');
  await expectRefusal(() => makeFolder(root.at('a\0b'), '--out'), 'zero byte');
  await expectRefusal(() => makeFolder(root.at('n'.repeat(300)), '--out'), 'too long');
});
