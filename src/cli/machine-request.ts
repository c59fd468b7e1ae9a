import type {
  KernelModel,
  KernelProgram,
  PreparedKernelProgram,
  ProgramMutant,
} from '../../kernels/index.js';
import { nearestName } from '../io/index.js';
import { memoryModels, type MemoryModel, type TraceEvent } from '../machine/index.js';
import type { Problem } from '../problem/index.js';
import { RequestError } from '../request-error.js';
import type { MachineOptions } from './emulate/options.js';
import { findSchedule, type ChosenSchedule } from './machine-schedule.js';

/** A run of a program on the machine, as the command line asks for it. */
export interface MachineRequest {
  readonly program: PreparedKernelProgram;
  readonly warpNames: readonly string[];
  /** What the execution rests on, a line each. */
  readonly evidence: readonly string[];
  readonly schedule: ChosenSchedule;
  readonly races: boolean;
  readonly mutant: ProgramMutant | null;
}

/**
 * A model of a name with its program.
 * @throws RequestError for a name without a program, with those that have one
 */
export function modelWithProgram(
  name: string,
  models: readonly KernelModel[],
): { readonly model: KernelModel; readonly kernel: KernelProgram } {
  const model = models.find((known) => known.name === name);
  if (model !== undefined && model.program !== null) return { model, kernel: model.program };
  const others = models.filter(({ program }) => program !== null).map(({ name }) => name);
  throw new RequestError(
    `${JSON.stringify(name)} has no program for the machine; --machine runs ${others.join(', ')}`,
  );
}

/** @throws RequestError for an unknown name, which names the nearest */
function findModel(name: string): MemoryModel {
  const models: Readonly<Record<string, MemoryModel>> = memoryModels;
  if (Object.hasOwn(models, name)) return models[name];
  const nearest = nearestName(name, Object.keys(models));
  throw new RequestError(
    `no memory model ${JSON.stringify(name)}; ${nearest === null ? `give ${Object.keys(models).join(', ')}` : `the nearest is ${nearest}`}`,
  );
}

/** @throws RequestError for an unknown id, which names the nearest */
function findMutant({ mutants }: KernelProgram, id: string): ProgramMutant {
  const mutant = mutants.find((known) => known.id === id);
  if (mutant !== undefined) return mutant;
  const nearest = nearestName(
    id,
    mutants.map((known) => known.id),
  );
  throw new RequestError(
    `no mutant ${JSON.stringify(id)}; ${nearest === null ? 'flashproof emulate list --machine names them' : `the nearest is ${JSON.stringify(nearest)}`}`,
  );
}

/**
 * Makes a program ready as the command line asks for it.
 * @param settings of the kernel, as text by key
 * @param trace is told the events of every cluster
 * @throws RequestError for what the program does not run, and for unknown names
 */
export function prepareMachine(
  kernel: KernelProgram,
  problem: Problem,
  settings: ReadonlyMap<string, string>,
  options: MachineOptions,
  trace?: (event: TraceEvent, cluster: number) => void,
): MachineRequest {
  const { ctas, clusters, races, isaFences = false, mutant: id, model } = options;
  const { warpNames, evidence } = kernel;
  const schedule = findSchedule(
    options.schedule ?? (options.trace === undefined ? 'in-order' : 'timed'),
    warpNames.length,
  );
  const mutant = id === undefined ? null : findMutant(kernel, id);
  const program = kernel.prepare(problem, settings, {
    races,
    isaFences,
    scheduler: schedule.create,
    ...(model === undefined ? {} : { model: findModel(model) }),
    ...(ctas === undefined ? {} : { ctas }),
    ...(clusters === undefined ? {} : { clusters }),
    ...(trace === undefined ? {} : { trace }),
    ...(mutant === null ? {} : { mutant }),
  });
  return { program, warpNames, evidence, schedule, races, mutant };
}
