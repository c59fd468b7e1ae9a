/**
 * Checks the package as npm would publish it; dist/ must be built (`npm run build`).
 *
 *   node scripts/check-package.mjs
 *
 * - It holds what it promises and nothing else: no sources, no tests, of the captures only those that
 *   `flashproof conform` reads, and at most 3 MB to download.
 * - publint finds nothing, and @arethetypeswrong/cli no wrong types for ES modules.
 * - It works once unpacked: `import`, `require` from CommonJS, types for both, and the command.
 *
 * Prints a line for each; exits with 1 when one fails.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const megabyte = 1e6;
const mostMegabytes = 3;

/** What a published file may be, by its path. */
const allowed = [
  /^(package\.json|README\.md|CHANGELOG\.md|LICENSE)$/,
  /^dist\/(src|oracles|kernels|properties)\/.*\.(js|d\.ts)$/,
  /^dist\/chunks\/[\w-]+\.js$/,
  /^dist\/src\/report\/json\/\w+\.schema\.json$/,
  /^fixtures\/silicon\/sm_90\/((hash|pairs)_\w+\.bin|\w+_tables\.bin\.gz|capture\.json|README\.md)$/,
];

/** Entry points that hold code, by the name that importers use. */
const entries = Object.entries(manifest.exports)
  .filter(([, target]) => typeof target === 'object')
  .map(([name]) => name.replace('.', manifest.name));
/** Those that work outside of a test runner. */
const plainEntries = entries.filter((name) => name !== `${manifest.name}/vitest`);

function execute(command, args, cwd) {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    shell: process.platform === 'win32',
    maxBuffer: 64 * megabyte,
  });
  return { ok: error === undefined && status === 0, stdout, said: `${stdout}${stderr}`.trim() };
}

/** Packs the repository into a folder: what npm says of the tarball. */
function pack(folder) {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const { ok, stdout, said } = execute('npm', args, root);
  if (!ok) throw new Error(`npm pack fails:\n${said}`);
  return JSON.parse(stdout)[0];
}

/** Every file that the manifest names, without the `./`. */
function promised() {
  const exported = Object.values(manifest.exports).flatMap((target) =>
    typeof target === 'string' ? [target] : Object.values(target),
  );
  return [...exported, ...Object.values(manifest.bin), ...manifest.sideEffects].map((path) =>
    path.replace(/^\.\//, ''),
  );
}

function checkContents({ files, size }) {
  const paths = files.map(({ path }) => path);
  const missing = promised().filter((path) => !paths.includes(path));
  const odd = paths.filter((path) => !allowed.some((pattern) => pattern.test(path)));
  return [
    ...missing.map(
      (path) => `${path} is promised and not there; build dist, or change package.json`,
    ),
    ...odd.map((path) => `${path} does not belong there; change "files" in package.json`),
    ...(size > mostMegabytes * megabyte
      ? [`${(size / megabyte).toFixed(2)} MB to download; ${mostMegabytes} MB are allowed`]
      : []),
  ];
}

async function checkPublint(folder) {
  const { messages } = await publint({ pkgDir: folder, strict: true });
  return messages.map((message) => formatMessage(message, manifest) ?? message.code);
}

/** Whether every entry has types of its own kind, as seen by ES modules and by bundlers. */
function checkTypes(tarball) {
  const attw = join(
    dirname(require.resolve('@arethetypeswrong/cli/package.json')),
    'dist/index.js',
  );
  const schemas = Object.keys(manifest.exports).filter((name) => name.endsWith('.json'));
  const args = [attw, tarball, '--profile', 'esm-only', '--format', 'table-flipped', '--no-emoji'];
  const { ok, said } = execute(
    process.execPath,
    [...args, '--exclude-entrypoints', ...schemas],
    root,
  );
  return ok ? [] : [said];
}

/** Programs of a user, each in a file of its own, and what Node is to print. */
function consumers() {
  const names = JSON.stringify(plainEntries);
  const count = String(plainEntries.length);
  return {
    'consumer.mjs': [
      `let seen = 0;\nfor (const name of ${names}) if (Object.keys(await import(name)).length > 0) seen++;\nconsole.log(seen);\n`,
      count,
    ],
    'consumer.cjs': [
      `let seen = 0;\nfor (const name of ${names}) if (Object.keys(require(name)).length > 0) seen++;\nconsole.log(seen);\n`,
      count,
    ],
    'audit.cjs': [
      `const { auditOutputs, RequestError } = require('flashproof');\nconsole.log(typeof auditOutputs, new RequestError('x') instanceof Error);\n`,
      'function true',
    ],
    'schema.cjs': [
      `console.log(require('flashproof/report.schema.json').$schema.slice(0, 8));\n`,
      'https://',
    ],
  };
}

/** Runs the consumers and the command in a project in which the package lies. */
function checkConsumers(project) {
  const problems = [];
  for (const [name, [text, expected]] of Object.entries(consumers())) {
    writeFileSync(join(project, name), text);
    const { said } = execute(process.execPath, [name], project);
    if (said !== expected) problems.push(`${name} prints ${said} instead of ${expected}`);
  }
  const main = join(project, 'node_modules', manifest.name, manifest.bin.flashproof);
  const { said } = execute(process.execPath, [main, '--version'], project);
  if (said !== manifest.version) problems.push(`--version prints ${said}`);
  return problems;
}

/** Compiles a user's TypeScript, as an ES module and as CommonJS, which may require ES modules. */
function checkCompilation(project) {
  const text = entries.map((name, at) => `import * as entry${at} from '${name}';\n`).join('');
  const used = entries.map((_, at) => `entry${at}`).join(', ');
  const source = `${text}export const all: readonly object[] = [${used}];\n`;
  writeFileSync(join(project, 'user.mts'), source);
  writeFileSync(join(project, 'user.cts'), source);
  const compilerOptions = {
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    types: ['node'],
    module: 'nodenext',
    target: 'es2022',
  };
  const configuration = { compilerOptions, files: ['user.mts', 'user.cts'] };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(configuration));
  const tsc = require.resolve('typescript/bin/tsc');
  const { ok, said } = execute(process.execPath, [tsc, '-p', '.'], project);
  return ok ? [] : [said];
}

// Inside node_modules, so that the package finds its dependencies.
const work = mkdtempSync(join(root, 'node_modules', '.flashproof-check-'));
try {
  const packed = pack(work);
  const tarball = join(work, packed.filename);
  const project = join(work, 'project');
  const folder = join(project, 'node_modules', manifest.name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'consumer', private: true }));
  const unpack = execute('tar', ['-xzf', tarball, '--strip-components=1', '-C', folder], root);
  if (!unpack.ok) throw new Error(`the tarball cannot be unpacked:\n${unpack.said}`);
  const size = `${(packed.size / megabyte).toFixed(2)} MB, ${packed.files.length} files`;
  const checks = {
    [`contents (${size})`]: () => checkContents(packed),
    publint: () => checkPublint(folder),
    'are the types wrong': () => checkTypes(tarball),
    'import and require': () => checkConsumers(project),
    'types of a user': () => checkCompilation(project),
  };
  for (const [name, check] of Object.entries(checks)) {
    const problems = await check();
    console.log(`${problems.length === 0 ? 'passed' : 'FAILED'}  ${name}`);
    for (const problem of problems) console.log(`  ${problem.replaceAll('\n', '\n  ')}`);
    if (problems.length > 0) process.exitCode = 1;
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
