import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readDocument } from './shell-document.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** What a command of a README writes: the file or folder behind a flag or a redirection. */
const written = /(?:(?:^|\s)>|--(?:save|to|json|html|junit|trace)|\s-o)\s+([\w./-]+)/gm;

function git(...words: string[]) {
  return spawnSync('git', words, { cwd: root, encoding: 'utf8' });
}

/** The paths, from the root, that the shell commands of an example's README write into its folder. */
function pathsWritten(folder: string): string[] {
  const text = readDocument(`${folder}/README.md`);
  const blocks = [...text.matchAll(/```sh\n([^]*?)```/g)].map(([, block = '']) => block).join('\n');
  const paths = [...blocks.matchAll(written)].map(([, path = '']) => path);
  if (blocks.includes('npm install')) paths.push('package-lock.json', 'node_modules/x');
  if (blocks.includes('venv .venv')) paths.push('.venv/x');
  return paths.filter((path) => !path.startsWith('/')).map((path) => join(folder, path));
}

const isRepository = git('rev-parse', '--is-inside-work-tree').status === 0;

describe.runIf(isRepository)('the commands of the examples leave no untracked files', () => {
  const folders = readdirSync(join(root, 'examples')).map((name) => `examples/${name}`);
  const withReadme = folders.filter((folder) =>
    readdirSync(join(root, folder)).includes('README.md'),
  );

  it.each(withReadme)('%s', (folder) => {
    for (const path of pathsWritten(folder)) {
      // A folder may be ignored by a pattern for folders alone, and it is not there yet.
      const isIgnored = [path, `${path}/x`].some(
        (one) => git('check-ignore', '--quiet', '--no-index', one).status === 0,
      );
      const isTracked = git('ls-files', '--', path).stdout !== '';
      expect(isIgnored || isTracked, `${path} is neither in .gitignore nor tracked`).toBe(true);
    }
  });

  it('and there are some that write files', () => {
    expect(withReadme.flatMap(pathsWritten).length).toBeGreaterThan(20);
  });
});
