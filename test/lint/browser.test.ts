import { existsSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Globals of Node.js that a browser has not. */
const nodeGlobals = ['Buffer', 'process', 'setImmediate', '__dirname', '__filename'];

/** The packages that pages are built with: all of them run in browsers. */
const packages = ['@observablehq/plot', '@petamoriken/float16', 'linkedom', 'quickselect'];

/** What a module leads to, and the globals of Node.js that it names; types are nothing of both. */
interface ReadModule {
  readonly imports: readonly string[];
  readonly globals: readonly string[];
}

/** Whether nothing is left of a node when types are gone. */
function isOfTypes(node: ts.Node): boolean {
  return (
    ts.isTypeNode(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    (ts.isImportDeclaration(node) && node.importClause?.isTypeOnly === true) ||
    (ts.isExportDeclaration(node) && node.isTypeOnly)
  );
}

/** The module that a node imports, now or later; null for any other node. */
function importOf(node: ts.Node): string | null {
  const named =
    ts.isImportDeclaration(node) || ts.isExportDeclaration(node)
      ? node.moduleSpecifier
      : ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
        ? node.arguments.at(0)
        : undefined;
  return named !== undefined && ts.isStringLiteral(named) ? named.text : null;
}

/** Whether an identifier is a name of its own, and no member or property of something else. */
function isOfItsOwn(node: ts.Identifier): boolean {
  const { parent } = node;
  return !(
    (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
    (ts.isPropertyAssignment(parent) && parent.name === node)
  );
}

function readModule(path: string): ReadModule {
  const imports: string[] = [];
  const globals: string[] = [];
  const visit = (node: ts.Node): void => {
    if (isOfTypes(node)) return;
    const imported = importOf(node);
    if (imported !== null) imports.push(imported);
    if (ts.isIdentifier(node) && nodeGlobals.includes(node.text) && isOfItsOwn(node))
      globals.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.ESNext, true));
  return { imports, globals };
}

/** What is wrong with a module and all that it leads to, each with the way there. */
function faultsFrom(start: string): string[] {
  const from = new Map<string, string | null>([[start, null]]);
  const faults: string[] = [];
  for (const path of from.keys()) {
    const way: string[] = [];
    for (let at: string | null = path; at !== null; at = from.get(at) ?? null)
      way.unshift(relative(root, at));
    const { imports, globals } = readModule(path);
    const say = (what: string) => faults.push(`${what}: ${way.join(' → ')}`);
    for (const name of globals) say(name);
    for (const specifier of imports) {
      if (specifier.startsWith('.')) {
        const target = join(dirname(path), specifier.replace(/\.js$/, '.ts'));
        if (!existsSync(target)) say(`${specifier} is not there`);
        else if (!from.has(target)) from.set(target, path);
      } else if (specifier.startsWith('node:') || builtinModules.includes(specifier))
        say(specifier);
      else if (!packages.includes(specifier)) say(`the package ${specifier}`);
    }
  }
  return faults;
}

describe('what runs in a browser', () => {
  inTurn.each(['browser', 'machine'])('src/%s leads to nothing of Node.js', (folder) => {
    expect(faultsFrom(join(root, 'src', folder, 'index.ts'))).toEqual([]);
  });

  it('is told from what does not', () => {
    const faults = faultsFrom(join(root, 'src/io/index.ts'));
    expect(faults).toContain('node:fs/promises: src/io/index.ts → src/io/atomic-write.ts');
    expect(faults).toContain('Buffer: src/io/index.ts → src/io/write-safetensors.ts');
  });
});
