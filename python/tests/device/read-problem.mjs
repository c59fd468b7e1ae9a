// Reads the problem of a file as the command line does: dist has programs alone, so from the sources.
import { join } from 'node:path';
import { runnerImport } from 'vite';

/** The problem of a file. */
export async function readByLibrary(dist, path) {
  const root = join(dist, '..');
  const { module } = await runnerImport(join(root, 'src/io/index.ts'), { root, configFile: false });
  return module.readProblem(await module.openTensorFile(path));
}
