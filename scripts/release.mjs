/**
 * Builds what a release publishes and checks that all of it is one version of one program: the npm tarball, and the wheel and the
 * sdist of the Python package, which hold what the tarball holds. Publishes nothing.
 *
 *   node scripts/release.mjs [--to <folder>]    from a clone of HEAD, into a folder (default: release)
 *   node scripts/release.mjs --check <folder>   only looks at the three files of a folder
 *
 * Needs git, npm, tar, python3 and what pip can install (hatchling). Exits with 1 where something disagrees, and with 2 where it
 * cannot be built.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const manifest = 'package.json';

/** Ends with one line that says why nothing can be built. */
function refuse(reason) {
  process.stderr.write(`release: ${reason}\n`);
  process.exit(2);
}

/** What a command prints; refuses with its last lines where it fails. */
function execute(folder, [command, ...words], environment = {}) {
  const { status, error, stdout, stderr } = spawnSync(command, words, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, ...environment },
    maxBuffer: 2 ** 28,
  });
  if (error !== undefined) refuse(`${command} cannot be started: ${error.message}`);
  if (status !== 0) {
    const said = `${stdout}${stderr}`.trim().split('\n').slice(-8).join('\n  ');
    refuse(`${[command, ...words].join(' ')} fails with status ${status}:\n  ${said}`);
  }
  return stdout;
}

/** Builds the three files of HEAD in a clone of its own. */
function build(target) {
  const changed = execute(root, ['git', 'status', '--porcelain']).trim();
  if (changed !== '')
    refuse(`commit first: a release is of HEAD, and ${changed.split('\n').length} files differ`);
  const work = mkdtempSync(join(tmpdir(), 'flashproof-release-'));
  try {
    const clone = join(work, 'clone');
    execute(work, ['git', 'clone', '--quiet', '--no-local', root, clone]);
    execute(clone, ['npm', 'ci', '--no-audit', '--no-fund']);
    const packing = ['npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', target];
    const [{ filename }] = JSON.parse(execute(clone, packing));
    const python = join(work, 'venv', 'bin', 'python');
    execute(work, ['python3', '-m', 'venv', dirname(dirname(python))]);
    execute(work, [python, '-m', 'pip', 'install', '--quiet', 'hatchling']);
    const both = ['-t', 'sdist', '-t', 'wheel', '-d', target];
    execute(join(clone, 'python'), [python, '-m', 'hatchling', 'build', ...both], {
      FLASHPROOF_TARBALL: join(target, filename),
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The one file of a folder with a name of this kind. */
function only(folder, pattern) {
  const found = readdirSync(folder).filter((name) => pattern.test(name));
  if (found.length !== 1)
    refuse(`${folder} has ${found.length} files like ${pattern.source}; one is due`);
  return join(folder, found[0]);
}

/** The hashes of the files below a folder, by path. */
function hashes(folder) {
  if (!existsSync(folder)) return new Map();
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
  return new Map(paths.map((path) => [relative(folder, path), hash(path)]));
}

function hash(path) {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** In what two folders differ, a line for each file. */
function differences(first, second, what) {
  const [here, there] = [hashes(first), hashes(second)];
  const names = [...new Set([...here.keys(), ...there.keys()])].sort();
  if (names.length === 0) return [`${what}: there is nothing in it`];
  return names
    .filter((name) => here.get(name) !== there.get(name))
    .map((name) => {
      if (!here.has(name)) return `${what}: ${name} is too many`;
      return `${what}: ${name} ${there.has(name) ? 'differs' : 'is missing'}`;
    });
}

function pythonVersion(path) {
  return /^Version: (.*)$/m.exec(readFileSync(path, 'utf8'))?.[1];
}

/** What disagrees among the files of a release, a line each. */
function check(folder) {
  const files = {
    tarball: only(folder, /^flashproof-.*\.tgz$/),
    wheel: only(folder, /^flashproof-.*\.whl$/),
    sdist: only(folder, /^flashproof-.*\.tar\.gz$/),
  };
  const work = mkdtempSync(join(tmpdir(), 'flashproof-release-'));
  try {
    const [npm, wheel, sdist] = Object.keys(files).map((name) => join(work, name));
    for (const one of [npm, wheel, sdist]) mkdirSync(one);
    execute(work, ['tar', '-xzf', files.tarball, '-C', npm, '--strip-components=1']);
    execute(work, ['tar', '-xzf', files.sdist, '-C', sdist, '--strip-components=1']);
    execute(work, ['python3', '-m', 'zipfile', '-e', files.wheel, wheel]);
    const { version } = JSON.parse(readFileSync(join(npm, manifest), 'utf8'));
    const information = readdirSync(wheel).find((name) => name.endsWith('.dist-info'));
    const versions = {
      'the name of the tarball': /-(.*)\.tgz$/.exec(basename(files.tarball))[1],
      'the name of the wheel': basename(files.wheel).split('-')[1],
      'the name of the sdist': /-(.*)\.tar\.gz$/.exec(basename(files.sdist))[1],
      'the wheel': pythonVersion(join(wheel, information, 'METADATA')),
      'the sdist': pythonVersion(join(sdist, 'PKG-INFO')),
    };
    const inside = 'flashproof/_javascript/node_modules/flashproof';
    const own = join(sdist, 'flashproof');
    const changes = readFileSync(join(npm, 'CHANGELOG.md'), 'utf8');
    return {
      version,
      problems: [
        ...Object.entries(versions)
          .filter(([, one]) => one !== version)
          .map(([name, one]) => `${name} is of ${one}, and the npm package of ${version}`),
        ...(changes.includes(`\n## [${version}]`)
          ? []
          : [`CHANGELOG.md has no section for ${version}`]),
        ...differences(npm, join(wheel, inside), 'the npm package within the wheel'),
        ...differences(own, join(wheel, 'flashproof'), 'the wheel, beside the sdist'),
      ],
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const [flag, given, ...rest] = process.argv.slice(2);
if (rest.length > 0 || ![undefined, '--to', '--check'].includes(flag) || (flag && !given))
  refuse('give nothing, --to <folder> or --check <folder>');
const folder = resolve(given ?? join(root, 'release'));
if (flag === '--check') {
  if (!existsSync(folder)) refuse(`there is no folder ${folder}`);
} else {
  if (existsSync(folder) && readdirSync(folder).length > 0)
    refuse(`${folder} is not empty; give another folder, or remove it`);
  mkdirSync(folder, { recursive: true });
  build(folder);
}
const { version, problems } = check(folder);
for (const problem of problems.slice(0, 20)) process.stdout.write(`DISAGREES  ${problem}\n`);
if (problems.length > 20) process.stdout.write(`… and ${problems.length - 20} more\n`);
if (problems.length > 0) process.exitCode = 1;
else {
  const names = readdirSync(folder).filter((name) => /\.(tgz|whl|gz)$/.test(name));
  const sums = names.map((name) => `${hash(join(folder, name))}  ${name}\n`).join('');
  if (flag !== '--check') writeFileSync(join(folder, 'SHA256SUMS'), sums);
  process.stdout.write(`${sums}all of version ${version}, with one program\n`);
}
