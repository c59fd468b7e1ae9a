import { spawnSync } from 'node:child_process';
import { secondsOf, type Benchmark } from './benchmark.js';

/** From starting the process to its end, of `flashproof --version`. */
export function coldStartBenchmark(commandLine: string): Benchmark {
  return {
    quantities: [{ name: 'command line: cold start', unit: 's', better: 'lower', target: 0.15 }],
    runs: 10,
    prepare: () => ({
      measure: () => [
        secondsOf(() => {
          const { status } = spawnSync(process.execPath, [commandLine, '--version']);
          if (status !== 0) throw new Error(`${commandLine} --version exits with ${status}`);
        }),
      ],
    }),
  };
}
