/**
 * Runs the examples as strangers would: packs the package as npm would publish it, installs it into a
 * copy of each example outside this repository, and runs the example's tests. With names as arguments
 * it runs these only. dist/ must be built.
 *
 * An example that needs what is not here (numpy, a WebGPU adapter) is left out, and said to be. Exits
 * with 1 when an example fails, and with 2 when there is no such example.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const onWindows = process.platform === 'win32';
const environment = {
  // Problems for each law: enough to see an example work.
  FLASHPROOF_RUNS: '10',
  ...process.env,
  // The Python package of this clone, which copies of examples import.
  PYTHONPATH: [join(root, 'python'), process.env.PYTHONPATH].filter(Boolean).join(delimiter),
};

/** Each example, and the command that fails where what it needs is missing; it runs once installed. */
const examples = {
  'vitest-consumer': {},
  'node-test': {},
  python: { probe: ['python3', '-c', 'import numpy'], missing: 'python3 with numpy' },
  packed: { probe: ['python3', '-c', 'import numpy'], missing: 'python3 with numpy' },
  'decode-chain': { probe: ['python3', '-c', 'import numpy'], missing: 'python3 with numpy' },
  triton: {},
  'flash-attention-4': { probe: ['python3', '--version'], missing: 'python3' },
  'flashinfer-bench': {
    probe: ['python3', '-c', 'import flashinfer_bench'],
    missing: 'FlashInfer-Bench',
  },
  backendbench: { probe: ['python3', '-c', 'import BackendBench'], missing: 'BackendBench' },
  'paged-decode': { probe: ['python3', '-c', 'import numpy'], missing: 'python3 with numpy' },
  webgpu: { probe: ['node', 'adapter.mjs'], missing: 'a WebGPU adapter' },
};

function execute(folder, [command, ...args], stdio = 'inherit') {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd: folder,
    stdio,
    encoding: 'utf8',
    env: environment,
    shell: onWindows,
  });
  return {
    ok: error === undefined && status === 0,
    stdout,
    said: stderr?.trim() ?? error?.message,
  };
}

/** Packs the repository into a folder; the path of the tarball. */
function pack(folder) {
  const command = ['npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const { ok, stdout, said } = execute(root, command, 'pipe');
  if (!ok) throw new Error(`npm pack fails:\n${said}`);
  const [{ filename, files }] = JSON.parse(stdout);
  if (!files.some(({ path }) => path === 'dist/src/index.js'))
    throw new Error('there is no dist/ to pack; run npm run build first');
  return join(folder, filename);
}

/** A copy of an example in which flashproof is the tarball. */
function copyExample(name, folder, tarball) {
  const copy = join(folder, name);
  cpSync(join(root, 'examples', name), copy, {
    recursive: true,
    filter: (path) => !/[/\\](node_modules|__pycache__|package-lock\.json)$/.test(path),
  });
  const path = join(copy, 'package.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  for (const section of [manifest.dependencies ?? {}, manifest.devDependencies ?? {}])
    if ('flashproof' in section) section.flashproof = `file:${tarball}`;
  writeFileSync(path, JSON.stringify(manifest, null, 2));
  return copy;
}

/** Installs and runs one example: 'passed', 'FAILED', or why it was left out. */
function runExample(name, folder, tarball) {
  const { probe, missing } = examples[name];
  const copy = copyExample(name, folder, tarball);
  const install = ['npm', 'install', '--no-audit', '--no-fund', '--prefer-offline'];
  if (!execute(copy, install).ok) return 'FAILED to install';
  if (probe !== undefined) {
    const { ok, said } = execute(copy, probe, 'pipe');
    if (!ok) return `left out: it needs ${missing} (${said?.split('\n').at(-1)})`;
  }
  return execute(copy, ['npm', 'test']).ok ? 'passed' : 'FAILED';
}

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(examples);
const unknown = wanted.find((name) => !Object.hasOwn(examples, name));
if (unknown !== undefined) {
  console.error(`there is no example ${unknown}; choose from ${Object.keys(examples).join(', ')}`);
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), 'flashproof-examples-'));
try {
  const tarball = pack(folder);
  const outcomes = wanted.map((name) => {
    console.log(`\nexamples/${name}`);
    const start = performance.now();
    const outcome = runExample(name, folder, tarball);
    const seconds = ((performance.now() - start) / 1000).toFixed(0);
    return { outcome, line: `examples/${name}: ${outcome} (${seconds} s)` };
  });
  console.log(`\n${outcomes.map(({ line }) => line).join('\n')}`);
  if (outcomes.some(({ outcome }) => outcome.startsWith('FAILED'))) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
