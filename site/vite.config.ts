import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';
import { exampleDumps } from './example-dumps';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const { version } = JSON.parse(readFileSync(here('../package.json'), 'utf8')) as {
  readonly version: string;
};

/**
 * Writes the service worker, with the names of all files of the build but the examples', which it keeps once they are asked
 * for: what was visited once works without a network. Another content is another worker, so that no page stays an old one.
 */
function offline(): Plugin {
  return {
    name: 'offline',
    writeBundle({ dir = here('dist') }) {
      const files = readdirSync(dir, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => relative(dir, join(entry.parentPath, entry.name)).split(sep).join('/'));
      const hash = createHash('sha256');
      for (const file of files) hash.update(file).update(readFileSync(join(dir, file)));
      const digest = hash.digest('hex').slice(0, 12);
      const first = files.filter((file) => !file.startsWith('examples/'));
      const source = readFileSync(here('src/offline-worker.js'), 'utf8')
        .replace('__FILES__', JSON.stringify([...first, './']))
        .replace('__NAME__', JSON.stringify(`flashproof-${version}-${digest}`));
      writeFileSync(join(dir, 'offline-worker.js'), source);
    },
  };
}

/** The pages, in the order of their menu; the documentation is built beside them. */
const pages = [
  ['index.html', 'flashproof'],
  ['audit.html', 'Audit a dump'],
  ['laboratory.html', 'Laboratory'],
  ['timeline.html', 'Timeline'],
  ['certificate.html', 'A certificate'],
] as const;

/** What a page may load and do, as its browser sees to it: nothing but its own files. */
const policy = {
  'default-src': "'none'",
  'script-src': "'self' 'wasm-unsafe-eval'",
  'style-src': "'self' 'unsafe-inline'",
  'worker-src': "'self'",
  'connect-src': "'self'",
  'img-src': "'self' data:",
  'frame-src': 'blob:',
  'base-uri': "'none'",
  'form-action': "'none'",
};

/** What the head of every page holds beside its title and description. */
const head = [
  '<meta charset="utf-8" />',
  '<meta name="viewport" content="width=device-width, initial-scale=1" />',
  `<meta http-equiv="Content-Security-Policy" content="${Object.entries(policy)
    .map((rule) => rule.join(' '))
    .join('; ')}" />`,
  '<link rel="icon" href="./favicon.svg" type="image/svg+xml" />',
  '<link rel="stylesheet" href="./src/style.css" />',
].join('\n    ');

/** What every page begins with: its head, the way past the menu, and that. */
function frame(): Plugin {
  const link = (name: string, title: string, current: string) =>
    `<li><a href="./${name}"${name === current ? ' aria-current="page"' : ''}>${title}</a></li>`;
  return {
    name: 'frame',
    transformIndexHtml: {
      // Before Vite looks for what the pages load.
      order: 'pre',
      handler: (html, { filename }) => {
        for (const place of ['<!-- head -->', '<!-- menu -->'])
          if (!html.includes(place)) throw new Error(`${filename} has no ${place}`);
        const current = basename(filename);
        const links = [...pages, ['docs/index.html', 'Documentation'] as const]
          .map(([name, title]) => link(name, title, current))
          .join('');
        return html
          .replace('<!-- head -->', head)
          .replace(
            '<!-- menu -->',
            `<a class="skip" href="#main">Skip to the content</a><header><nav aria-label="Pages"><ul>${links}</ul></nav></header>`,
          );
      },
    },
  };
}

export default defineConfig({
  root: here('.'),
  // Relative, so that the pages work below any address.
  base: './',
  define: { __VERSION__: JSON.stringify(version) },
  resolve: {
    // Its one file for workers has a DOM without Node.js.
    alias: { linkedom: here('../node_modules/linkedom/worker.js') },
  },
  plugins: [frame(), exampleDumps(), offline()],
  worker: { format: 'es' },
  build: {
    target: 'es2022',
    outDir: here('dist'),
    emptyOutDir: true,
    rollupOptions: {
      input: pages.map(([name]) => here(name)),
    },
  },
});
