/**
 * The ESLint rule that holds the library to its arrows of dependence. It works on paths alone, so it
 * needs no import resolver and judges files that do not exist yet.
 *
 * An element is a folder directly below src, or the deepest folder below it that the arrows list; a
 * folder of the root that is listed in the arrows; or a file directly below src. Between elements:
 * - an import must follow an arrow;
 * - a folder is entered through its index only, but for AssemblyScript, of which a module is compiled from files of
 *   several folders `assembly`;
 * - nothing outside the elements (tests, scripts, the package by its own name) is imported.
 */
import { posix, relative, sep } from 'node:path';

/** The element that a path relative to the root belongs to, or null. */
function elementOf(path, { rootFolders, arrows }) {
  const [first, second, ...rest] = path.split('/');
  if (rootFolders.includes(first) && second !== undefined) return { name: first, folder: first };
  if (first !== 'src' || second === undefined) return null;
  for (let depth = rest.length; depth > 0; depth--) {
    const name = [second, ...rest].slice(0, depth).join('/');
    if (depth === 1 || arrows[name] !== undefined) return { name, folder: `src/${name}` };
  }
  return { name: second.replace(/\.[jt]s$/, ''), folder: null };
}

/** Whether a path is that of an AssemblyScript file. */
function isAssembly(path) {
  return posix.basename(posix.dirname(path)) === 'assembly';
}

/** What is wrong with an import of `specifier` by the file `from`, or null. */
function fault(from, specifier, law) {
  const { arrows, shared, packageName } = law;
  if (specifier === packageName || specifier.startsWith(`${packageName}/`))
    return { messageId: 'self', data: { specifier } };
  if (!specifier.startsWith('.')) return null;
  const path = posix.join(posix.dirname(from), specifier);
  const source = elementOf(from, law);
  const target = elementOf(path, law);
  if (target === null) return { messageId: 'outside', data: { path } };
  if (source.name === target.name) return null;
  const allowed = arrows[source.name];
  if (!shared.includes(target.name) && !allowed.includes(target.name))
    return {
      messageId: 'arrow',
      data: {
        from: source.name,
        to: target.name,
        allowed: [...allowed, ...shared].filter((name) => name !== source.name).join(', '),
      },
    };
  const index = `${target.folder}/index.js`;
  if (isAssembly(from) && isAssembly(path)) return null;
  if (target.folder !== null && path !== index) return { messageId: 'deep', data: { path, index } };
  return null;
}

/** A visitor that calls `check` with every literal by which a file names a module that it imports. */
export function importVisitor(check) {
  const checkLiteral = (node) => {
    if (typeof node?.value === 'string') check(node);
  };
  return {
    ImportDeclaration: (node) => checkLiteral(node.source),
    ExportNamedDeclaration: (node) => checkLiteral(node.source),
    ExportAllDeclaration: (node) => checkLiteral(node.source),
    ImportExpression: (node) => checkLiteral(node.source),
    TSImportType: (node) => checkLiteral(node.source ?? node.argument?.literal),
    TSExternalModuleReference: (node) => checkLiteral(node.expression),
  };
}

/**
 * @param {object} law
 * @param {string} law.root absolute path of the repository
 * @param {Record<string, string[]>} law.arrows per element the elements it may import
 * @param {string[]} law.shared elements that every element may import
 * @param {string[]} law.rootFolders elements that are folders of the root instead of src
 * @param {string} law.packageName
 */
export function arrowRule(law) {
  return {
    meta: {
      type: 'problem',
      schema: [],
      messages: {
        arrow:
          '{{from}} may not import {{to}}; it may import {{allowed}} (eslint.config.js, arrows)',
        deep: 'import {{index}}, the public part of the folder, instead of {{path}}',
        outside: '{{path}} is no part of the library; the library imports only itself and packages',
        self: 'import by relative path instead of by the package name {{specifier}}',
        unknown: '{{name}} has no arrows; say in eslint.config.js what it may import',
      },
    },
    create(context) {
      const from = relative(law.root, context.filename).split(sep).join('/');
      const source = elementOf(from, law);
      if (source === null || law.arrows[source.name] === undefined)
        return {
          Program: (node) =>
            context.report({ node, messageId: 'unknown', data: { name: source?.name ?? from } }),
        };
      return importVisitor((node) => {
        const found = fault(from, node.value, law);
        if (found !== null) context.report({ node, ...found });
      });
    },
  };
}
