import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';
import { execute } from './execute.mjs';

/** Files of the commit that decide which packages of others take part. */
const decisive = ['package-lock.json', 'python/pyproject.toml', 'python/release-requirements.txt'];
/** What makes these files, by URI: a package has no address of its own, so it is named by its purl. */
const buildType = 'pkg:npm/flashproof#scripts/release';

/**
 * The SHA-256 of a file, in hexadecimal digits.
 * @param {string} path the file
 */
export function hash(path) {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** Prints the versions of Python, its zlib, hatchling and what this needs. */
const versionsOfPython = `
import importlib.metadata as packages, platform, re, zlib
print(f"pkg:generic/python@{platform.python_version()}")
print(f"pkg:generic/zlib@{zlib.ZLIB_RUNTIME_VERSION}#python")
needs = [re.match(r"[\\w-]+", text)[0] for text in packages.requires("hatchling") if ";" not in text]
for name in ["hatchling", *sorted(needs)]:
    print(f"pkg:pypi/{name}@{packages.version(name)}")
`;

/** The programs that took part, each by its purl; other versions of zlib in them may give other bytes. */
function tools(clone, python) {
  const line = (words) => execute(clone, words).trim();
  return [
    `pkg:generic/node@${process.versions.node}`,
    `pkg:generic/zlib@${process.versions.zlib}#node`,
    `pkg:npm/npm@${line(['npm', '--version'])}`,
    ...line([python, '-c', versionsOfPython]).split('\n'),
  ];
}

/**
 * An in-toto statement with SLSA's predicate of provenance (version 1): which files were made, of which commit, lock file and tools. It
 * holds no moment, path or host, so that whoever builds the same commit with the same tools gets the same statement. It is not signed.
 * @param {string} clone the commit's files
 * @param {string} python the interpreter that made the wheel
 * @param {readonly string[]} files what was made
 * @param {string} commit the commit's hash
 */
export function stateProvenance(clone, python, files, commit) {
  const digestOf = (path) => ({ digest: { sha256: hash(path) } });
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: files.map((path) => ({ name: basename(path), ...digestOf(path) })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType,
        externalParameters: { commit },
        resolvedDependencies: [
          { name: 'sources', digest: { gitCommit: commit } },
          ...decisive.map((name) => ({ name, ...digestOf(join(clone, name)) })),
          ...tools(clone, python).map((uri) => ({ uri })),
        ],
      },
      runDetails: { builder: { id: buildType } },
    },
  };
}
