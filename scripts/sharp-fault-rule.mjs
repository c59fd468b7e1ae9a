/**
 * The ESLint rule that lets no test of an audit be without a fault that it alone sees. Tests are told by their names: the
 * strings of arrays called `…Tests` or `…Scopes`, and of types called `…Fault` or `…FindingTest`. Each has to be part of a
 * key in the table of faults (test/audit/sharp-faults): `scale` of 'scale tile', `bound` of 'lse-bound'.
 */
import { readFileSync, statSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import tseslint from 'typescript-eslint';

const listName = /(?:Tests|Scopes)$/;
const typeName = /(?:Fault|FindingTest)$/;

/** The keys of all object literals below a node. */
function* keysBelow(node) {
  if (node === null || typeof node !== 'object') return;
  if (node.type === 'Property' && !node.computed) yield String(node.key.name ?? node.key.value);
  for (const [name, child] of Object.entries(node))
    if (name !== 'parent')
      for (const one of Array.isArray(child) ? child : [child]) yield* keysBelow(one);
}

/** The string literals below a node. */
function* stringsBelow(node) {
  if (node === null || typeof node !== 'object') return;
  if (node.type === 'Literal' && typeof node.value === 'string') yield node;
  for (const [name, child] of Object.entries(node))
    if (name !== 'parent')
      for (const one of Array.isArray(child) ? child : [child]) yield* stringsBelow(one);
}

/** The keys of a table of faults, read again once its file has changed. */
function tableReader() {
  const known = new Map();
  return (path) => {
    const { mtimeMs } = statSync(path);
    if (known.get(path)?.mtimeMs !== mtimeMs) {
      const { ast } = tseslint.parser.parseForESLint(readFileSync(path, 'utf8'), {});
      known.set(path, { mtimeMs, keys: [...keysBelow(ast.body)] });
    }
    return known.get(path).keys;
  };
}

/** Whether a key is about a test: it has the name between its spaces and hyphens. */
function isAbout(key, name) {
  return `-${key.replaceAll(' ', '-')}-`.includes(`-${name}-`);
}

/**
 * @param {object} law
 * @param {string} law.root absolute path of the repository
 * @param {Readonly<Record<string, string>>} law.tables by folder the table of its tests' faults, the deepest folder first
 */
export function sharpFaultRule({ root, tables }) {
  const keysOf = tableReader();
  return {
    meta: {
      type: 'problem',
      schema: [],
      messages: {
        fault:
          "no fault is seen by '{{name}}' alone: add one to {{table}}, or nobody notices when the test is gone",
      },
    },
    create(context) {
      const file = relative(root, context.filename).split(sep).join('/');
      const folder = Object.keys(tables).find((one) => file.startsWith(`${one}/`));
      if (folder === undefined) return {};
      const table = tables[folder];
      const check = (node) => {
        const keys = keysOf(join(root, table));
        for (const literal of stringsBelow(node))
          if (!keys.some((key) => isAbout(key, literal.value)))
            context.report({
              node: literal,
              messageId: 'fault',
              data: { name: literal.value, table },
            });
      };
      return {
        VariableDeclarator: ({ id, init }) => {
          const isList =
            init?.type === 'TSAsExpression' && init.expression.type === 'ArrayExpression';
          if (isList && listName.test(id.name ?? '')) check(init.expression);
        },
        TSTypeAliasDeclaration: ({ id, typeAnnotation }) => {
          if (!typeName.test(id.name)) return;
          const members =
            typeAnnotation.type === 'TSUnionType' ? typeAnnotation.types : [typeAnnotation];
          for (const member of members) if (member.type === 'TSLiteralType') check(member);
        },
      };
    },
  };
}
