import type { ProgramClusterRun } from '../../../kernels/index.js';
import { atomicWriteFile } from '../../io/index.js';
import {
  chromeTraceHead,
  chromeTraceTail,
  createChromeTraceSection,
  type TraceEvent,
} from '../../machine/index.js';
import type { MachineRequest } from '../machine-request.js';

/** Runs clusters and writes what they did to a file, one cluster in memory at a time. */
export interface TraceFile {
  /** Receives the events of the cluster that runs. */
  readonly trace: (event: TraceEvent) => void;
  /**
   * Runs every cluster; the file is there whole, or not at all.
   * @throws RequestError when the file cannot be written
   */
  readonly runAll: (
    request: MachineRequest,
    path: string,
    done: (run: ProgramClusterRun) => void,
  ) => Promise<void>;
}

/** A trace that nothing has been written to. */
export function createTraceFile(): TraceFile {
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
    runAll: (request, path, done) => atomicWriteFile(path, chunks(request, done)),
  };
}
