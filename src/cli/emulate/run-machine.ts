import { kernelModels, type KernelModel, type KernelProgram } from '../../../kernels/index.js';
import { allocateStorage, formats, patternsOf } from '../../formats/index.js';
import { openTensorFile, readProblem, writeSafetensors } from '../../io/index.js';
import type { Problem, Tensor } from '../../problem/index.js';
import { fitLines } from '../../report/layout/index.js';
import { RequestError } from '../../request-error.js';
import type { EmulateCommandOptions } from './options.js';
import { emulateDocument } from '../emulate-document.js';
import { kernelSettings } from '../options/kernel-settings.js';
import { modelWithProgram, prepareMachine, type MachineRequest } from '../machine-request.js';
import { createMachineGatherer, type MachineResults } from '../machine-results.js';
import { renderMachine } from '../machine-text.js';
import { createTraceFile } from './trace-file.js';
import { createPeriodicProgress } from '../terminal/progress.js';
import { declaredFormats, problemSettings } from '../options/problem-settings.js';
import { terminalLooks } from '../terminal/terminal-looks.js';
import { warnOfUnusedInputs } from '../files/unused-warning.js';
import { toolVersion } from '../tool-version.js';
import { writeJson } from '../files/publish.js';

/** Exit statuses of a run without findings, and with them. */
const foundNothing = 0;
const foundSomething = 1;

/** The program's outputs, of the rank of the problem's Q. */
function outputsOf(problem: Problem, { program }: MachineRequest): { out: Tensor; lse: Tensor } {
  const { outFormat, shape, out: patterns, lse: bits } = program;
  const format = formats[outFormat];
  const out = allocateStorage(format, patterns.length);
  patternsOf(out, format).set(patterns);
  const rowShape = problem.q.shape.slice(0, -1);
  const lse = new Float32Array(bits.buffer, bits.byteOffset, bits.length);
  return {
    out: { format: outFormat, shape: [...rowShape, shape.vDim], data: out },
    lse: { format: 'fp32', shape: rowShape, data: lse },
  };
}

/** How the run was made, for its JSON and the notes of its outputs. */
function machineSettings({ program, schedule, races, mutant }: MachineRequest) {
  return {
    ctas: program.ctas,
    clusters: program.clusters,
    schedule: schedule.name,
    model: program.model.name,
    races,
    isaFences: program.isaFences,
    mutant: mutant?.id ?? null,
  };
}

async function run(
  kernel: KernelProgram,
  problem: Problem,
  settings: ReadonlyMap<string, string>,
  options: EmulateCommandOptions,
): Promise<{ readonly request: MachineRequest; readonly results: MachineResults }> {
  const file = createTraceFile();
  const isTraced = options.trace !== undefined;
  const request = prepareMachine(
    kernel,
    problem,
    settings,
    options,
    isTraced ? file.trace : undefined,
  );
  const gatherer = createMachineGatherer(request);
  const { clusters, run } = request.program;
  const progress = createPeriodicProgress('emulate');
  let done = 0;
  const settle = (cluster: ReturnType<typeof run>): void => {
    gatherer.add(cluster);
    progress.update(++done / clusters);
  };
  try {
    if (options.trace !== undefined) await file.runAll(request, options.trace, settle);
    else for (let cluster = 0; cluster < clusters; cluster++) settle(run(cluster));
  } finally {
    progress.done();
  }
  return { request, results: gatherer.results() };
}

/** Texts of some lines each, as wide as the terminal is. */
function fitted(texts: readonly string[]): string {
  const { columns } = terminalLooks(process.stdout);
  return fitLines(texts.join('\n').split('\n'), columns).join('\n');
}

/** Where results went, for the first line. */
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
  name: string,
  path: string,
  options: EmulateCommandOptions,
  models: readonly KernelModel[] = kernelModels,
): Promise<number> {
  const { model, kernel } = modelWithProgram(name, models);
  if (options.threads !== undefined && options.threads !== 1)
    throw new RequestError('--machine runs on one thread; leave out --threads');
  const settings = kernelSettings(options.set);
  const start = performance.now();
  const file = await openTensorFile(path, { formats: declaredFormats(options) });
  try {
    const problem = await readProblem(file, problemSettings(options));
    warnOfUnusedInputs(file);
    const { request, results } = await run(kernel, problem, settings, options);
    const { out, lse } = outputsOf(problem, request);
    const prepared = model.prepare(problem, settings);
    const machine = machineSettings(request);
    const seconds = (performance.now() - start) / 1000;
    if (options.save !== undefined)
      await writeSafetensors(
        options.save,
        { out, lse },
        {
          kernel: name,
          settings: JSON.stringify(prepared.settings),
          machine: JSON.stringify(machine),
          flashproof: toolVersion(),
        },
      );
    const evidence = [...prepared.evidence, ...request.evidence, ...results.rateEvidence];
    const { counters, findings, isComplete, steps, clocks, roofline } = results;
    if (options.json !== '-' && options.quiet !== true)
      process.stdout.write(
        fitted([
          `${name}: out ${out.format} [${out.shape.join(', ')}] by ${machine.clusters.toLocaleString('en-US')} × ${machine.ctas} CTAs in ${seconds.toFixed(2)} s${written(options)}`,
          '',
          renderMachine(request, results),
          'Evidence',
          ...evidence.map((line) => `  ${line}`),
          '',
        ]),
      );
    if (options.json !== undefined)
      await writeJson(options.json, {
        ...(await emulateDocument(path, name, prepared.settings, seconds)),
        machine,
        isComplete,
        findings,
        steps,
        clocks,
        counters,
        roofline,
        exponentials: results.exponentials,
        rescales: results.rescales,
        evidence,
        saved: options.save ?? null,
        trace: options.trace ?? null,
      });
    return findings.length > 0 ? foundSomething : foundNothing;
  } finally {
    await file.close();
  }
}
