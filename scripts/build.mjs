/**
 * Builds dist/: WebAssembly first, then the programs, then the declarations, then the files shipped beside them.
 * The new dist takes the old one's place only once it is complete. Its modification time is the moment
 * the build began, so that a source is newer than dist exactly when dist may lack its last change.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, readdirSync, renameSync, rmSync, utimesSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildWebAssembly } from './build-webassembly.mjs';
import { bundle } from './bundle.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, 'dist');
const started = new Date();

/** A folder of this build's own, on the file system of dist. */
const workFolder = join(root, 'node_modules', `.flashproof-build-${process.pid}`);
const [built, replaced] = [join(workFolder, 'new'), join(workFolder, 'old')];

/** Writes the declarations, unchecked: `npm run typecheck` checks types, which takes two thirds of the compiler's time; its exit status. */
async function declare() {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const words = [tsc, '-p', 'tsconfig.build.json', '--noCheck', '--outDir', built];
  const [status] = await once(
    spawn(process.execPath, words, { cwd: root, stdio: 'inherit' }),
    'exit',
  );
  return status ?? 1;
}

/** Bundles, declares and copies into `built`; the compiler's exit status. */
async function build() {
  const [status] = await Promise.all([declare(), bundle(root, built)]);
  if (status !== 0) return status;
  const ofReports = 'src/report/json';
  for (const file of readdirSync(join(root, ofReports)))
    if (file.endsWith('.schema.json'))
      cpSync(join(root, ofReports, file), join(built, ofReports, file));
  chmodSync(join(built, 'src/cli/main.js'), 0o755);
  return 0;
}

function replaceDist() {
  try {
    renameSync(dist, replaced);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  renameSync(built, dist);
  utimesSync(dist, started, started);
}

await buildWebAssembly();
mkdirSync(workFolder, { recursive: true });
try {
  process.exitCode = await build();
  if (process.exitCode === 0) replaceDist();
} finally {
  rmSync(workFolder, { recursive: true, force: true });
}
