/**
 * Writes the programs of the package: one file for each entry point, for the command line and for each worker thread, at the
 * path that it has in the sources, and chunks of what they share. A process that loads some ninety files starts about
 * three times as fast as one that loads twelve hundred.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import { rolldown } from 'rolldown';
import { compiledSchemas } from './compile-schemas.mjs';

const folders = ['src', 'oracles', 'properties', 'kernels'];
const besideModule = /new URL\('(\.[^']*)\.js', import\.meta\.url\)/g;
const facadePrefix = '\0exported:';
/** Stands for `import.meta.url` until it is known in which file a module ends. */
const ofModule = /FLASHPROOF_URL_OF\("([^"]+)"\)/g;

/** The sources that are started by their path from the root on: entry points, the command line, what runs on a thread. */
function findEntries(root) {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const named = Object.values(manifest.exports).flatMap(({ default: path }) => path ?? []);
  const sourceOf = (path) => posix.relative('dist', path).replace(/\.js$/, '');
  const programs = [...named, ...Object.values(manifest.bin)].map(sourceOf);
  const sources = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
      [folder, ...name.split(sep)].join('/'),
    ),
  );
  for (const name of sources.filter((path) => path.endsWith('.ts') && !path.includes('/assembly/')))
    for (const [, path] of readFileSync(join(root, name), 'utf8').matchAll(besideModule)) {
      const started = posix.join(posix.dirname(name), path);
      if (existsSync(join(root, `${started}.ts`))) programs.push(started);
    }
  // What a module does when it is loaded is lost where another only hands on what it exports.
  const effective = new Set(manifest.sideEffects.map((path) => sourceOf(path)));
  const indexes = new Set(named.map(sourceOf).filter((path) => !effective.has(path)));
  const prefixOf = (path) => (indexes.has(path) ? facadePrefix : '');
  return Object.fromEntries(
    programs.map((path) => [path, `${prefixOf(path)}${join(root, `${path}.ts`)}`]),
  );
}

/**
 * Makes what the package exports a module that hands on what the index of a folder has. If the index itself were an entry, all that
 * it has would be loaded with whatever any file imports from it.
 */
const exportedIndexes = {
  name: 'exported-indexes',
  resolveId: (id) => (id.startsWith(facadePrefix) ? id : null),
  load(id) {
    if (!id.startsWith(facadePrefix)) return null;
    return `export * from ${JSON.stringify(id.slice(facadePrefix.length))};`;
  },
};

/** Keeps what a module finds beside itself where it was, whatever file the module ends in. */
const keepPlaces = (root) => ({
  name: 'keep-places',
  transform(code, id) {
    if (!id.startsWith(root) || !code.includes('import.meta.url')) return null;
    const place = relative(root, id).split(sep).join('/');
    return code.replaceAll('import.meta.url', `FLASHPROOF_URL_OF(${JSON.stringify(place)})`);
  },
  renderChunk(code, { fileName }) {
    if (!code.includes('FLASHPROOF_URL_OF')) return null;
    return code.replace(ofModule, (_, place) => {
      const path = posix.relative(posix.dirname(fileName), place);
      return `new URL(${JSON.stringify(path)}, import.meta.url)`;
    });
  },
});

/**
 * Bundles the package's programs.
 * @param root the repository
 * @param folder where the files are written
 */
export async function bundle(root, folder) {
  const build = await rolldown({
    cwd: root,
    input: findEntries(root),
    platform: 'node',
    external: /^[a-z@][^:]/,
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    plugins: [exportedIndexes, compiledSchemas(root), keepPlaces(root)],
  });
  try {
    await build.write({
      dir: folder,
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'chunks/[name].js',
      comments: false,
      // Downloads are a third smaller; names of functions stay, for whoever profiles.
      minify: {
        compress: false,
        mangle: { keepNames: true },
        codegen: { removeWhitespace: true },
      },
    });
  } finally {
    await build.close();
  }
}
