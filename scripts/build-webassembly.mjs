/**
 * Compiles every AssemblyScript module to WebAssembly with SIMD and embeds it as base64 in a
 * TypeScript file beside it, so that the same import works from the sources, from dist and from a
 * bundler. The file also has what writes the module's structs (`assembly-structs.mjs`). A module whose
 * output is newer than every AssemblyScript file and these scripts is left alone.
 *
 * A function below a line `// @inline` is inlined: AssemblyScript's decorator in its place would be no TypeScript,
 * so that neither the lint nor the formatter could read the file.
 */
import {
  existsSync,
  readFileSync,
  readdirSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { structWriters } from './assembly-structs.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** source → generated TypeScript file */
const modules = [
  ['oracles/attention/assembly/tile-kernels.ts', 'oracles/attention/tile-kernels.generated.ts'],
  ['src/formats/assembly/short-formats.ts', 'src/formats/short-formats.generated.ts'],
  ['src/simd/assembly/scalar.ts', 'src/simd/scalar.generated.ts'],
  [
    'kernels/online-softmax/webassembly/assembly/forward.ts',
    'kernels/online-softmax/webassembly/forward.generated.ts',
  ],
  [
    'kernels/online-softmax/attributed/assembly/attributed.ts',
    'kernels/online-softmax/attributed/attributed.generated.ts',
  ],
  [
    'kernels/online-softmax/backward/webassembly/assembly/backward.ts',
    'kernels/online-softmax/backward/webassembly/backward.generated.ts',
  ],
  ['kernels/naive/assembly/yardstick.ts', 'kernels/naive/yardstick.generated.ts'],
  ['src/simd/assembly/tensor-core.ts', 'src/simd/tensor-core.generated.ts'],
  ['src/profile/assembly/accumulate.ts', 'src/profile/accumulate.generated.ts'],
  ['src/audit/bounds/assembly/bounds.ts', 'src/audit/bounds/bounds.generated.ts'],
  ['src/audit/structure/assembly/structure.ts', 'src/audit/structure/structure.generated.ts'],
  [
    'src/audit/diagnosis/long-rows/assembly/weigh.ts',
    'src/audit/diagnosis/long-rows/weigh.generated.ts',
  ],
  [
    'src/audit/gradients/bounds/pairs/assembly/pairs.ts',
    'src/audit/gradients/bounds/pairs/pairs.generated.ts',
  ],
];

function modified(file) {
  return statSync(join(root, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** When any AssemblyScript file or what compiles it was last modified: a module may import from all files. */
function sourcesModified() {
  const folders = new Set(modules.map(([source]) => dirname(source)));
  const files = [...folders].flatMap((folder) =>
    readdirSync(join(root, folder)).map((file) => join(folder, file)),
  );
  const scripts = ['scripts/build-webassembly.mjs', 'scripts/assembly-structs.mjs'];
  return Math.max(...[...files, ...scripts].map(modified));
}

/** A source as the compiler takes it, with the decorator for each comment `@inline`. */
function withDecorators(source, path) {
  const decorated = source.replaceAll(/^\/\/ @inline\n(?=(export )?function )/gm, '@inline\n');
  if (/\/\/ *@inline/.test(decorated))
    throw new Error(`${path}: // @inline stands above no function`);
  return decorated;
}

export async function buildWebAssembly() {
  const newest = sourcesModified();
  for (const [source, target] of modules) {
    if (modified(target) > newest) continue;
    const { default: asc } = await import('assemblyscript/asc');
    const files = {};
    let structs = '';
    const { error, stderr } = await asc.main(
      [source, '--outFile', 'out.wasm', '-O3', '--noAssert', '--enable', 'simd'].concat([
        '--runtime',
        'stub',
        '--initialMemory',
        '1',
        '--baseDir',
        root,
      ]),
      {
        transforms: [structWriters((typescript) => (structs = typescript))],
        readFile: (name, base) => {
          const path = join(base, name);
          return existsSync(path) ? withDecorators(readFileSync(path, 'utf8'), name) : null;
        },
        writeFile: (name, data) => void (files[name] = data),
        listFiles: () => [],
      },
    );
    if (error)
      throw new Error(`${source} does not compile: ${error.message}\n${stderr.toString()}`);
    const base64 = Buffer.from(files['out.wasm']).toString('base64');
    const name = join(root, target);
    writeFileSync(
      `${name}.tmp`,
      [
        `// Compiled from ${source}; do not edit.`,
        ...(structs === '' ? [] : ['', structs]),
        `export const binary =\n  '${base64}';\n`,
      ].join('\n'),
    );
    renameSync(`${name}.tmp`, name);
  }
}
