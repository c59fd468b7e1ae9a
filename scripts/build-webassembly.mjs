/**
 * Compiles every AssemblyScript module to WebAssembly with SIMD and embeds it as base64 in a
 * TypeScript file beside it, so that the same import works from the sources, from dist and from a
 * bundler. A module whose output is newer than every AssemblyScript file is left alone.
 */
import { readFileSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** source → generated TypeScript file */
const modules = [
  ['oracles/attention/assembly/tile-kernels.ts', 'oracles/attention/tile-kernels.generated.ts'],
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
];

function modified(file) {
  return statSync(join(root, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** When any AssemblyScript file was last modified: a module may import from all of them. */
function sourcesModified() {
  const folders = new Set(modules.map(([source]) => dirname(source)));
  const files = [...folders].flatMap((folder) =>
    readdirSync(join(root, folder)).map((file) => join(folder, file)),
  );
  return Math.max(...files.map(modified));
}

export async function buildWebAssembly() {
  const newest = sourcesModified();
  for (const [source, target] of modules) {
    if (modified(target) > newest) continue;
    const { default: asc } = await import('assemblyscript/asc');
    const files = {};
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
        readFile: (name, base) => {
          try {
            return readFileSync(join(base, name), 'utf8');
          } catch {
            return null;
          }
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
      `/** Compiled from ${source}; do not edit. */\nexport const binary =\n  '${base64}';\n`,
    );
    renameSync(`${name}.tmp`, name);
  }
}
