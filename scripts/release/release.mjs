/**
 * Builds what a release publishes and checks that all of it is one version of one program: the npm tarball, and the wheel and the
 * sdist of the Python package, which hold what the tarball holds; a bill of materials of each package (CycloneDX), and a statement
 * which commit and which tools they are made of (SLSA provenance). Publishes nothing.
 *
 *   npm run release                              from a clone of HEAD, into the folder release
 *   npm run release -- --to <folder>             into another folder
 *   npm run release -- --twice                   builds all of it again, elsewhere, and compares every byte
 *   npm run release -- --installed --python <p>  with this folder's node_modules and a Python that has hatchling: no downloads
 *   npm run release -- --check <folder>          only looks at the files of a folder
 *
 * Needs git, npm, tar, python3 and what pip can install (hatchling). Exits with 1 where something disagrees, and with 2 where it
 * cannot be built.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { check } from './check.mjs';
import { execute, refuse, tell } from './execute.mjs';
import { hash, stateProvenance } from './provenance.mjs';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const workPrefix = 'flashproof-release-';
/** The text files beside the packages. */
const [npmMaterials, wheelMaterials, provenance] = [
  'npm.cdx.json',
  'pypi.cdx.json',
  'provenance.json',
];
const sums = 'SHA256SUMS';

/** Installs packages in a clone, or lends it those of this folder, and builds dist. */
function prepare(clone, installed) {
  if (!installed) {
    execute(clone, ['npm', 'ci', '--no-audit', '--no-fund']);
    return;
  }
  const packages = join(root, 'node_modules');
  if (!existsSync(packages))
    refuse('there is no node_modules here; run npm ci, or leave out --installed');
  // A folder of links: a build writes into it.
  mkdirSync(join(clone, 'node_modules'));
  for (const name of readdirSync(packages))
    if (!name.startsWith('.')) symlinkSync(join(packages, name), join(clone, 'node_modules', name));
  execute(clone, [process.execPath, 'scripts/build.mjs']);
}

/** A Python of its own with hatchling, of the version that releases are made with. */
function installHatchling(work, clone) {
  const python = join(work, 'venv', 'bin', 'python');
  execute(work, ['python3', '-m', 'venv', dirname(dirname(python))]);
  const needs = join(clone, 'python/release-requirements.txt');
  execute(work, [python, '-m', 'pip', 'install', '--quiet', '-r', needs]);
  return python;
}

/** Builds the files of HEAD in a clone of its own. */
function build(target, { installed, python: given }) {
  // Of HEAD, whatever lies beside it.
  const changed = execute(root, ['git', 'diff', 'HEAD', '--name-only']).trim().split('\n');
  if (changed[0] !== '')
    refuse(`a release is of HEAD, and ${changed.join(', ')} is not as there; commit or restore it`);
  const work = mkdtempSync(join(tmpdir(), workPrefix));
  try {
    tell('clones HEAD');
    const clone = join(work, 'clone');
    execute(work, ['git', 'clone', '--quiet', '--no-local', root, clone]);
    const [commit, moment] = execute(clone, ['git', 'log', '-1', '--format=%H %ct'])
      .trim()
      .split(' ');
    // What has times has that of the commit.
    process.env.SOURCE_DATE_EPOCH = moment;
    tell(installed ? 'builds dist' : 'installs packages and builds dist (npm ci)');
    prepare(clone, installed);
    tell('packs the npm tarball');
    const packing = ['npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', target];
    const [{ filename }] = JSON.parse(execute(clone, packing));
    if (given === undefined) tell('installs hatchling');
    const python = given ?? installHatchling(work, clone);
    tell('builds the wheel and the sdist');
    const both = ['-t', 'sdist', '-t', 'wheel', '-d', target];
    execute(join(clone, 'python'), [python, '-m', 'hatchling', 'build', ...both], {
      FLASHPROOF_TARBALL: join(target, filename),
    });
    tell('writes bills of materials and the statement of provenance');
    const materials = join(clone, 'scripts/release/bill-of-materials.mjs');
    execute(clone, [process.execPath, materials, 'npm', join(target, npmMaterials)]);
    copyFileSync(join(clone, 'python/flashproof.cdx.json'), join(target, wheelMaterials));
    const files = readdirSync(target)
      .sort()
      .map((name) => join(target, name));
    const statement = stateProvenance(clone, python, files, commit);
    writeFileSync(join(target, provenance), `${JSON.stringify(statement, null, 1)}\n`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Paths of this machine and the host that its npm downloads from, none of which a release may hold. */
function secretsOfMachine() {
  const registry = new URL(execute(root, ['npm', 'config', 'get', 'registry']).trim()).host;
  const own = registry === 'registry.npmjs.org' ? [] : [registry];
  return [`/${workPrefix}`, `${root}/`, ...own];
}

/** The lines of a file of checksums. */
function sumsOf(folder) {
  const names = readdirSync(folder).filter((name) => name !== sums);
  return names.sort().map((name) => `${hash(join(folder, name))}  ${name}`);
}

/** Builds all of it again in another folder, time zone and with files that only their owner may read: the names of what differs. */
function rebuild(folder) {
  const again = mkdtempSync(join(tmpdir(), 'flashproof again '));
  try {
    const statement = JSON.parse(readFileSync(join(folder, provenance), 'utf8'));
    const { commit } = statement.predicate.buildDefinition.externalParameters;
    // From sources of its own: those here may change meanwhile.
    const [sources, target] = [join(again, 'sources'), join(again, 'of the same commit')];
    execute(again, ['git', 'clone', '--quiet', '--no-local', root, sources]);
    execute(sources, ['git', 'checkout', '--quiet', commit]);
    const script = join(sources, 'scripts/release/release.mjs');
    tell('builds all of it again, elsewhere');
    const command = [process.execPath, script, '--to', target];
    execute(sources, ['sh', '-c', 'umask 077; exec "$@"', 'sh', ...command], {
      TZ: 'Pacific/Kiritimati',
      TMPDIR: again,
    });
    const second = new Set(sumsOf(target));
    return sumsOf(folder).filter((line) => !second.has(line));
  } finally {
    rmSync(again, { recursive: true, force: true });
  }
}

function options() {
  const flag = { type: 'boolean' };
  const text = { type: 'string' };
  const known = { to: text, check: text, python: text, installed: flag, twice: flag };
  try {
    return parseArgs({ options: known }).values;
  } catch (error) {
    return refuse(error.message);
  }
}

// npm packs files with the rights that they have here, so these must not depend on whoever builds.
process.umask(0o022);
const given = options();
if (given.twice && (given.installed || given.check !== undefined))
  refuse('--twice builds from nothing; leave out --installed, --python and --check');
const folder = resolve(given.check ?? given.to ?? join(root, 'release'));
if (given.check !== undefined) {
  if (!existsSync(folder)) refuse(`there is no folder ${folder}`);
} else {
  if (existsSync(folder) && readdirSync(folder).length > 0)
    refuse(`${folder} is not empty; give another folder, or remove it`);
  mkdirSync(folder, { recursive: true });
  build(folder, given);
}
tell(`checks ${folder}`);
const { version, problems } = check(folder, secretsOfMachine());
if (given.twice)
  for (const line of rebuild(folder))
    problems.push(`${line.slice(66)} has other bytes when it is built again`);
for (const problem of problems.slice(0, 20)) process.stdout.write(`DISAGREES  ${problem}\n`);
if (problems.length > 20) process.stdout.write(`… and ${problems.length - 20} more\n`);
if (problems.length > 0) process.exitCode = 1;
else {
  const lines = sumsOf(folder).join('\n');
  if (given.check === undefined) writeFileSync(join(folder, sums), `${lines}\n`);
  const again = given.twice ? ', and the same bytes when built again' : '';
  process.stdout.write(`${lines}\nall of version ${version}, with one program${again}\n`);
}
