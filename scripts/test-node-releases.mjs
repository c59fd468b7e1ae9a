/**
 * Runs tests under the other releases of Node.js that the package supports, each taken from the npm
 * registry into a temporary folder: what a runtime may differ in (files, float formats, typed arrays,
 * worker threads, the command line).
 *
 *   node scripts/test-node-releases.mjs [release …]
 *
 * Exits with 1 when a test fails. Where there is no such binary (npm has them for Linux on x64), it says
 * so and exits with 0.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const binaryPackage = `node-${process.platform}-${process.arch}`;
const releases = process.argv.length > 2 ? process.argv.slice(2) : ['22', '24'];
const tests = ['test/formats', 'test/io', 'test/cli/audit.test.ts', 'test/campaign'];

/** The binary of a release, or null where npm has none for this machine. */
function install(release, folder) {
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  const words = ['install', '--no-audit', '--no-fund', `${binaryPackage}@${release}`];
  const npm = spawnSync('npm', words, { cwd: folder, encoding: 'utf8' });
  const binary = join(folder, 'node_modules', binaryPackage, 'bin/node');
  return npm.status === 0 && existsSync(binary) ? binary : null;
}

/** Runs the tests under one release; the exit status. */
function testRelease(release) {
  const folder = mkdtempSync(join(tmpdir(), 'flashproof-node-'));
  try {
    const binary = install(release, folder);
    if (binary === null) {
      process.stdout.write(`left out: npm has no ${binaryPackage}@${release}\n`);
      return 0;
    }
    const version = spawnSync(binary, ['--version'], { encoding: 'utf8' }).stdout.trim();
    process.stdout.write(`Node.js ${version}\n`);
    const words = ['node_modules/vitest/vitest.mjs', 'run', ...tests, '--reporter=default'];
    return spawnSync(binary, words, { cwd: root, stdio: 'inherit' }).status ?? 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

process.exitCode = releases.map(testRelease).some((status) => status !== 0) ? 1 : 0;
