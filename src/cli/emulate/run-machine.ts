import type { KernelModel, ProgramClusterRun } from '../../../kernels/index.js';
import {
  atomicWriteFile,
  hashTensorFile,
  openDeclaring,
  readProblem,
  writeSafetensors,
} from '../../io/index.js';
import {
  chromeTraceHead,
  chromeTraceTail,
  createChromeTraceSection,
  findingWeight,
  type TraceEvent,
} from '../../machine/index.js';
import {
  type ClusterRunner,
  emulateOnMachine,
  machineDocument,
  type MachineRequest,
  modelWithProgram,
} from '../../jobs/index.js';
import { fitLines } from '../../report/layout/index.js';
import { RequestError } from '../../request-error.js';
import { writeJson } from '../files/publish.js';
import { warnOfUnusedInputs } from '../files/file-tensors.js';
import {
  declaredFormats,
  kernelSettings,
  problemSettings,
  tensorPlaces,
} from '../options/settings.js';
import { createPeriodicProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import { renderMachine, renderMachineVerdict } from '../../report/text/machine/index.js';
import type { EmulateCommandOptions } from './options.js';

/**
 * Runs clusters and writes their events to a file, one cluster in memory at a time. The file is written
 * whole, or not at all; `runAll` throws a RequestError when it cannot be written.
 */
function createTraceFile(path: string): ClusterRunner {
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

/** Exit statuses of a run without findings, and with them. */
const foundNothing = 0;
const foundSomething = 1;

/** Texts of some lines each, as wide as the terminal is. */
function fitted(texts: readonly string[]): string {
  const { columns } = terminalLooks(process.stdout);
  return fitLines(texts.join('\n').split('\n'), columns).join('\n');
}

/** The places of the results, for the first line. */
function written({ save, trace }: EmulateCommandOptions): string {
  const places = [
    ...(save === undefined ? [] : [`, saved to ${save}`]),
    ...(trace === undefined ? [] : [`, trace in ${trace} (open it at https://ui.perfetto.dev)`]),
  ];
  return places.join('');
}

/**
 * Runs `flashproof emulate --machine`: the kernel's program on the emulated machine; saves, traces and
 * prints. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runEmulateMachine(
  model: string,
  path: string,
  options: EmulateCommandOptions,
  models: readonly KernelModel[],
): Promise<number> {
  // Before the file is read: a kernel without a program has none for any problem.
  await modelWithProgram(model, models);
  const { threads, set, save, trace, json, quiet } = options;
  if (threads !== undefined && threads !== 1)
    throw new RequestError('--machine runs on one thread; leave out --threads');
  const settings = kernelSettings(set);
  const start = performance.now();
  const file = await openDeclaring(path, declaredFormats(options), tensorPlaces(options));
  const progress = createPeriodicProgress('emulate');
  try {
    const given = problemSettings(options);
    const problem = await readProblem(file, given);
    warnOfUnusedInputs(file, given);
    file.checkDeclared();
    const result = await emulateOnMachine(
      { problem, model, settings, options, models, start },
      trace === undefined ? null : createTraceFile(trace),
      progress.update,
    );
    progress.done();
    const { request, results, out, lse, machine, evidence, seconds } = result;
    const version = toolVersion();
    if (save !== undefined)
      await writeSafetensors(
        save,
        { out, lse },
        {
          kernel: model,
          settings: JSON.stringify(result.emulation.settings),
          machine: JSON.stringify(machine),
          flashproof: version,
        },
      );
    if (json !== '-')
      process.stdout.write(
        quiet === true
          ? renderMachineVerdict(request, results)
          : fitted([
              `${model}: out ${out.format} [${out.shape.join(', ')}] by ${machine.clusters.toLocaleString('en-US')} × ${machine.ctas} CTAs in ${seconds.toFixed(2)} s${written(options)}`,
              '',
              renderMachine(request, results),
              'Evidence',
              ...evidence.map((line) => `  ${line}`),
              '',
            ]),
      );
    if (json !== undefined) {
      const hashed = { path, sha256: await hashTensorFile(path) };
      const files = { saved: save ?? null, trace: trace ?? null };
      await writeJson(json, machineDocument(version, hashed, result, files));
    }
    return results.findings.some(({ kind }) => findingWeight(kind) !== 'hint')
      ? foundSomething
      : foundNothing;
  } finally {
    progress.done();
    await file.close();
  }
}
