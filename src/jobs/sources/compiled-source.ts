import { lazily } from '../../reuse.js';
import type { KernelSource } from '../audit/index.js';

/**
 * A compiled kernel, run on the machine by a launch file that is a template. What compiles and runs it is loaded when it is
 * opened: most audits have no such kernel.
 * @param dout the place of dO, if it is named
 */
export function compiledSource(path: string, dout: string | undefined): KernelSource {
  const recurrent = lazily(async () => {
    const { openCompiledRecurrence } = await import('./recurrent/open-compiled-recurrence.js');
    return openCompiledRecurrence(path);
  });
  return {
    name: 'the compiled kernel',
    keepsPosed: false,
    command: (problemPath) => `flashproof run ${path} --problem ${problemPath}`,
    open: async () => {
      const { openCompiled } = await import('./open-compiled.js');
      return openCompiled(path, dout);
    },
    recurrence: {
      command: (problemPath) => `flashproof audit ${problemPath} --launch ${path}`,
      takes: async () => (await recurrent()).takes,
      run: async (open) => (await recurrent()).run(open),
    },
  };
}
