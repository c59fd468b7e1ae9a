/**
 * The ESLint rule that keeps a folder to as many entries as one can take in: files and folders together.
 * It reports a folder once, at the first of its sources. Generated modules do not count, since nobody
 * reads them.
 */
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, relative, sep } from 'node:path';

/** What a reader sees of a folder, with a file that need not be on disk yet. */
function entriesOf(folder, file) {
  const onDisk = existsSync(folder) ? readdirSync(folder) : [];
  return [...new Set([...onDisk, file])].filter((name) => !name.endsWith('.generated.ts')).sort();
}

/**
 * @param {object} law
 * @param {string} law.root absolute path of the repository
 * @param {number} law.most entries that a folder may have
 */
export function entriesRule({ root, most }) {
  return {
    meta: {
      type: 'problem',
      schema: [],
      messages: {
        entries:
          '{{folder}} has {{count}} entries, more than the {{most}} that one can take in; join files of one idea, or move some into a folder',
      },
    },
    create(context) {
      const folder = dirname(context.filename);
      const file = basename(context.filename);
      return {
        Program: (node) => {
          const entries = entriesOf(folder, file);
          const first = entries.find((name) => name.endsWith('.ts'));
          if (entries.length <= most || first !== file) return;
          const data = {
            folder: relative(root, folder).split(sep).join('/'),
            count: entries.length,
            most,
          };
          context.report({ node, messageId: 'entries', data });
        },
      };
    },
  };
}
