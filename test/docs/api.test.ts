import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const root = fileURLToPath(new URL('../..', import.meta.url));

interface TypedocOptions {
  readonly entryPoints: readonly string[];
  readonly tsconfig: string;
}
interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
}

const typedoc = JSON.parse(readFileSync(join(root, 'typedoc.json'), 'utf8')) as TypedocOptions;
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

/** The exports of an entry point that no comment describes, where they are declared. */
function undocumented(program: ts.Program, entry: string): string[] {
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(join(root, entry))!;
  return checker.getExportsOfModule(checker.getSymbolAtLocation(source)!).flatMap((exported) => {
    const isAlias = (exported.flags & ts.SymbolFlags.Alias) !== 0;
    const symbol = isAlias ? checker.getAliasedSymbol(exported) : exported;
    if (symbol.getDocumentationComment(checker).length > 0) return [];
    const file = symbol.declarations?.[0]?.getSourceFile().fileName ?? entry;
    return [`${exported.name} in ${file.replace(root, '')}`];
  });
}

describe('the pages that npm run docs:api writes', () => {
  it('are of every entry point of the package', () => {
    const entries = Object.values(manifest.exports).flatMap((target) =>
      typeof target === 'string' ? [] : [target.types],
    );
    const sources = entries.map((path) => path.replace('./dist/', '').replace('.d.ts', '.ts'));
    expect([...typedoc.entryPoints].sort()).toEqual(sources.sort());
  });

  inTurn('say what every exported name is', () => {
    const path = join(root, typedoc.tsconfig);
    const parsed = ts.parseJsonConfigFileContent(
      ts.readConfigFile(path, ts.sys.readFile).config,
      ts.sys,
      dirname(path),
    );
    const entries = typedoc.entryPoints.map((entry) => join(root, entry));
    // Comments of the package's own names only: without the types of the language and of others.
    const options = { ...parsed.options, noLib: true, types: [] };
    const host = ts.createCompilerHost(options);
    host.resolveModuleNameLiterals = (literals, from) =>
      literals.map(({ text }) =>
        text.startsWith('.')
          ? ts.resolveModuleName(text, from, options, host)
          : { resolvedModule: undefined },
      );
    const program = ts.createProgram(entries, options, host);
    for (const entry of typedoc.entryPoints) expect(undocumented(program, entry)).toEqual([]);
  });
});
