import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const dist = join(root, 'dist');
const inputs = ['src', 'oracles', 'kernels', 'properties', 'types', 'scripts'];
const configurations = ['tsconfig.json', 'tsconfig.build.json'];

const lock = join(root, 'node_modules', '.flashproof-build-lock');
/** A build takes some seconds; a lock this old was left behind by a process that was killed. */
const lockExpiry = 120_000;

/** When the file or folder was last modified, in ms since the epoch; 0 when there is none. */
function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function newestInput(): number {
  const files = inputs.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith('.generated.ts'))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  const all = [...files, ...configurations.map((name) => join(root, name))];
  return all.reduce((newest, file) => Math.max(newest, modified(file)), 0);
}

/** Takes the lock, or says that another process holds it. */
function takeLock(): boolean {
  try {
    mkdirSync(lock);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if (modified(lock) < Date.now() - lockExpiry) rmSync(lock, { recursive: true, force: true });
    return false;
  }
}

/**
 * The folder dist, built from the sources as they are now: for tests of what users run. It builds
 * only when dist is missing or older than a source (scripts/build.mjs dates dist by the begin of its
 * build), and once when several test files ask at the same time. Call it in `beforeAll`.
 * @throws Error with the messages when the sources cannot be built; types are not checked
 */
export async function builtDist(): Promise<string> {
  while (modified(dist) < newestInput()) {
    if (!takeLock()) {
      await sleep(100);
      continue;
    }
    try {
      if (modified(dist) >= newestInput()) return dist;
      const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/build.mjs'], {
        cwd: root,
        encoding: 'utf8',
      });
      if (status !== 0) throw new Error(`dist cannot be built:\n${stdout}${stderr}`);
      return dist;
    } finally {
      rmSync(lock, { recursive: true, force: true });
    }
  }
  return dist;
}
