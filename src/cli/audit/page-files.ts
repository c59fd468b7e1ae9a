import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { makeFolder } from '../../io/index.js';
import type { PageOf } from '../../report/html/index.js';
import { RequestError } from '../../request-error.js';

/** The folder of the pages that an index leads to: beside it. */
function pageFolder(index: string): string {
  return `${index.replace(/\.html?$/i, '')}-files`;
}

/** The name of a page: a number, since two files may have one name, and the safe characters of the file's name. */
function pageName(path: string, position: number): string {
  const name = basename(path).replace(/[^\w.-]+/g, '-');
  return `${String(position + 1).padStart(3, '0')}-${name}.html`;
}

/** The file of the page of one of several files, counted from 0. */
export function pagePath(index: string, path: string, position: number): string {
  return join(pageFolder(index), pageName(path, position));
}

/** The page of each file, as the index names it; null of those that have none. */
export function existingPages(index: string): PageOf {
  return ({ path }, position) =>
    existsSync(pagePath(index, path, position))
      ? `${basename(pageFolder(index))}/${pageName(path, position)}`
      : null;
}

/**
 * Makes the folder of the pages.
 * @throws RequestError where it cannot be made, and for an index on standard output
 */
export async function makePageFolder(index: string): Promise<void> {
  if (index === '-')
    throw new RequestError(
      '--html of several files is an index and a page for each; name a file for the index',
    );
  await makeFolder(pageFolder(index), '--html');
}
