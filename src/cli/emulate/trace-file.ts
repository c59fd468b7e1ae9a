import type { ProgramClusterRun } from '../../../kernels/index.js';
import { atomicWriteFile } from '../../io/index.js';
import {
  chromeTraceHead,
  chromeTraceTail,
  createChromeTraceSection,
  type TraceEvent,
} from '../../machine/index.js';
import type { ClusterRunner, MachineRequest } from '../../jobs/index.js';

/**
 * Runs clusters and writes what they did to a file, one cluster in memory at a time. The file is there
 * whole, or not at all; `runAll` throws a RequestError when it cannot be written.
 */
export function createTraceFile(path: string): ClusterRunner {
  let receive: (event: TraceEvent) => void = () => undefined;

  function* chunks(
    { program, warpNames, schedule: { isTimed, name } }: MachineRequest,
    done: (run: ProgramClusterRun) => void,
  ): Generator<Uint8Array> {
    yield chromeTraceHead({ tool: 'flashproof', schedule: name }, isTimed);
    const { clusters, ctas, run } = program;
    const warpName = (warp: number): string => warpNames[warp];
    for (let cluster = 0; cluster < clusters; cluster++) {
      const about = { cluster, ctas, warpName, isTimed };
      const section = createChromeTraceSection(about);
      receive = section.add;
      done(run(cluster));
      yield* section.chunks();
    }
    yield chromeTraceTail();
  }

  return {
    trace: (event) => receive(event),
    runAll: (request, done) => atomicWriteFile(path, chunks(request, done)),
  };
}
