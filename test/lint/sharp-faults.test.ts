import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ESLint, type Linter } from 'eslint';
import tseslint from 'typescript-eslint';
import { describe, expect, it } from 'vitest';
import { sharpFaultRule } from '../../scripts/sharp-fault-rule.mjs';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const repository = fileURLToPath(new URL('../..', import.meta.url));

const table = "export const faults = { 'scale tile': 1, ...{ 'non-finite': 2 }, 'lse-bound': 3 };";

/** The tests without a fault, of a file in a library whose table is the one above. */
async function withoutFault(text: string, path = 'src/audit/a.ts'): Promise<string[]> {
  const root = mkdtempSync(join(tmpdir(), 'flashproof-lint-'));
  try {
    for (const [name, content] of [
      ['test/faults.ts', table],
      [path, text],
    ] as const) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), content);
    }
    const rule = sharpFaultRule({ root, tables: { 'src/audit': 'test/faults.ts' } });
    const overrideConfig: Linter.Config = {
      files: ['**/*.ts'],
      languageOptions: { parser: tseslint.parser as Linter.Parser },
      plugins: { flashproof: { rules: { faults: rule } } },
      rules: { 'flashproof/faults': 'error' },
    };
    const eslint = new ESLint({ cwd: root, overrideConfigFile: true, overrideConfig });
    const results = await eslint.lintFiles([path]);
    return results.flatMap(({ messages }) =>
      messages.map(({ message }) => /'(.*?)'/.exec(message)?.[1] ?? message),
    );
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

describe('tests of an audit without a fault of their own', () => {
  it.each([
    ["export const structureTests = ['scale', 'bias'] as const;", ['bias']],
    ["const rowScopes = ['tile', 'row'] as const;", ['row']],
    ["export type Fault = 'non-finite' | 'bound' | 'drift';", ['drift']],
    ["export type FindingTest = 'lse-bound' | `${string}-rms` | 'shift';", ['shift']],
    ["type NewFault = 'gap';", ['gap']],
  ])('are reported: %s', async (text, missing) => {
    expect(await withoutFault(text)).toEqual(missing);
  });

  it.each([
    "export const formTests = ['non-finite', 'lse', 'scale'] as const;",
    "export const words = ['anything'] as const;",
    "export type Verdict = 'pass' | 'fail';",
  ])('are not: %s', async (text) => {
    expect(await withoutFault(text)).toEqual([]);
  });

  it('are no matter of other folders', async () => {
    expect(await withoutFault("export const xTests = ['new'] as const;", 'src/io/a.ts')).toEqual(
      [],
    );
  });
});

describe('the tests of this repository', () => {
  const lint = async (path: string, change: (text: string) => string) => {
    const eslint = new ESLint({ cwd: repository });
    const text = change(readFileSync(join(repository, path), 'utf8'));
    const [{ messages }] = await eslint.lintText(text, { filePath: join(repository, path) });
    return messages.filter(({ ruleId }) => ruleId === 'flashproof/sharp-faults');
  };

  inTurn.each([
    ['src/audit/structure/structure-result.ts', "  'dispersion',", "  'dispersion',\n  'drift',"],
    ['src/audit/spread-test.ts', "['tile', 'head']", "['tile', 'head', 'sequence']"],
    ['src/audit/findings.ts', "type Fault = 'non-finite'", "type Fault = 'gap' | 'non-finite'"],
    // A name of the forward is none of the gradients.
    [
      'src/audit/gradients/structure/gradient-statistic.ts',
      "['scale', 'sum', 'pairing']",
      "['scale', 'sum', 'pairing', 'dispersion']",
    ],
  ])('have their faults, and a new one in %s has to get its own', async (path, old, added) => {
    expect(await lint(path, (text) => text)).toEqual([]);
    const change = (text: string) => {
      expect(text).toContain(old);
      return text.replace(old, added);
    };
    expect(await lint(path, change)).toHaveLength(1);
  });
});
