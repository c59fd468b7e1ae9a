import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ESLint, type Linter } from 'eslint';
import tseslint from 'typescript-eslint';
import { describe, expect, it } from 'vitest';
import { circleRule } from '../../scripts/circle-rule.mjs';
import { entriesRule } from '../../scripts/entries-rule.mjs';
import { sampled } from '../setup/effort.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));
/** What the rules say of a library of these files by path and text: `path: message`, sorted. */
async function messagesOn(files: Readonly<Record<string, string>>): Promise<string[]> {
  const root = mkdtempSync(join(tmpdir(), 'flashproof-lint-'));
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    return await messagesIn(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** What the rules say of the library in a folder. */
async function messagesIn(root: string): Promise<string[]> {
  const configuration: Linter.Config = {
    files: ['**/*.ts'],
    languageOptions: { parser: tseslint.parser as Linter.Parser },
    plugins: {
      flashproof: {
        rules: {
          circles: circleRule({ root, folders: ['src', 'kernels'] }),
          entries: entriesRule({ root, most: 25 }),
        },
      },
    },
    rules: { 'flashproof/circles': 'error', 'flashproof/entries': 'error' },
  };
  const eslint = new ESLint({ cwd: root, overrideConfigFile: true, overrideConfig: configuration });
  const results = await eslint.lintFiles(['.']);
  return results
    .flatMap(({ filePath, messages }) =>
      messages.map(({ message }) => `${filePath.slice(root.length + 1)}: ${message}`),
    )
    .sort();
}

describe('circles of files', () => {
  /** What ties two files together, beside an import of a value. */
  const ties = [
    ["import type { B } from './b.js';"],
    ["import { type B } from './b.js';"],
    ["export type { B } from './b.js';"],
    ["export * from './b.js';"],
    ["export type A = import('./b.js').B;"],
    ["export const b = () => import('./b.js');"],
  ] as const;

  it.each(ties)('are found through %s', async (tie) => {
    const messages = await messagesOn({
      'src/a.ts': `${tie}\nexport const a = 1;`,
      'src/b.ts': "import { a } from './a.js';\nexport type B = typeof a;",
    });
    expect(messages).toEqual([
      expect.stringContaining('src/a.ts: a circle of imports, types included: src/a.ts → src/b.ts'),
      expect.stringContaining('src/b.ts: a circle of imports, types included: src/b.ts → src/a.ts'),
    ]);
  });

  it('are found over several folders, with the shortest way round', async () => {
    const messages = await messagesOn({
      'src/audit/a.ts': "import { k } from '../../kernels/k.js';\nexport type A = typeof k;",
      'kernels/k.ts': "import { c } from '../src/c.js';\nexport const k = c;",
      'src/c.ts': "import type { A } from './audit/a.js';\nexport const c = null as A | null;",
      'src/far.ts': "import { c } from './c.js';\nimport { k } from '../kernels/k.js';",
    });
    expect(messages).toHaveLength(3);
    expect(messages[1]).toContain('src/audit/a.ts → kernels/k.ts → src/c.ts → src/audit/a.ts;');
  });

  it('are found in AssemblyScript, which names no extension', async () => {
    const messages = await messagesOn({
      'src/assembly/a.ts': "export { b } from './b';",
      'src/assembly/b.ts': "import { a } from './a';\nexport const b = a;",
    });
    expect(messages[0]).toContain('src/assembly/a.ts → src/assembly/b.ts → src/assembly/a.ts;');
  });

  it('are not made of common users, packages, or the import of an index', async () => {
    const messages = await messagesOn({
      'src/index.ts': "export * from './a.js';\nexport * from './b.js';",
      'src/a.ts': "import type { B } from './b.js';\nimport 'a';\nexport type A = B;",
      'src/b.ts': 'export type B = 1;',
      'src/c.ts': "import type { A } from './a.js';\nimport type { B } from './b.js';",
    });
    expect(messages).toEqual([]);
  });
});

describe('entries of a folder', () => {
  const folderOf = (files: number) =>
    Object.fromEntries(Array.from({ length: files }, (_, i) => [`src/f${i + 10}.ts`, '']));

  it('are at most 25, files and folders', async () => {
    expect(await messagesOn(folderOf(25))).toEqual([]);
  });

  it.each([
    ['file', 'src/z.ts'],
    ['folder', 'src/z/a.ts'],
    ['file of another kind', 'src/z.json'],
  ])('are reported once where a %s is the 26th', async (_, path) => {
    const messages = await messagesOn({ ...folderOf(25), [path]: '{}' });
    expect(messages).toEqual([expect.stringMatching(/^src\/f10\.ts: src has 26 entries, /)]);
  });

  it('do not count what is generated', async () => {
    expect(await messagesOn({ ...folderOf(25), 'src/a.generated.ts': '' })).toEqual([]);
  });
});

describe('the lint of this repository', () => {
  /** Rules and messages on a file that need not exist. */
  async function lint(file: string, code: string): Promise<string[]> {
    const eslint = new ESLint({ cwd: repository });
    const [{ messages }] = await eslint.lintText(code, { filePath: join(repository, file) });
    return messages.map(({ ruleId, message }) => `${ruleId}: ${message}`);
  }

  it.each(sampled(['src/audit', 'oracles', 'kernels', 'properties'], 1))(
    'finds circles in %s',
    async (folder) => {
      const code = "export type { A } from './new-file.js';";
      const messages = await lint(`${folder}/new-file.ts`, code);
      expect(messages).toContainEqual(expect.stringMatching(/^flashproof\/circles: a circle /));
    },
  );

  it('allows five parameters and no sixth', async () => {
    const withParameters = (count: number) =>
      `export function f(${Array.from({ length: count }, (_, i) => `p${i}: number`).join(', ')}) { return [${Array.from({ length: count }, (_, i) => `p${i}`).join(', ')}]; }`;
    const rule = '@typescript-eslint/max-params';
    const found = async (file: string, count: number) =>
      (await lint(file, withParameters(count))).filter((message) => message.startsWith(rule));
    expect(await found('src/audit/new-file.ts', 5)).toEqual([]);
    expect(await found('src/audit/new-file.ts', 6)).toHaveLength(1);
    expect(await found('kernels/new-file.ts', 6)).toHaveLength(1);
    expect(await found('test/new-file.ts', 6)).toEqual([]);
  });

  it.each([
    ['src/audit/a.ts', 'export const f = (x: Record<string, number>, k: string) => x[k]!;'],
    ['oracles/a.ts', 'export const f = (x: number[], i: number) => x[i]! + 1;'],
    ['properties/a.ts', 'export const f = (x: { a?: number[] }[]) => x[0]!.a;'],
  ])('lets %s assert nothing of an element', async (file, code) => {
    const messages = await lint(file, code);
    expect(messages).toContainEqual(
      expect.stringMatching(/^no-restricted-syntax: Give the record/),
    );
  });

  it('keeps the restrictions of all files in the library', async () => {
    const messages = await lint(
      'src/audit/a.ts',
      'export default { ...{ a: 1 } };\nlet b = 1;\nexport const c = () => b++;',
    );
    expect(messages.filter((message) => message.startsWith('no-restricted-syntax'))).toHaveLength(
      3,
    );
  });
});
