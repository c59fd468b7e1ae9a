/** Builds dist/: WebAssembly first, then the TypeScript sources, then the files shipped beside them. */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildWebAssembly } from './build-webassembly.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

await buildWebAssembly();
rmSync(join(root, 'dist'), { recursive: true, force: true });
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
});
if (status !== 0) process.exit(status ?? 1);
cpSync(join(root, 'src/report/report.schema.json'), join(root, 'dist/src/report/report.schema.json'));
chmodSync(join(root, 'dist/src/cli/main.js'), 0o755);
