import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { execute, refuse } from './execute.mjs';
import { hash } from './provenance.mjs';

const manifest = 'package.json';

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

/** Which files of a folder hold one of these words, such as a path of the machine that built them; a line each. */
function revealed(folder, words, what) {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return paths
    .filter((name) => statSync(join(folder, name)).isFile())
    .flatMap((name) => {
      const bytes = readFileSync(join(folder, name));
      const found = words.filter((word) => bytes.includes(word));
      return found.map((word) => `${what}: ${name} holds ${word}, of the machine that built it`);
    });
}

/**
 * What disagrees among the files of a release, a line each, and their version.
 * @param {string} folder where the files are
 * @param {readonly string[]} secrets paths and hosts that no file may hold
 */
export function check(folder, secrets) {
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
        ...revealed(folder, secrets, 'the release'),
        ...revealed(npm, secrets, 'the npm package'),
        ...revealed(wheel, secrets, 'the wheel'),
        ...revealed(sdist, secrets, 'the sdist'),
      ],
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
