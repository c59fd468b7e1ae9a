/**
 * The ESLint rule that keeps files from importing one another in a circle, at whatever distance. All
 * imports count: of values, of types alone, those in types (`import('./a.js').A`), and those that run
 * later. Library files name each other by relative path, so that nothing needs to be resolved.
 *
 * The rules of eslint-plugin-import and its kin leave imports of types out, and types are what ties
 * files into knots here.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import ts from 'typescript';
import { importVisitor } from './arrow-rule.mjs';

/** The source that a file imports by a specifier, relative to the root; null for a package. AssemblyScript names no extension. */
function importedSource(from, specifier) {
  if (!specifier.startsWith('.')) return null;
  return posix.join(posix.dirname(from), specifier.replace(/\.js$/, '') + '.ts');
}

/** The TypeScript sources below a folder of the root, relative to the root. */
function sourcesBelow(root, folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => posix.join(folder, path.split(sep).join('/')));
}

/** For every source the sources that import it, as they stand on disk. */
function readImporters(root, folders) {
  const importers = new Map();
  for (const from of folders.flatMap((folder) => sourcesBelow(root, folder)))
    for (const { fileName } of ts.preProcessFile(readFileSync(join(root, from), 'utf8'))
      .importedFiles) {
      const to = importedSource(from, fileName);
      if (to !== null) importers.set(to, [...(importers.get(to) ?? []), from]);
    }
  return importers;
}

/** For every source that leads to `file` by imports, the next one on a shortest way there. */
function waysTo(file, importers) {
  const next = new Map();
  const reached = [file];
  for (const to of reached)
    for (const from of importers.get(to) ?? [])
      if (from !== file && !next.has(from)) {
        next.set(from, to);
        reached.push(from);
      }
  return next;
}

/** The circle that an import of `target` closes, from `file` back to it; null for none. */
function circleThrough(file, target, next) {
  if (target !== file && !next.has(target)) return null;
  const circle = [file];
  for (let at = target; at !== file; at = next.get(at)) circle.push(at);
  return [...circle, file];
}

/**
 * @param {object} law
 * @param {string} law.root absolute path of the repository
 * @param {string[]} law.folders folders of the root whose files must not import one another in circles
 */
export function circleRule({ root, folders }) {
  // Read at the first file of a run; all others are taken to be as they were then.
  const known = { importers: null };
  return {
    meta: {
      type: 'problem',
      schema: [],
      messages: {
        circle:
          'a circle of imports, types included: {{circle}}; let a type live with its lowest user',
      },
    },
    create(context) {
      const file = relative(root, context.filename).split(sep).join('/');
      known.importers ??= readImporters(root, folders);
      const next = waysTo(file, known.importers);
      return importVisitor((node) => {
        const target = importedSource(file, node.value);
        const circle = target === null ? null : circleThrough(file, target, next);
        if (circle !== null)
          context.report({ node, messageId: 'circle', data: { circle: circle.join(' → ') } });
      });
    },
  };
}
