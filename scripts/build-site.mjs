/**
 * Builds the pages into site/dist: those for browsers (Vite), and beside them the documentation with its
 * search and the reference (TypeDoc). All addresses are relative. Fails where a link of any page leads
 * nowhere.
 *
 *   node scripts/build-site.mjs
 *   node scripts/build-site.mjs --documents <folder>  only the documentation, into docs of a folder
 *   node scripts/build-site.mjs --check <folder>      only looks at the links of a folder
 */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Runs a tool of the package; ends with its status where it fails. */
function run(tool, ...words) {
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules', tool), ...words], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}

function htmlFiles(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.html'))
    .map((name) => join(folder, name));
}

/** The way back from the certificate, which is a page by itself wherever the command writes it. */
const wayBack = `<nav aria-label="Site"><ul>${[
  ['../index.html', 'flashproof'],
  ['../certificate.html', 'What a certificate is'],
  ['../docs/documents/reference_certificates.html', 'What each line proves'],
  ['../docs/index.html', 'Documentation'],
]
  .map(([address, title]) => `<li><a href="${address}">${title}</a></li>`)
  .join('')}</ul></nav>`;

/** Certifies the example's kernel, and writes the page; ends with 1 where it is not certified. dist/ must be built. */
function writeCertificate(out) {
  mkdirSync(join(out, 'certificate'));
  const launch = 'examples/triton/recorded/sm_100-lines/launch.json';
  const page = join(out, 'certificate/attention.html');
  const words = [
    ...['certify', launch, '--source', 'examples/triton/attention.py'],
    ...['--schedules', '2', '--html', page, '--quiet'],
  ];
  const { status } = spawnSync(process.execPath, [join(root, 'dist/src/cli/main.js'), ...words], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(1);
  const html = readFileSync(page, 'utf8');
  writeFileSync(
    page,
    html.replace('<body>', () => `<body>${wayBack}`),
  );
}

/** TypeDoc writes the links of its menu as they are, on pages of every depth. */
function rebaseMenu(docs) {
  const links = ['audit.html', 'laboratory.html', 'timeline.html', 'certificate.html'];
  for (const page of htmlFiles(docs)) {
    const up = relative(dirname(page), dirname(docs)).replaceAll('\\', '/');
    const text = links.reduce(
      (html, name) => html.replaceAll(`href="../${name}"`, `href="${up}/${name}"`),
      readFileSync(page, 'utf8'),
    );
    writeFileSync(page, text);
  }
}

/**
 * TypeDoc copies the files that documents link to, but no folders: such a link leads to the folder's README,
 * or is none where it has none.
 */
function mendFolderLinks(docs) {
  const { projectDocuments } = JSON.parse(readFileSync(join(root, 'site/typedoc.json'), 'utf8'));
  for (const path of projectDocuments.map((listed) => join(root, 'site', listed))) {
    const source = readFileSync(path, 'utf8');
    const shelf = basename(dirname(path));
    const page = join(docs, 'documents', `${shelf}_${basename(path, '.md')}.html`);
    let html = readFileSync(page, 'utf8');
    for (const [, link] of source.matchAll(/\]\((\.\.\/[^)#]*?)\/?\)/g)) {
      const folder = join(dirname(path), link);
      if (!existsSync(folder) || !statSync(folder).isDirectory()) continue;
      const written = `href="../media/${basename(folder)}"`;
      const readme = join(folder, 'README.md');
      const copy = `${relative(root, folder).split(sep).join('-')}.md`;
      if (existsSync(readme)) {
        cpSync(readme, join(docs, 'media', copy));
        html = html.replace(written, `href="../media/${copy}"`);
      } else html = html.replace(` ${written}`, '');
    }
    writeFileSync(page, html);
  }
}

/** The places of a page that a link can name. */
function anchorsOf(html) {
  return new Set([...html.matchAll(/\s(?:id|name)="([^"]*)"/g)].map(([, id]) => id));
}

/** The links of all pages that lead nowhere, each with its page. */
function brokenLinks(folder) {
  const texts = new Map(htmlFiles(folder).map((path) => [path, readFileSync(path, 'utf8')]));
  const anchors = new Map([...texts].map(([path, html]) => [path, anchorsOf(html)]));
  return [...texts].flatMap(([page, html]) =>
    [...html.matchAll(/\s(?:href|src)="([^"]*)"/g)].flatMap(([, link]) => {
      const address = link.replaceAll('&amp;', '&');
      if (/^[a-z]+:/i.test(address) || address === '') return [];
      const [path, anchor = ''] = address.split('#');
      let target = path === '' ? page : join(dirname(page), decodeURI(path.split('?')[0]));
      if (existsSync(target) && statSync(target).isDirectory()) target = join(target, 'index.html');
      const place = decodeURIComponent(anchor);
      const [, example] = /^example=(.*)$/.exec(place) ?? [];
      if (example !== undefined) {
        const isThere = existsSync(join(dirname(target), `examples/${example}.safetensors`));
        return isThere ? [] : [`${relative(folder, page)}: ${link}`];
      }
      const isThere =
        existsSync(target) &&
        (place === '' || !anchors.has(target) || anchors.get(target).has(place));
      return isThere ? [] : [`${relative(folder, page)}: ${link}`];
    }),
  );
}

const [flag, given] = process.argv.slice(2);
const out = given ?? join(root, 'site/dist');
if (flag === undefined) {
  run('vite/bin/vite.js', 'build', '--config', 'site/vite.config.ts');
  writeCertificate(out);
}
if (flag !== '--check') {
  run('typedoc/bin/typedoc', '--options', 'site/typedoc.json', '--out', join(out, 'docs'));
  rebaseMenu(join(out, 'docs'));
  mendFolderLinks(join(out, 'docs'));
}
// Documents alone lead to pages that are not there.
if (flag !== '--documents') {
  const broken = brokenLinks(out);
  for (const link of broken) process.stderr.write(`leads nowhere: ${link}\n`);
  process.stdout.write(`${broken.length} links lead nowhere\n`);
  if (broken.length > 0) process.exitCode = 1;
}
