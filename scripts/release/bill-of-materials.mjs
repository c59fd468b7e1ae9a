/**
 * Writes what a package consists of, as a CycloneDX document (an SBOM): `npm sbom` on the lock file, and without what depends on
 * the machine, the folder and the moment.
 *
 *   node scripts/release/bill-of-materials.mjs npm <file>    the npm package, and what is installed beside it
 *   node scripts/release/bill-of-materials.mjs pypi <file>   the wheel: all of that lies within it
 *
 * The time is that of SOURCE_DATE_EPOCH (seconds), and is left out where that is not set.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { execute, refuse } from './execute.mjs';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const command = 'npm sbom --sbom-format cyclonedx --package-lock-only';
/** An identifier (RFC 9562, version 8) that follows from a document's content. */
function identify(document) {
  const digest = createHash('sha256').update(JSON.stringify(document)).digest('hex');
  const words = [digest.slice(0, 8), digest.slice(8, 12), `8${digest.slice(13, 16)}`];
  return `urn:uuid:${[...words, `8${digest.slice(17, 20)}`, digest.slice(20, 32)].join('-')}`;
}

/**
 * Whether a package takes part when the program runs. Optional packages of others do not: the wheel is one for all platforms. npm's own
 * `--omit` is no help: it also leaves out packages that something else needs for development (npm 11).
 */
const takesPart = ({ scope, properties }) =>
  scope === 'required' && !properties.some(({ name }) => name === 'cdx:npm:package:development');

/** What npm says of the package and the packages that it needs, named by the manifest and not by the folder. */
function describeTree() {
  const document = JSON.parse(execute(root, command.split(' ')));
  const { name } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const epoch = process.env.SOURCE_DATE_EPOCH;
  delete document.serialNumber;
  delete document.metadata.timestamp;
  if (epoch !== undefined)
    document.metadata.timestamp = new Date(1000 * Number(epoch)).toISOString();
  const own = document.metadata.component;
  own.name = name;
  document.components = document.components.filter(takesPart);
  const known = new Set([own, ...document.components].map((one) => one['bom-ref']));
  document.dependencies = document.dependencies
    .filter(({ ref }) => known.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => known.has(one)) }));
  return document;
}

/** The Python packages that the wheel has pip install. */
function requirements() {
  const text = readFileSync(join(root, 'python/pyproject.toml'), 'utf8');
  const list = /^dependencies = \[(.*)\]$/m.exec(text)?.[1] ?? '';
  return [...list.matchAll(/"([\w-]+)/g)].map(([, name]) => name);
}

/** The document of the wheel, which holds the npm package and all that this needs. */
function asWheel(document) {
  const npm = document.metadata.component;
  const purl = `pkg:pypi/${npm.name}@${npm.version}`;
  const installed = requirements().map((name) => ({
    'bom-ref': `pkg:pypi/${name}`,
    type: 'library',
    name,
    scope: 'required',
    purl: `pkg:pypi/${name}`,
  }));
  return {
    ...document,
    metadata: { ...document.metadata, component: { ...npm, 'bom-ref': purl, purl } },
    components: [npm, ...document.components, ...installed],
    dependencies: [
      { ref: purl, dependsOn: [npm['bom-ref'], ...installed.map((one) => one['bom-ref'])] },
      ...document.dependencies,
      ...installed.map((one) => ({ ref: one['bom-ref'], dependsOn: [] })),
    ],
  };
}

const [kind, file, ...rest] = process.argv.slice(2);
if (!['npm', 'pypi'].includes(kind) || file === undefined || rest.length > 0)
  refuse('give npm or pypi, and the file to write');
const tree = describeTree();
const document = kind === 'npm' ? tree : asWheel(tree);
const { $schema, bomFormat, specVersion, ...others } = document;
const serialNumber = identify(document);
writeFileSync(
  resolve(file),
  `${JSON.stringify({ $schema, bomFormat, specVersion, serialNumber, ...others }, null, 1)}\n`,
);
