import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import { join, posix } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fingerprintTargets } from '../../src/conform/targets.js';
import { builtDist } from '../setup/built-dist.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Manifest {
  readonly version: string;
  readonly license: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly sideEffects: readonly string[];
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: boolean }>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

interface Pack {
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly mode: number }[];
}

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

/** Every file that the manifest promises to importers, as `./path`. */
const promised = [
  ...Object.values(manifest.exports).flatMap((target) =>
    typeof target === 'string' ? [target] : Object.values(target),
  ),
  ...Object.values(manifest.bin).map((path) => `./${path}`),
  ...manifest.sideEffects,
];

/** Entry points that hold code, by the name that importers use. */
const modules = Object.entries(manifest.exports)
  .filter(([, target]) => typeof target === 'object')
  .map(([name]) => name.replace('.', 'flashproof'));

const onWindows = process.platform === 'win32';
/** What npm would publish. */
function packed(): Pack {
  const { status, stdout, stderr } = spawnSync(
    'npm',
    ['pack', '--dry-run', '--json', '--ignore-scripts'],
    { cwd: root, encoding: 'utf8', shell: onWindows },
  );
  if (status !== 0) throw new Error(`npm pack fails:\n${stderr}`);
  return (JSON.parse(stdout) as [Pack])[0];
}

describe('the package', () => {
  let paths: string[] = [];
  let pack: Pack;
  beforeAll(async () => {
    await builtDist();
    pack = packed();
    paths = pack.files.map(({ path }) => path);
  });

  it('holds every file that it promises', () => {
    for (const path of promised) expect(paths, path).toContain(path.replace('./', ''));
  });

  it('holds the fingerprints, the licence and the words', () => {
    const wanted = fingerprintTargets.map(({ stem }) => `hash_${stem}.bin`).concat('capture.json');
    for (const name of wanted) expect(paths).toContain(`fixtures/silicon/sm_90/${name}`);
    for (const name of ['README.md', 'LICENSE', 'CHANGELOG.md', 'package.json'])
      expect(paths).toContain(name);
  });

  it('holds nothing else', () => {
    const rest = paths.filter(
      (path) => !/^(dist|fixtures\/silicon\/sm_90)\/|^(README|CHANGELOG)\.md$/.test(path),
    );
    expect(rest.sort()).toEqual(['LICENSE', 'package.json']);
    const dist = paths.filter((path) => path.startsWith('dist/'));
    const odd = dist.filter(
      (path) => !/^dist\/(src|oracles|kernels|properties|chunks)\/.*\.(d\.ts|js|json)$/.test(path),
    );
    expect(odd).toEqual([]);
    expect(paths.filter((path) => /(^|\/)test\/|\.test\.|(^|\/)assembly\//.test(path))).toEqual([]);
  });

  it('has every declaration that those of its entry points lead to', () => {
    // Those of folders that no entry point leads to are left out.
    const found = new Set(promised.filter((path) => path.endsWith('.d.ts')));
    for (const path of found) {
      const text = readFileSync(join(root, path), 'utf8');
      for (const [, name] of text.matchAll(/(?:from |import\()'(\.[^']+)\.js'/g))
        found.add(`./${posix.join(posix.dirname(path), `${name}.d.ts`)}`);
    }
    expect(found.size).toBeGreaterThan(modules.length);
    for (const path of found) expect(paths, path).toContain(path.replace('./', ''));
  });

  it('is small', () => {
    // What is downloaded is mostly captures, which do not compress. Either grows by a tenth before somebody is asked why;
    // 3 MB to download is the most.
    expect(pack.size).toBeLessThan(3e6);
    expect(pack.unpackedSize).toBeLessThan(9e6);
  });

  it('imports nothing that its users do not install', () => {
    const installed = new Set([
      ...Object.keys(manifest.dependencies),
      ...Object.keys(manifest.peerDependencies),
    ]);
    const imported = new Set<string>();
    for (const path of paths.filter((name) => /\.(js|d\.ts)$/.test(name))) {
      const text = readFileSync(join(root, path), 'utf8');
      for (const { fileName: specifier } of ts.preProcessFile(text, true, true).importedFiles) {
        if (specifier.startsWith('.')) continue;
        const name = specifier
          .split('/')
          .slice(0, specifier.startsWith('@') ? 2 : 1)
          .join('/');
        const builtin = specifier.startsWith('node:') || builtinModules.includes(name);
        if (!builtin) imported.add(name);
      }
    }
    expect(imported).toContain('commander');
    expect([...imported].filter((name) => !installed.has(name))).toEqual([]);
    const unused = Object.keys(manifest.dependencies).filter((name) => !imported.has(name));
    expect(unused).toEqual([]);
  });

  it.each(['report', 'audits', 'bound', 'check'])('holds a validator of %s', async (name) => {
    const modules = paths.filter((path) => /_validate-\w+\.js$/.test(path));
    const exported = await Promise.all(
      modules.map(
        (path) =>
          import(pathToFileURL(join(root, path)).href) as Promise<
            Readonly<Record<string, (value: unknown) => boolean>>
          >,
      ),
    );
    const [validator] = exported.flatMap((module) => module[name] ?? []);
    expect(validator({})).toBe(false);
  });

  it('asks for vitest only of those who use its matcher', () => {
    expect(manifest.peerDependencies.vitest).toBe('>=4');
    expect(manifest.peerDependenciesMeta.vitest.optional).toBe(true);
    expect(manifest.license).toBe('MIT');
  });

  describe('installed', () => {
    // Inside node_modules, so that its dependencies are found as they would be.
    const copy = mkdtempSync(join(root, 'node_modules', '.flashproof-package-'));
    beforeAll(() => {
      for (const path of paths) cpSync(join(root, path), join(copy, path));
    });
    afterAll(() => rmSync(copy, { recursive: true, force: true }));

    const node = (...args: string[]) =>
      spawnSync(process.execPath, args, { cwd: copy, encoding: 'utf8' });
    const main = join(copy, manifest.bin.flashproof);

    it('runs, and knows its version', () => {
      const { status, stdout } = node(main, '--version');
      expect(status).toBe(0);
      expect(stdout.trim()).toBe(manifest.version);
      expect(readFileSync(main, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
    });

    it('finds its fingerprints and its worker threads', () => {
      const { status, stdout, stderr } = node(
        main,
        'conform',
        // One that is soon done.
        'cvt.rn.bf16x2.f32',
        '--threads=2',
      );
      expect(stderr).toBe('');
      expect(stdout).toMatch(/^PASS: /);
      expect(status).toBe(0);
    });

    it.each(modules.filter((name) => name !== 'flashproof/vitest'))('gives %s by name', (name) => {
      const program = `console.log(Object.keys(await import(${JSON.stringify(name)})).length)`;
      const { status, stdout, stderr } = node('--input-type=module', '--eval', program);
      expect(stderr).toBe('');
      expect(status).toBe(0);
      expect(Number(stdout)).toBeGreaterThan(0);
    });

    it('gives the schema by name', () => {
      const program = `
      const { createRequire } = await import('node:module');
      const schema = createRequire(process.cwd() + '/')('flashproof/report.schema.json');
      console.log(schema.$schema);`;
      const { stdout, stderr } = node('--input-type=module', '--eval', program);
      expect(stderr).toBe('');
      expect(stdout).toMatch(/^https:\/\/json-schema\.org\//);
    });

    it('has types for every entry point', () => {
      for (const target of Object.values(manifest.exports))
        if (typeof target === 'object') expect(existsSync(join(copy, target.types))).toBe(true);
    });

    it('teaches vitest its matcher', async () => {
      // By its path in node_modules, whose code vitest runs as it is.
      const path = createRequire(join(copy, 'package.json')).resolve('flashproof/vitest');
      expect(path).toBe(join(copy, 'dist/properties/vitest/index.js'));
      await import(pathToFileURL(path).href);
      expect(expect({})).toHaveProperty('toMatchAttention');
    });
  });
});
