import { existsSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Globals of Node.js that a browser has not. */
const nodeGlobals = ['Buffer', 'process', 'setImmediate', '__dirname', '__filename'];

/** The packages that pages are built with: all of them run in browsers. */
const packages = ['@observablehq/plot', '@petamoriken/float16', 'linkedom'];

/** What a module of JavaScript imports, now or later. */
function importsOf(code: string): string[] {
  return ts.preProcessFile(code).importedFiles.map(({ fileName }) => fileName);
}

/** The globals of Node.js that a module names, members and properties of other things aside. */
function globalsOf(path: string, code: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && nodeGlobals.includes(node.text)) {
      const { parent } = node;
      const isMember =
        (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
        (ts.isPropertyAssignment(parent) && parent.name === node);
      if (!isMember) found.push(node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, code, ts.ScriptTarget.ESNext, true));
  return found;
}

/** What is wrong with a module and all that it leads to, each with the way there. */
function faultsFrom(start: string): string[] {
  const from = new Map<string, string | null>([[start, null]]);
  const faults: string[] = [];
  for (const path of from.keys()) {
    const way: string[] = [];
    for (let at: string | null = path; at !== null; at = from.get(at) ?? null)
      way.unshift(relative(root, at));
    const { outputText } = ts.transpileModule(readFileSync(path, 'utf8'), {
      // Types are gone from this.
      compilerOptions: {
        module: ts.ModuleKind.ESNext,
        target: ts.ScriptTarget.ESNext,
        verbatimModuleSyntax: true,
      },
    });
    const say = (what: string) => faults.push(`${what}: ${way.join(' → ')}`);
    for (const name of globalsOf(path, outputText)) say(name);
    for (const specifier of importsOf(outputText)) {
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
  it.each(['browser', 'machine'])('src/%s leads to nothing of Node.js', (folder) => {
    expect(faultsFrom(join(root, 'src', folder, 'index.ts'))).toEqual([]);
  });

  it('is told from what does not', () => {
    const faults = faultsFrom(join(root, 'src/io/index.ts'));
    expect(faults).toContain('node:fs/promises: src/io/index.ts → src/io/atomic-write.ts');
    expect(faults).toContain('Buffer: src/io/index.ts → src/io/write-safetensors.ts');
  });
});
